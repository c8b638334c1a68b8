"""A match of a user's own that answers in float64, whatever the rewards are in."""

from typing import Any

import numpy as np
import pytest

import payback

from .cases import quiet

pytestmark = quiet


def at_end(gamma: float) -> payback.Match:
    """Repay everything at the episode's last step, in float64."""

    def update(debt: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        with np.errstate(over="ignore"):
            shaped, after = np.where(done, -debt, reward), np.where(done, 0.0, (debt + reward) / gamma)
        if valid is not None:
            shaped, after = np.where(valid, shaped, 0.0), np.where(valid, after, debt)
        return after, shaped

    return payback.Match(
        lambda example: np.zeros(np.shape(example)),
        update,
        gamma=gamma,
        owed=np.copy,
        drop=lambda debt, where: np.where(where, 0.0, debt),
    )


@pytest.mark.parametrize("gamma", [0.9, 0.95, 0.99])
def test_its_settlement_may_overflow_float32(gamma: float):
    """γ⁻ᴺ leaves float32 in the check's long episodes, which is no fault of a match that repays at the end."""
    payback.check_transform(at_end(gamma), gamma=gamma, effort="quick")


def test_what_float32_cannot_hold_is_an_overflow_not_a_fault():
    match, T = at_end(0.5), 200
    rewards, dones = np.ones((T, 1), np.float32), np.arange(T)[:, None] == T - 1
    with pytest.raises(OverflowError, match="float32"):
        payback.shape_rollout(match, match.init(rewards[0]), rewards, dones)
    shaped = payback.shape_rollout(match, match.init(rewards[0]), rewards.astype(np.float64), dones)[1]
    assert np.isfinite(shaped).all()
    unpaid = dones & False, ~dones  # the last row is no transition, so that what overflows there is not paid
    assert payback.shape_rollout(match, match.init(rewards[0]), rewards, *unpaid)[1][-1] == 0
