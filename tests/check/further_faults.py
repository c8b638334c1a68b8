"""More faults under one condition, which nobody listed: tried to see what `check_transform` still misses."""

import numpy as np

import payback
from payback import RewardTransform

from .conditional_faults import MATCH, WHEN, block_pays, by_subtraction, counted, for_batch_of, own_match
from .planting import GAMMA, altered, at_the_end, each, leaks_into_next, on_the_way, only, plain, wrong_block
from .rare_faults import wrong_for_environment, wrong_for_length


def first_event() -> RewardTransform:
    return counted(lambda x, n, done, event: np.where(event & ~done & (n == 0), x + 1, x), match=WHEN)


def block_loses_its_state(rows: int):
    def block(match, state, rewards, dones, valid, settle):
        result = match._block(state, rewards, dones, valid, settle)
        return (match.init(rewards[0]), result[1]) if result is not NotImplemented and len(rewards) > rows else result

    return block


def keeps_what_it_paid() -> RewardTransform:
    """match_at_end whose state holds the very array that it paid last."""

    def update(state, reward, done, valid=None, settle=None):
        debt, last = state
        debt = (debt + last) / np.asarray(GAMMA, reward.dtype)
        ends = np.array(done, dtype=bool)
        shaped = np.where(ends, -debt, reward)
        if valid is not None:
            old, (debt0, last0) = shaped, state
            shaped = np.where(valid, old, 0)
            kept = np.where(valid, np.where(ends, 0, old), last0)
            return (np.where(valid, np.where(ends, 0, debt), debt0), kept), shaped
        if ends.any():
            return (np.where(ends, 0, debt), np.where(ends, 0, reward)), shaped
        return (debt, shaped), shaped

    return RewardTransform(lambda example: (np.zeros_like(example), np.zeros_like(example)), update)


def poisoned_by_nan() -> RewardTransform:
    """Multiplies invalid rewards by 0, which leaves NaN."""

    def update(state, reward, done, valid=None, settle=None):
        if valid is None:
            return MATCH.update(state, reward, done, valid, settle)
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return new, shaped + (reward * ~np.array(valid, dtype=bool)) * 0

    return RewardTransform(MATCH.init, update)


def resets_where_nobody_is_valid() -> RewardTransform:
    def update(state, reward, done, valid=None, settle=None):
        if valid is not None and len(reward) > 2 and not np.any(valid):
            return MATCH.init(reward), np.zeros_like(reward)
        return MATCH.update(state, reward, done, valid, settle)

    return RewardTransform(MATCH.init, update)


def shares_its_first_state() -> RewardTransform:
    """init hands out one and the same list, into which update writes."""
    states: dict[tuple[int, str], list[np.ndarray]] = {}

    def init(example):
        return states.setdefault((len(example), str(example.dtype)), [np.zeros_like(example)])

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = by_subtraction(state[0], reward, done, valid)
        state[0] = new
        return state, shaped

    return RewardTransform(init, update)


def writes_and_restores() -> RewardTransform:
    """Negates the flags in place and back: a caller's read-only array raises."""

    def update(state, reward, done, valid=None, settle=None):
        np.logical_not(done, out=done)
        np.logical_not(done, out=done)
        return MATCH.update(state, reward, done, valid, settle)

    return RewardTransform(MATCH.init, update)


def drop_in_place(state, where):
    state[where] = 0
    return state


def drop_forgets_the_mean() -> RewardTransform:
    shaping = payback.chain(payback.center(), MATCH)

    def drop(state, where):
        fresh = shaping.init(np.zeros(len(where)))
        return (fresh[0], shaping.drop(state, where)[1])

    return altered(shaping, drop=drop)


def together(count: int, age: int) -> RewardTransform:
    """A time limit that ends several environments at once."""
    return counted(lambda x, n, done, event: x / 2 if np.sum(done & (n > age)) > count else x)


def marked_and_late() -> RewardTransform:
    def update(state, reward, done, valid=None, settle=None):
        inner, steps = state
        inner, shaped = MATCH.update(inner, reward, done, valid, settle)
        return (inner, steps + 1), shaped / 2 if valid is not None and steps > 300 else shaped

    return RewardTransform(lambda example: (MATCH.init(example), 0), update)


def rounded_gamma() -> RewardTransform:
    return each(plain(3, float(np.float32(GAMMA))))


FURTHER: dict[str, RewardTransform] = {
    "wrong for 24 environments": for_batch_of(24),
    "wrong for 99 environments": for_batch_of(99),
    "wrong for 256 environments": for_batch_of(256),
    "wrong for environment 700": wrong_for_environment(700),
    "wrong for episodes of 37 steps": wrong_for_length(37, delay=3),
    "wrong for episodes of 83 steps": wrong_for_length(83, delay=3),
    "wrong for episodes of 120 steps": wrong_for_length(120, delay=3),
    "state leaks after 50 episodes, small debts": leaks_into_next(lambda env: env.episode > 50 and env.steps == 1),
    "keeps what it paid": keeps_what_it_paid(),
    "NaN in invalid rows gets out": poisoned_by_nan(),
    "reset where nobody is valid": resets_where_nobody_is_valid(),
    "init shares its first state": shares_its_first_state(),
    "writes into flags and restores them": writes_and_restores(),
    "drop changes the state it was given": own_match(drop=drop_in_place),
    "drop forgets the neighbour": altered(
        MATCH, drop=lambda state, where: MATCH.drop(state, where | np.roll(where, 1) if len(where) > 2 else where)
    ),
    "drop forgets the mean": drop_forgets_the_mean(),
    "falls due alone, it says": altered(payback.match_at_end(GAMMA), falls_due_alone=True),
    "several end together late": together(3, 90),
    "marked rows after 300 steps": marked_and_late(),
    "event at the first step paid": first_event(),
    "reward of exactly 7 unpaid": on_the_way(lambda env, r, paid: paid - r if r == 7 else paid),
    "reward of exactly -0.5 unpaid": on_the_way(lambda env, r, paid: paid - r if r == -0.5 else paid),
    "gamma in float32": rounded_gamma(),
    "block loses its state after 1000 rows": wrong_block(block_loses_its_state(1000)),
    "block wrong for 20 steps": block_pays(lambda r, d, x: x / 2 if len(r) == 20 else x),
    "block wrong for 64 environments": block_pays(lambda r, d, x: x / 2 if r.shape[1] == 64 else x),
    "settlement below 1e-30 skipped": at_the_end(lambda env, r, paid: 0.0 if abs(paid) < 1e-30 else paid),
    "float32 wrong after 700 steps": counted(
        lambda x, n, done, event: np.where((n > 700) & (x.dtype == np.float32), 1.01 * x, x)
    ),
    "an environment beside a huge one unpaid": only(
        lambda r, d, v, s: len(r) > 1 and np.ptp(np.log10(np.abs(r) + 1e-12)) > 9 and d.any(),
        lambda x: np.where(np.abs(x) < 1e3, 0, x),
    ),
}
