"""What a step returns is the caller's to change: it shares no memory with the rewards or the state that were given."""

import numpy as np
import pytest

import payback

TRANSFORMS = [
    payback.match_at_end(0.9),
    payback.match_when(0.9),
    payback.match_after(0.9, 0),
    payback.match_after(0.9, 3),
    payback.match_evenly(0.9, 3),
    payback.match_geometric(0.9, 0.5),
    payback.pbim(0.9),
    payback.pbim(0.9, center=False),
    payback.grm(0.9, 2, center=False),
    payback.scale(1),
    payback.clip(-1, 1),
    payback.stateless(lambda reward: reward),
    payback.center(),
    payback.scale_by_rms(),
    payback.chain(payback.stateless(lambda reward: reward), payback.match_at_end(0.9)),
]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
@pytest.mark.parametrize("ends", [False, True])
def test_what_is_paid_is_not_the_rewards_own_memory(transform: payback.RewardTransform, ends: bool) -> None:
    reward, done = np.array([0.5, 0.25]), np.array([ends, False])
    state, first = transform.update(transform.init(np.zeros(2)), reward, done)
    _, shaped = transform.update(state, reward, done)
    for paid in (first, shaped):
        assert not np.shares_memory(paid, reward)
    before = reward.copy()
    shaped += 1
    assert np.array_equal(reward, before)
