"""Faults that nobody listed: each went unseen by an earlier `check_transform`, or is named in no paper or issue."""

from dataclasses import replace

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, Env, at_the_end, each, leaks_into_next, on_the_way, only, plain, wrong_block

MATCH = payback.match_after(GAMMA, 3)


def resets_every(count: int) -> RewardTransform:
    """Forgets its loans after so many steps of all, whatever the episodes do."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        total = env.total
        after, paid = right(replace(env, loans=()) if total and total % count == 0 else env, reward, done)
        return replace(after, total=total + 1), paid

    return each(step)


def wrong_for_length(length: int, delay: int) -> RewardTransform:
    return at_the_end(lambda env, reward, paid: 1.5 * paid if env.steps + 1 == length else paid, delay)


def wrong_for_environment(number: int) -> RewardTransform:
    def fault(shaped: np.ndarray) -> np.ndarray:
        return np.where((np.arange(len(shaped)) == number) & (shaped < 0), 2 * shaped, shaped)

    return only(lambda r, d, v, s: len(r) > number, fault)


def keeps_its_example() -> RewardTransform:
    """Takes the values of the example, which only gives shape and dtype, for a first loan."""

    def init(example):
        state = MATCH.init(example)
        return state._replace(loans=np.concatenate((example[None], state.loans[1:])))

    return RewardTransform(init, MATCH.update)


def keeps_the_callers_array() -> RewardTransform:
    """Keeps the reward array it was given as its loan of D = 1, without a copy."""

    def update(state, reward, done, valid=None, settle=None):
        due = state / np.asarray(GAMMA, reward.dtype)
        shaped = np.where(done, -due, reward - due)
        new = np.where(done, 0, reward) if done.any() else reward
        if valid is not None:
            shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
        return new, shaped

    return RewardTransform(np.zeros_like, update)


def _after_each(change) -> RewardTransform:
    """A right match, but for what `change(state, shaped, done)` makes of its answers; done only on transitions."""

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return change(new, shaped, done if valid is None else done & valid)

    return RewardTransform(MATCH.init, update)


def _narrow(state, shaped, done):
    loans = np.clip(state.loans, -6e4, 6e4).astype(np.float16)
    return state._replace(loans=loans.astype(state.loans.dtype)), shaped


def _forgets_small(state, shaped, done):
    return state._replace(loans=np.where(np.abs(state.loans) < 1e-3, 0, state.loans)), shaped


def _shares(state, shaped, done):
    return state, np.where(done, shaped[done].mean() if done.any() else 0, shaped)


def _swaps(state, shaped, done):
    ending = np.flatnonzero(done)
    if len(ending) == 2:
        shaped = shaped.copy()
        shaped[ending] = shaped[ending[::-1]]
    return state, shaped


def ends_dropped() -> RewardTransform:
    """Beside one invalid row, the end of no environment is noticed."""

    def update(state, reward, done, valid=None, settle=None):
        return MATCH.update(state, reward, done & (valid is None or valid.all()), valid, settle)

    return RewardTransform(MATCH.init, update)


def late_at_borders(match, state, rewards, dones, valid, settle):
    """A block pays its first repayment one row late."""
    state, shaped = match._block(state, rewards, dones, valid, settle)
    if len(rewards) < 2 or dones[0].any() or valid is not None:
        return state, shaped
    shaped = np.array(shaped)
    shaped[1], shaped[0] = shaped[1] - rewards[0] + shaped[0], rewards[0]
    return state, shaped


RARE: dict[str, RewardTransform] = {
    "forgets every 512 steps": resets_every(512),
    "forgets every 4096 steps": resets_every(4096),
    "forgets every 10000 steps": resets_every(10_000),
    "state leaks after a thousand episodes": leaks_into_next(lambda env: env.episode > 1000),
    "wrong for episodes of 101 steps": wrong_for_length(101, delay=100),
    "wrong for episodes of 128 steps": wrong_for_length(128, delay=128),
    "wrong for episodes of 257 steps": wrong_for_length(257, delay=256),
    "wrong for environment 17": wrong_for_environment(17),
    "wrong for environment 128": wrong_for_environment(128),
    "keeps its example": keeps_its_example(),
    "keeps the caller's array": keeps_the_callers_array(),
    "rewards below 1e-12 unpaid": on_the_way(lambda env, r, paid: 0.0 if 0 < abs(r) < 1e-12 else paid),
    "repayment late at rollout borders": wrong_block(late_at_borders),
    "interest of one step less": on_the_way(
        lambda env, r, paid: r - GAMMA**-2 * env.loans[2] if len(env.loans) == 3 else paid
    ),
    "loans in float16": _after_each(_narrow),
    "loans below 1e-3 forgotten": _after_each(_forgets_small),
    "settlements shared between environments": _after_each(_shares),
    "two that end together mixed up": _after_each(_swaps),
    "ends dropped beside an invalid row": ends_dropped(),
    "two-step episodes settled twice": at_the_end(lambda env, r, paid: 2 * paid if env.steps == 1 else paid),
    "sign wrong for negative rewards": on_the_way(lambda env, r, paid: paid - 2 * r if r < 0 else paid),
}
