"""Faults that mix up the environments of a batch, or show for one number of them."""

import numpy as np

from payback import RewardTransform

from .conditional_faults import MATCH, for_batch_of


def mixed(state_change=None, pay_change=None, match=MATCH) -> RewardTransform:
    """A right match, but for `state_change(state, reward, done)` and `pay_change(shaped, reward, done)`."""

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


ENVIRONMENTS: dict[str, RewardTransform] = {
    "loans rolled when two of three end": mixed(_rolled),
    "payments sorted for 6 environments": mixed(pay_change=_sorted_back),
    "the last environment's end resets all": mixed(_last_ends_all),
    "wrong when half of them end": mixed(pay_change=_only_half_end),
    "environments numbered in 8 bits": small_ids(8),
    "environments numbered in 4 bits": small_ids(4),
    "wrong for 384 environments": for_batch_of(384),
    "wrong for 150 environments": for_batch_of(150),
}
