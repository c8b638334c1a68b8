"""Correct shapers that were, or might be, refused."""

from typing import Any

import numpy as np

from payback import RewardTransform

from .faulty_functions import settled
from .planting import GAMMA, MATCH, counted, own_match


def float32_inside() -> RewardTransform:
    """Correct: takes float64, works in float32, answers in float64."""

    def update(state, reward, done, valid=None, settle=None):
        state, shaped = MATCH.update(state, reward.astype(np.float32), done, valid, settle)
        return state, shaped.astype(reward.dtype)

    return RewardTransform(lambda example: MATCH.init(example.astype(np.float32)), update)


def float32_loans() -> RewardTransform:
    """Correct: pays float64 and keeps its loans in a float32 buffer, as many deques and buffers do."""

    def update(state, reward, done, valid=None, settle=None):
        due = GAMMA**-3 * state[2].astype(np.float64)
        rest = sum(GAMMA**-k * state[k - 1].astype(np.float64) for k in (1, 2, 3))
        shaped = np.where(done, -rest, reward - due).astype(reward.dtype)
        new = np.where(done, 0, np.stack([reward.astype(np.float32), state[0], state[1]]))
        if valid is not None:
            shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
        return new.astype(np.float32), shaped

    return RewardTransform(lambda example: np.zeros((3, len(example)), np.float32), update)


RIGHT: dict[str, Any] = {
    "float32 inside float64": float32_inside(),
    "loans in float32": float32_loans(),
    "own match": own_match(),
    "counted match": counted(),
    "black box in float32": lambda r: settled(r.astype(np.float32)).astype(np.float32),
    "black box in float16": lambda r: settled(r.astype(np.float32)).astype(np.float16),
    "black box in float32, as a list": lambda r: settled(r.astype(np.float32)).astype(np.float32).tolist(),
    "black box in float32, as float64": lambda r: settled(r.astype(np.float32)).astype(np.float32).astype(np.float64),
}
