"""Faults of a match's `owed` and `drop`."""

import numpy as np

import payback
from payback import RewardTransform
from payback.core.transform import altered

from .planting import GAMMA, MATCH, counted, own_match


def wrong_debt() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)
    return altered(match, owed=lambda state: GAMMA * match.owed(state))


def drop_all() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)
    return altered(match, drop=lambda state, where: match.drop(state, where | True))


def drop_in_place(state, where):
    state[where] = 0
    return state


def drop_forgets_the_mean() -> RewardTransform:
    shaping = payback.chain(payback.center(), MATCH)

    def drop(state, where):
        fresh = shaping.init(np.zeros(len(where)))
        return (fresh[0], shaping.drop(state, where)[1])

    return altered(shaping, drop=drop)


def owed_changed(change) -> RewardTransform:
    return altered(MATCH, owed=lambda state: change(MATCH.owed(state)))


def owed_spends() -> RewardTransform:
    def owed(state):
        debt = state.copy()
        state[:] = 0
        return debt

    return own_match(owed=owed)


DEBTS: dict[str, dict[str, RewardTransform]] = {
    "owed": {
        "owed is wrong": wrong_debt(),
        "owed is absolute": owed_changed(np.abs),
    },
    "owed, under one condition": {
        "owed in float32": owed_changed(lambda debt: debt.astype(np.float32).astype(debt.dtype)),
        "owed wrong at step 41 only": counted(tell=lambda debt, age: np.where(age == 41, 2 * debt, debt)),
        "owed wrong after 100 steps": counted(tell=lambda debt, age: np.where(age > 100, 2 * debt, debt)),
        "owed wrong for 16 environments": altered(
            MATCH, owed=lambda state: MATCH.owed(state) * (2 if MATCH.owed(state).shape == (16,) else 1)
        ),
    },
    "the shape of owed": {
        "owed as a column": owed_changed(lambda debt: debt[:, None]),
        "owed of one environment has another shape": owed_changed(lambda debt: debt[0] if len(debt) == 1 else debt),
    },
    "the memory of owed": {
        "owed is the state itself": own_match(owed=lambda state: state),
        "owed spends the debt": owed_spends(),
    },
    "drop": {
        "drop forgets everyone": drop_all(),
        "drop halves": own_match(drop=lambda state, where: np.where(where, state / 2, state)),
        "drop of the second only": own_match(
            drop=lambda state, where: np.where(where & (np.arange(len(state)) > 0), 0, state)
        ),
        "drop of nobody forgets everyone": altered(
            MATCH, drop=lambda state, where: MATCH.drop(state, where if where.any() else ~where)
        ),
        "drop of everyone forgets nobody": altered(
            MATCH,
            drop=lambda state, where: MATCH.drop(state, where & ~where if len(where) > 1 and where.all() else where),
        ),
        "drop forgets the neighbour": altered(
            MATCH, drop=lambda state, where: MATCH.drop(state, where | np.roll(where, 1) if len(where) > 2 else where)
        ),
    },
    "the memory of drop": {
        "drop changes the state it was given": own_match(drop=drop_in_place),
    },
    "what drop must keep": {
        "drop forgets the mean": drop_forgets_the_mean(),
    },
    "falls_due_alone": {
        "falls due alone, it says": altered(payback.match_at_end(GAMMA), falls_due_alone=True),
    },
}
