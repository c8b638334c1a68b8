"""The Gymnasium wrappers at an episode's end: both treatments of truncation, and a reset in mid-episode."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward

from .gymnasium_vectors import GAMMA, RAW, B, drive, wrapped_vector

pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
]


def test_settle_reports_the_time_limit_as_terminal_and_says_so_once(walk, distance):
    envs = wrapped_vector(lambda: walk(0.0), AutoresetMode.SAME_STEP, distance, RAW["grm-3"], learner_gamma=GAMMA)
    with pytest.warns(ShapingWarning, match="time limit is now part of the task") as said:
        steps = list(drive(envs, AutoresetMode.SAME_STEP, steps=30))
    for t, step in enumerate(steps, start=1):
        last = t % 7 == 0
        assert step["terminated"].tolist() == [last] * B
        assert step["info"]["truncated"].tolist() == [last] * B
        assert not step["truncated"].any()
        assert np.all((step["info"]["owed"] == 0) == last)
    assert len([w for w in said if w.category is ShapingWarning]) == 1


def test_carry_is_refused_where_it_is_wrong(walk, distance):
    fast = payback.match_geometric(GAMMA, 0.95)
    for match in (RAW["pbim"], payback.pbim(GAMMA), payback.match_when(GAMMA), fast):
        with pytest.raises(ValueError, match="carry' is refused"):
            ShapeReward(walk(), distance, match, on_truncation="carry")
    with pytest.raises(ValueError, match="'settle' or 'carry', got 'drop'"):
        ShapeReward(walk(), distance, RAW["grm-1"], on_truncation="drop")


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_resets_in_mid_episode_drop_the_debt_and_count_it(walk, distance):
    envs = wrapped_vector(lambda: walk(0.0), AutoresetMode.DISABLED, distance, RAW["pbim"])
    envs.reset(seed=0)
    for _ in range(3):
        _, _, _, _, info = envs.step(np.ones(B, dtype=int))
    owed, mask = info["owed"], np.array([False, True, False])
    envs.reset(options={"reset_mask": mask})
    assert envs.monitor.drops == 1
    np.testing.assert_allclose(envs.monitor.dropped, np.where(mask, owed, 0))
    np.testing.assert_allclose(envs.owed, np.where(mask, 0, owed))
    envs.reset()
    assert envs.monitor.drops == 3
    np.testing.assert_allclose(envs.monitor.dropped, owed)
    envs.reset()
    assert envs.monitor.drops == 3
