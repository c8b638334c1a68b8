"""Faults that mix up the environments of a batch, or only show for one number of them."""

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, MATCH, after_each, counted, half, only


def resets_all_when_one_ends() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(state, reward, done, valid, settle)
        return (new._replace(loans=new.loans * 0) if done.any() else new), shaped

    return RewardTransform(match.init, update)


def forgets_when_all_end() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(state, reward, done, valid, settle)
        return new, shaped * 0 if len(done) > 1 and done.all() else shaped

    return RewardTransform(match.init, update)


def wrong_for_environment(number: int) -> RewardTransform:
    def fault(shaped: np.ndarray) -> np.ndarray:
        return np.where((np.arange(len(shaped)) == number) & (shaped < 0), 2 * shaped, shaped)

    return only(lambda r, d, v, s: len(r) > number, fault)


def _shares(state, shaped, done):
    return state, np.where(done, shaped[done].mean() if done.any() else 0, shaped)


def _swaps(state, shaped, done):
    ending = np.flatnonzero(done)
    if len(ending) == 2:
        shaped = shaped.copy()
        shaped[ending] = shaped[ending[::-1]]
    return state, shaped


def for_batch_of(size: int) -> RewardTransform:
    return only(lambda r, d, v, s: len(r) == size and d.any(), half)


def together(count: int, age: int) -> RewardTransform:
    """A time limit that ends several environments at once."""
    return counted(lambda x, n, done, event: x / 2 if np.sum(done & (n > age)) > count else x)


def mixed(state_change=None, pay_change=None, match=MATCH) -> RewardTransform:
    """A correct match, but for `state_change(state, reward, done)` and `pay_change(shaped, reward, done)`."""

    def update(state, reward, done, valid=None, settle=None):
        ends = np.asarray(done, bool) & (True if valid is None else np.asarray(valid, bool))
        new, shaped = match.update(state, reward, done, valid, settle)
        new = new if state_change is None else state_change(new, reward, ends)
        return new, shaped if pay_change is None else pay_change(shaped, reward, ends)

    return RewardTransform(match.init, update)


def _rolled(state, reward, ends):
    return state._replace(loans=np.roll(state.loans, 1, axis=1)) if len(reward) > 2 and ends.sum() == 2 else state


def _sorted_back(shaped, reward, ends):
    order = np.argsort(reward, kind="stable")
    return shaped[order][np.argsort(order)] if len(reward) != 6 else shaped[order]


def _last_ends_all(state, reward, ends):
    return state._replace(loans=0 * state.loans) if len(reward) > 1 and ends[-1] and not ends[0] else state


def _only_half_end(shaped, reward, ends):
    return np.where(ends, 0.9 * shaped, shaped) if 2 * ends.sum() == len(reward) else shaped


def small_ids(bits: int) -> RewardTransform:
    """Numbers its environments in too few bits: environment 2^bits pays what environment 0 owes."""

    def pay(shaped, reward, ends):
        number = np.arange(len(reward)) % 2**bits
        return np.where(ends, shaped[number], shaped)

    return mixed(pay_change=pay)


ENVIRONMENTS: dict[str, dict[str, RewardTransform]] = {
    "one end resets all": {
        "all are reset when one ends": resets_all_when_one_ends(),
        "the last environment's end resets all": mixed(_last_ends_all),
    },
    "several ends at once, or none": {
        "wrong only when all end at once": forgets_when_all_end(),
        "wrong when half of them end": mixed(pay_change=_only_half_end),
        "several end together late": together(3, 90),
        "wrong when nobody ends": only(lambda r, d, v, s: len(r) > 1 and not d.any(), lambda x: x * 1.001),
    },
    "mixed up": {
        "two that end together mixed up": after_each(_swaps),
        "settlements shared between environments": after_each(_shares),
        "loans rolled when two of three end": mixed(_rolled),
        "payments sorted for 6 environments": mixed(pay_change=_sorted_back),
    },
    "one environment": {
        "environments numbered in 4 bits": small_ids(4),
        "environments numbered in 8 bits": small_ids(8),
        "wrong for environment 17": wrong_for_environment(17),
        "wrong for the fourth environment": only(
            lambda r, d, v, s: len(r) > 3, lambda x: np.where((np.arange(len(x)) == 3) & (x < 0), 2 * x, x)
        ),
        "wrong for environment 128": wrong_for_environment(128),
        "wrong for environment 700": wrong_for_environment(700),
        "an environment beside a huge one unpaid": only(
            lambda r, d, v, s: len(r) > 1 and np.ptp(np.log10(np.abs(r) + 1e-12)) > 9 and d.any(),
            lambda x: np.where(np.abs(x) < 1e3, 0, x),
        ),
    },
    "one number of environments": {
        "wrong for 8 environments": for_batch_of(8),
        "wrong for 99 environments": for_batch_of(99),
        "wrong for 16 environments": for_batch_of(16),
        "wrong for 24 environments": for_batch_of(24),
        "wrong for 32 environments": for_batch_of(32),
        "wrong for 64 environments": for_batch_of(64),
        "wrong for 150 environments": for_batch_of(150),
        "wrong for 256 environments": for_batch_of(256),
        "wrong for 384 environments": for_batch_of(384),
    },
}
