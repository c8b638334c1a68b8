"""Faults in what is told of the debt and done to it: `owed`, `drop`, and the memory in which it is kept."""

import numpy as np

from payback import RewardTransform

from .conditional_faults import MATCH, own_match
from .planting import altered


def example_as_state() -> RewardTransform:
    """Takes the memory of its example for its debt."""
    right = own_match()

    def init(example):
        if not example.flags.writeable:
            return np.zeros_like(example)
        example[:] = 0
        return example

    return RewardTransform(init, right.update)


def owed_changed(change) -> RewardTransform:
    return altered(MATCH, owed=lambda state: change(MATCH.owed(state)))


def owed_spends() -> RewardTransform:
    def owed(state):
        debt = state.copy()
        state[:] = 0
        return debt

    return own_match(owed=owed)


DEBTS: dict[str, RewardTransform] = {
    "its example's memory is its debt": example_as_state(),
    "owed is absolute": owed_changed(np.abs),
    "owed in float32": owed_changed(lambda debt: debt.astype(np.float32).astype(debt.dtype)),
    "owed of one environment has another shape": owed_changed(lambda debt: debt[0] if len(debt) == 1 else debt),
    "owed as a column": owed_changed(lambda debt: debt[:, None]),
    "owed spends the debt": owed_spends(),
    "drop halves": own_match(drop=lambda state, where: np.where(where, state / 2, state)),
    "drop of the second only": own_match(
        drop=lambda state, where: np.where(where & (np.arange(len(state)) > 0), 0, state)
    ),
}
