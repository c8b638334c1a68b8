"""The state of the Gymnasium wrappers is saved and loaded, and another transform's is refused."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward

from .gymnasium_vectors import GAMMA, drive, wrapped_vector

pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
]


def test_the_state_is_saved_and_loaded(walk, distance, tmp_path):
    path = tmp_path / "shaping.npz"
    envs = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    list(drive(envs, AutoresetMode.SAME_STEP, 20))
    envs.save(path)
    other = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    other.reset(seed=0)
    other.load(path)
    np.testing.assert_array_equal(other.owed, envs.owed)
    mean = envs.shaping_state.loans[0]
    assert other.shaping_state.loans[0] == mean
    with pytest.warns(ShapingWarning, match="restored the environments"):
        other.step(np.zeros(3, dtype=int))
    while not other.monitor.finished:
        other.step(np.zeros(3, dtype=int))
    assert other.monitor.broken == 0, "judged from the debts that were loaded"
    one = ShapeReward(walk(), distance, payback.grm(GAMMA, 3))
    one.load(path)
    assert one.shaping_state.loans[0] == mean, "another number of environments keeps F̄"
    assert one.owed.tolist() == [0]
    later = ShapeReward(walk(), distance, payback.grm(GAMMA, 4))
    with pytest.raises(ValueError, match="another transform"):
        later.load(path)
