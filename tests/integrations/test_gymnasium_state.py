"""The state of the Gymnasium wrappers' ledger is saved and loaded, and another transform's is refused."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import payback
from payback.integrations.gymnasium import ShapeReward
from payback.integrations.ledger import Ledger, ShapingWarning

from .gymnasium_vectors import GAMMA, drive, wrapped_vector

pytestmark = [
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.integrations.ledger.ShapingWarning"),
]


def test_the_state_is_saved_and_loaded(walk, distance, tmp_path):
    envs = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    list(drive(envs, AutoresetMode.SAME_STEP, 20))
    envs.ledger.save(tmp_path / "shaping.npz")
    other = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    other.ledger.load(tmp_path / "shaping.npz")
    np.testing.assert_array_equal(other.ledger.owed, envs.ledger.owed)
    assert other.ledger.state[0] == envs.ledger.state[0]
    with pytest.warns(ShapingWarning, match=r"right only if the environments, too, were put back"):
        other.ledger.step(np.ones(3), None, None)
    for _ in range(2):
        other.ledger.step(np.ones(3), None, None)
    other.ledger.step(np.ones(3), np.ones(3, dtype=bool), None)
    other.ledger.watch.sum_up()
    assert (other.ledger.watch.finished, other.ledger.watch.broken) == (3, 0), "judged from the debts that were loaded"
    one = ShapeReward(walk(), distance, payback.grm(GAMMA, 3))
    one.ledger.load(tmp_path / "shaping.npz")
    assert one.ledger.state[0] == envs.ledger.state[0], "another number of environments keeps F̄"
    assert one.ledger.owed.tolist() == [0]
    later = ShapeReward(walk(), distance, payback.grm(GAMMA, 4))
    with pytest.raises(ValueError, match="holds the state of another transform"):
        later.ledger.load(tmp_path / "shaping.npz")


@pytest.mark.parametrize("num_envs", [3, 2], ids=["as many environments", "fewer environments"])
def test_a_state_of_another_horizon_is_not_loaded(num_envs, tmp_path):
    """Its mean would stay the cumulative one for ever, because the state says how fast the old fades."""
    saved = Ledger(payback.grm(GAMMA, 2), 3)
    saved.step(np.ones(3), None, None)
    saved.save(tmp_path / "shaping.npz")
    ledger = Ledger(payback.grm(GAMMA, 2, center=payback.center(20)), num_envs)
    before = ledger.state
    with pytest.raises(ValueError, match="holds the state of another transform: its mean has another horizon"):
        ledger.load(tmp_path / "shaping.npz")
    assert ledger.state is before


def test_a_loaded_state_is_read_by_the_transform(tmp_path):
    """The file is compared with the state that the ledger holds, which may have been put there by hand."""
    stranger = payback.match_at_end(GAMMA).init(np.zeros(3))
    payback.save_state(tmp_path / "shaping.npz", stranger)
    ledger = Ledger(payback.match_after(GAMMA, 2), 3)
    ledger.state = stranger
    with pytest.raises(TypeError, match="match_after was given a state of type AtEndState, not its own AgesState"):
        ledger.load(tmp_path / "shaping.npz")
