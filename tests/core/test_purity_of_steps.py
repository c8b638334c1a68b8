"""What a step returns is the caller's to change: it shares no memory with the rewards or the state that were given."""

import numpy as np
import pytest

import payback

from .cases import TRANSFORMS, quiet

pytestmark = quiet

SAME = payback.stateless(lambda reward: reward)
EVERY = [*TRANSFORMS.values(), payback.scale(1), SAME, payback.chain(SAME, payback.match_at_end(0.9))]


@pytest.mark.parametrize("transform", EVERY, ids=repr)
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
