"""Faults that show only under one condition: a batch size, a memory layout, a dtype, a late event, a lone `drop`.

`LISTED` are of the kinds that an earlier `check_transform` was known to miss; further_faults.py has others.
"""

from collections.abc import Callable

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, altered, at_the_end, half, on_the_way, only, wrong_block

MATCH = payback.match_after(GAMMA, 3)
WHEN = payback.match_when(GAMMA)


def counted(
    pay: Callable[..., np.ndarray] | None = None,
    tell: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    match: RewardTransform = MATCH,
) -> RewardTransform:
    """A right match that counts each episode's steps, for `pay(shaped, age, done, settle)` and `tell(owed, age)`."""

    def update(state, reward, done, valid=None, settle=None):
        inner, age = state
        live = np.ones(len(reward), dtype=bool) if valid is None else np.asarray(valid, dtype=bool)
        end = np.asarray(done, dtype=bool) & live
        event = live & (np.zeros(len(reward), dtype=bool) if settle is None else np.asarray(settle, dtype=bool))
        inner, shaped = match.update(inner, reward, done, valid, settle)
        if pay is not None:
            shaped = np.where(live, pay(shaped, age, end, event), 0).astype(shaped.dtype)
        return (inner, np.where(end, 0, age + live)), shaped

    def owed(state):
        debt = match.owed(state[0])
        return debt if tell is None else tell(debt, state[1])

    def drop(state, where):
        return match.drop(state[0], where), np.where(where, 0, state[1])

    init = lambda example: (match.init(example), np.zeros(len(example), dtype=np.int64))  # noqa: E731
    return altered(match, init=init, update=update, owed=owed, drop=drop, _block=None)


def own_match(owed=None, drop=None, update=None) -> RewardTransform:
    """match_at_end as a user would write it: the state is the debt."""

    def right(state, reward, done, valid=None, settle=None):
        shaped = np.where(done, -state, reward)
        new = np.where(done, 0, (state + reward) / np.asarray(GAMMA, reward.dtype))
        if valid is not None:
            shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
        return new, shaped

    return altered(
        payback.match_at_end(GAMMA),
        init=np.zeros_like,
        update=update or right,
        owed=owed or (lambda state: state.copy()),
        drop=drop or (lambda state, where: np.where(where, 0, state)),
        _block=None,
    )


def for_batch_of(size: int) -> RewardTransform:
    return only(lambda r, d, v, s: len(r) == size and d.any(), half)


def not_flagged(which: str) -> RewardTransform:
    """Negates a flag with `~`: right for booleans, true for every integer."""

    def update(state, reward, done, valid=None, settle=None):
        open_ = ~done if which == "done" else ~done.astype(bool)
        shaped = np.where(open_, reward, -state)
        new = np.where(open_, (state + reward) / np.asarray(GAMMA, reward.dtype), 0)
        if valid is not None:
            bad = ~valid if which == "valid" else ~valid.astype(bool)
            shaped, new = np.where(bad, 0, shaped), np.where(bad, state, new)
        return new, shaped

    return own_match(update=update)


def by_subtraction(state, reward, done, valid=None, settle=None):
    """Subtracts the last reward from a sum that holds it."""
    debt = state + reward
    shaped = np.where(done, reward - debt, reward)
    new = np.where(done, 0, debt / np.asarray(GAMMA, reward.dtype))
    if valid is not None:
        shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
    return new, shaped


def block_pays(change) -> RewardTransform:
    """A block form whose payments are changed by `change(rewards, dones, shaped)`."""

    def block(match, state, rewards, dones, valid, settle):
        result = match._block(state, rewards, dones, valid, settle)
        if result is NotImplemented:
            return result
        return result[0], change(rewards, dones, np.array(result[1]))

    return wrong_block(block)


def block_in_memory_order(match, state, rewards, dones, valid, settle):
    """Reads the block's memory as if its rows lay one after the other."""
    return match._block(state, rewards.ravel(order="K").reshape(rewards.shape), dones, valid, settle)


def late_event(age: int) -> RewardTransform:
    return counted(lambda x, n, done, event: np.where(event & ~done & (n > age), 2 * x, x), match=WHEN)


LISTED: dict[str, RewardTransform] = {
    "wrong for 8 environments": for_batch_of(8),
    "wrong for 16 environments": for_batch_of(16),
    "wrong for 32 environments": for_batch_of(32),
    "wrong for 64 environments": for_batch_of(64),
    "step wrong where rewards are not contiguous": only(
        lambda r, d, v, s: len(r) > 1 and not r.flags.c_contiguous and d.any(), half
    ),
    "block wrong where rewards are not contiguous": wrong_block(block_in_memory_order),
    "integer done negated": not_flagged("done"),
    "integer valid negated": not_flagged("valid"),
    "wrong in float16": only(lambda r, d, v, s: r.dtype == np.float16 and d.any(), half),
    "event after 100 steps repaid twice": late_event(100),
    "event after 1000 steps repaid twice": late_event(1000),
    "drop of nobody forgets everyone": altered(
        MATCH, drop=lambda state, where: MATCH.drop(state, where if where.any() else ~where)
    ),
    "drop of everyone forgets nobody": altered(
        MATCH, drop=lambda state, where: MATCH.drop(state, where & ~where if len(where) > 1 and where.all() else where)
    ),
    "owed wrong after 100 steps": counted(tell=lambda debt, age: np.where(age > 100, 2 * debt, debt)),
    "owed wrong at step 41 only": counted(tell=lambda debt, age: np.where(age == 41, 2 * debt, debt)),
    "owed wrong for 16 environments": altered(
        MATCH, owed=lambda state: MATCH.owed(state) * (2 if MATCH.owed(state).shape == (16,) else 1)
    ),
    "owed is the state itself": own_match(owed=lambda state: state),
    "block wrong for 8 environments": block_pays(lambda r, d, x: x / 2 if r.shape[1] == 8 else x),
    "block wrong for 128 steps": block_pays(lambda r, d, x: x / 2 if len(r) == 128 else x),
    "block wrong for one step": block_pays(lambda r, d, x: x / 2 if len(r) == 1 else x),
    "block settles by subtraction": block_pays(lambda r, d, x: np.where(d, (r + x) - r, x)),
    "settles by subtraction": own_match(update=by_subtraction),
    "no settlement after a very large last reward": at_the_end(
        lambda env, r, paid: 0.0 if abs(r) > 1e5 * max(map(abs, env.loans), default=np.inf) else paid
    ),
    "rewards below 1e-25 unpaid": on_the_way(lambda env, r, paid: paid - r if 0 < abs(r) < 1e-25 else paid),
    "rewards below 1e-60 unpaid": on_the_way(lambda env, r, paid: paid - r if 0 < abs(r) < 1e-60 else paid),
    "rewards above 1e20 clipped after matching": only(
        lambda r, d, v, s: True, lambda x: np.clip(x, -1e20, 1e20).astype(x.dtype)
    ),
}
