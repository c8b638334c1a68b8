"""Faults in what is repaid, and when: zero sum or policy invariance is violated.

The first fault of each mechanism is checked by default, the others are marked as slow.
"""

from collections.abc import Callable

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, MATCH, Env, after_each, by_subtraction, counted, each, half, only, own_match, plain


def inverted_end() -> RewardTransform:
    right = plain(3)
    return each(lambda env, reward, done: right(env, reward, not done))


def wrong_gamma(gamma: float, delay: int = 3) -> RewardTransform:
    return each(plain(delay, gamma))


def one_step_paid() -> RewardTransform:
    return at_the_end(lambda env, reward, paid: reward if env.steps == 0 else paid)


def after_the_match(change: Callable[[np.ndarray], np.ndarray]) -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        state, shaped = match.update(state, reward, done, valid, settle)
        return state, change(shaped)

    return RewardTransform(match.init, update)


def standardised_after() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        inner, squares, count = state
        inner, shaped = match.update(inner, reward, done, valid, settle)
        squares, count = squares + float(shaped @ shaped), count + len(shaped)
        return (inner, squares, count), shaped / np.sqrt(squares / count + 1e-8).astype(shaped.dtype)

    return RewardTransform(lambda example: (match.init(example), 0.0, 0), update)


def mean_read_again() -> RewardTransform:
    """Repays F − F̄ with the mean at repayment instead of the one at receipt."""
    right = plain(2)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        mean = env.before / max(env.total, 1)
        shifted = env._replace(loans=tuple(loan - mean for loan in env.loans))
        after, paid = right(shifted, reward - mean, done)
        loans = () if done else (reward, *env.loans)[:2]
        return after._replace(loans=loans, before=env.before + reward), paid

    return each(step)


def potential_not_zeroed() -> RewardTransform:
    """γΦ_{t+1} − Φ_t with Φ_{t+1} = F_t, and no zero at the end."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        return Env() if done else env._replace(before=reward), GAMMA * reward - env.before

    return each(step)


def debt_recursion(delay: int = 3) -> RewardTransform:
    """debt ← debt/γ + F − due: right on paper."""

    def update(state, reward, done, valid=None, settle=None):
        debt, loans = state
        due = np.asarray(GAMMA, reward.dtype) ** -delay * loans[-1]
        shaped = np.where(done, -debt, reward - due)
        new = np.where(done, 0, (debt - due + reward) / np.asarray(GAMMA, reward.dtype))
        moved = np.where(done, 0, np.concatenate((reward[None], loans[:-1])))
        if valid is not None:
            shaped, new, moved = np.where(valid, shaped, 0), np.where(valid, new, debt), np.where(valid, moved, loans)
        return (new, moved), shaped

    def init(example):
        return np.zeros_like(example), np.zeros((delay, len(example)), dtype=example.dtype)

    return RewardTransform(init, update)


def resets_every(count: int) -> RewardTransform:
    """Forgets its loans after so many steps of all, whatever the episodes do."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        total = env.total
        after, paid = right(env._replace(loans=()) if total and total % count == 0 else env, reward, done)
        return after._replace(total=total + 1), paid

    return each(step)


def wrong_for_length(length: int, delay: int) -> RewardTransform:
    return at_the_end(lambda env, reward, paid: 1.5 * paid if env.steps + 1 == length else paid, delay)


def _narrow(state, shaped, done):
    loans = np.clip(state.loans, -6e4, 6e4).astype(np.float16)
    return state._replace(loans=loans.astype(state.loans.dtype)), shaped


def _forgets_small(state, shaped, done):
    return state._replace(loans=np.where(np.abs(state.loans) < 1e-3, 0, state.loans)), shaped


def rounded_gamma() -> RewardTransform:
    return each(plain(3, float(np.float32(GAMMA))))


def last_mean_read_late() -> RewardTransform:
    """F̄ is frozen at receipt, but the settlement corrects it by today's mean."""
    right = plain(2)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        mean = env.before / max(env.total, 1)
        after, paid = right(env, reward - mean, done)
        if done and len(env.loans) == 2:
            paid += (mean - env.before / (env.total + 1)) / GAMMA
        return after._replace(before=env.before + reward), paid

    return each(step)


def scale_read_late() -> RewardTransform:
    """Lends F/σ with σ read before the step, repays with the σ of the repayment."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        sigma = (1.0 + env.before / (1 + env.total)) ** 0.5
        raw = env._replace(loans=tuple(loan / sigma for loan in env.loans))
        after, paid = right(raw, reward / sigma, done)
        loans = () if done else (reward, *env.loans)[:3]
        return after._replace(loans=loans, before=env.before + min(reward * reward, 1e6)), paid

    return each(step)


def delay_grows() -> RewardTransform:
    """After 20 episodes the delay grows from 2 to 4, in mid-buffer: loans of age 3 are dropped."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        delay = 2 if env.episode < 20 else 4
        if done:
            paid = -sum(GAMMA**-k * loan for k, loan in enumerate(env.loans, start=1))
            return Env(episode=env.episode + 1), paid
        due = GAMMA**-delay * env.loans[delay - 1] if len(env.loans) >= delay else 0.0
        return env._replace(loans=(reward, *env.loans)[: min(delay, 3)]), reward - due

    return each(step)


def patience(steps: int) -> RewardTransform:
    """Forgets its loans after so many zero rewards in a row."""
    right = plain(30)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        still = int(env.before) + 1 if reward == 0 else 0
        after, paid = right(env._replace(loans=()) if still >= steps else env, reward, done)
        return after._replace(before=0.0 if done else float(still)), paid

    return each(step)


def keyed_by_reward() -> RewardTransform:
    """Keeps its loans in a dict by their size, so that two equal loans become one."""
    right = plain(4)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        seen = tuple(0.0 if loan in env.loans[:k] else loan for k, loan in enumerate(env.loans))
        return right(env._replace(loans=seen), reward, done)

    return each(step)


def relative_threshold() -> RewardTransform:
    """Leaves out what is a billion times smaller than the largest reward of any episode so far."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        largest = max(env.before, abs(reward))
        loans = tuple(loan if abs(loan) > 1e-9 * largest else 0.0 for loan in env.loans)
        after, paid = right(env._replace(loans=loans), reward, done)
        return after._replace(before=largest), paid

    return each(step)


def wrapping_clock(steps: int) -> RewardTransform:
    """The clock of the ring buffer wraps: one loan is overwritten every so many steps of an episode."""
    return counted(lambda x, n, done, event: np.where(~done & (n == steps), 0 * x, x))


def first_step_ever() -> RewardTransform:
    """Builds its buffer on the first call, and misses an end there."""

    def update(state, reward, done, valid=None, settle=None):
        inner, begun = state
        if not begun:
            return (MATCH.update(inner, reward, np.zeros_like(done), valid, settle)[0], True), reward.copy()
        inner, shaped = MATCH.update(inner, reward, done, valid, settle)
        return (inner, True), shaped

    return RewardTransform(lambda example: (MATCH.init(example), False), update)


def at_the_end(fault: Callable[[Env, float, float], float], delay: int = 3) -> RewardTransform:
    """Change what is paid at the last step."""
    right = plain(delay)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        after, paid = right(env, reward, done)
        return after, fault(env, reward, paid) if done else paid

    return each(step)


def on_the_way(fault: Callable[[Env, float, float], float], delay: int = 3) -> RewardTransform:
    """Change what is paid before the last step."""
    right = plain(delay)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        after, paid = right(env, reward, done)
        return after, paid if done else fault(env, reward, paid)

    return each(step)


def leaks_into_next(keep: Callable[[Env], bool] = lambda env: True) -> RewardTransform:
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        after, paid = right(env, reward, done)
        return after._replace(loans=(reward, *env.loans)[:3]) if done and keep(env) else after, paid

    return each(step)


REPAYMENT: dict[str, dict[str, RewardTransform]] = {
    "the end is missed": {
        "end test inverted": inverted_end(),
        "an end at the first step of all": first_step_ever(),
    },
    "nothing is settled": {
        "no repayment at the end": at_the_end(lambda env, reward, paid: reward),
        "potential not zeroed at the end": potential_not_zeroed(),
        "no match at all": payback.scale(0.1),
        "only centred": payback.center(),
    },
    "the last reward is kept": {
        "last reward kept": at_the_end(lambda env, reward, paid: paid + reward),
        "no settlement after a last reward of 0": at_the_end(lambda env, r, paid: 0.0 if r == 0 else paid),
    },
    "a part is not settled": {
        "settlement forgets the oldest loan": at_the_end(lambda env, r, paid: paid + sum(env.loans[2:3]) * GAMMA**-3),
        "a full buffer at the end loses its oldest loan": at_the_end(
            lambda env, r, paid: paid + GAMMA**-3 * env.loans[2] if env.steps == 3 else paid
        ),
        "only what was paid is taken back": at_the_end(lambda env, r, paid: min(paid, 0.0)),
    },
    "the interest or its discount is wrong": {
        "gamma slightly wrong": wrong_gamma(0.97 + 1e-6),
        "settlement without interest": at_the_end(lambda env, reward, paid: -sum(env.loans)),
        "interest of one step less": on_the_way(
            lambda env, r, paid: r - GAMMA**-2 * env.loans[2] if len(env.loans) == 3 else paid
        ),
        "interest rounded to 4 digits at the end": at_the_end(
            lambda env, r, paid: -sum(round(GAMMA**-k, 4) * x for k, x in enumerate(env.loans, start=1))
        ),
        "no interest": wrong_gamma(1.0),
        "wrong gamma": wrong_gamma(0.99),
        "wrong gamma, long delay": wrong_gamma(0.98, delay=400),
        "gamma in float32": rounded_gamma(),
    },
    "a state that is not reset": {
        "state leaks into the next episode": leaks_into_next(),
        "state leaks from the second episode only": leaks_into_next(lambda env: env.episode == 1),
        "state leaks after one-step episodes": leaks_into_next(lambda env: env.steps == 0 and env.episode > 0),
    },
    "a state that is not reset later on": {
        "state leaks after 50 episodes, small debts": leaks_into_next(lambda env: env.episode > 50 and env.steps == 1),
        "state leaks after a thousand episodes": leaks_into_next(lambda env: env.episode > 1000),
        "state leaks from long episodes only": leaks_into_next(lambda env: env.steps > 300),
        "state leaks after a hundred episodes": leaks_into_next(lambda env: env.episode > 100),
    },
    "very short episodes": {
        "one-step episodes are paid": one_step_paid(),
        "two-step episodes settled twice": at_the_end(lambda env, r, paid: 2 * paid if env.steps == 1 else paid),
    },
    "clipped after the match": {
        "clipped far out after matching": after_the_match(lambda x: np.clip(x, -1e5, 1e5)),
        "clipped after matching": after_the_match(lambda x: np.clip(x, -5, 5)),
        "rewards above 1e20 clipped after matching": only(
            lambda r, d, v, s: True, lambda x: np.clip(x, -1e20, 1e20).astype(x.dtype)
        ),
        "settlements beyond 1e8 cut off": at_the_end(lambda env, r, paid: max(min(paid, 1e8), -1e8)),
    },
    "changed after the match": {
        "standardised after matching": standardised_after(),
        "squashed after matching": after_the_match(np.tanh),
        "positive payments only scaled": after_the_match(lambda x: np.where(x > 0, 1.01 * x, x)),
        "tiny payments dropped": after_the_match(lambda x: np.where(np.abs(x) < 1e-7, 0, x)),
        "a constant added": after_the_match(lambda x: x + 1e-3),
    },
    "statistics read at the wrong time": {
        "mean read again at repayment": mean_read_again(),
        "the mean corrected at the last step": last_mean_read_late(),
        "running scale read at repayment": scale_read_late(),
    },
    "the sign or value of the reward": {
        "reward of exactly -0.5 unpaid": on_the_way(lambda env, r, paid: paid - r if r == -0.5 else paid),
        "negative rewards never repaid": on_the_way(
            lambda env, r, paid: r if len(env.loans) == 3 and env.loans[2] < 0 else paid
        ),
        "sign wrong for negative rewards": on_the_way(lambda env, r, paid: paid - 2 * r if r < 0 else paid),
        "zero rewards end the repayment": on_the_way(lambda env, r, paid: 0.0 if r == 0 else paid),
        "negative zero taken for a reward": on_the_way(
            lambda env, r, paid: paid + 1e-3 if r == 0 and np.signbit(r) else paid
        ),
        "reward of exactly 7 unpaid": on_the_way(lambda env, r, paid: paid - r if r == 7 else paid),
        "loans keyed by their size": keyed_by_reward(),
        "wrong for repeated rewards": only(lambda r, d, v, s: len(r) > 1 and r[0] == r[1] and d.any(), half),
    },
    "small rewards": {
        "loans below 1e-3 forgotten": after_each(_forgets_small),
        "rewards below 1e-25 unpaid": on_the_way(lambda env, r, paid: paid - r if 0 < abs(r) < 1e-25 else paid),
        "rewards below 1e-12 unpaid": on_the_way(lambda env, r, paid: 0.0 if 0 < abs(r) < 1e-12 else paid),
        "rewards below 1e-60 unpaid": on_the_way(lambda env, r, paid: paid - r if 0 < abs(r) < 1e-60 else paid),
        "settlement below 1e-30 skipped": at_the_end(lambda env, r, paid: 0.0 if abs(paid) < 1e-30 else paid),
        "small loans beside an earlier large one dropped": relative_threshold(),
    },
    "large rewards": {
        "no settlement after a very large last reward": at_the_end(
            lambda env, r, paid: 0.0 if abs(r) > 1e5 * max(map(abs, env.loans), default=np.inf) else paid
        ),
        "wrong for enormous rewards": only(lambda r, d, v, s: np.abs(r).max() > 1e10, half),
    },
    "an age within the episode": {
        "no repayment after 2000 steps": on_the_way(lambda env, r, paid: r if env.steps > 2000 else paid),
        "nothing repaid between steps 255 and 258": on_the_way(
            lambda env, r, paid: r if 255 < env.steps < 258 else paid
        ),
        "a clock of 8 bits wraps": wrapping_clock(256),
    },
    "a very late age": {
        "a clock of 15 bits wraps": wrapping_clock(32_768),
    },
    "a count over all of training": {
        "forgets every 512 steps": resets_every(512),
        "forgets every 4096 steps": resets_every(4096),
        "forgets every 10000 steps": resets_every(10_000),
        "no repayment after 2000 steps of all": on_the_way(lambda env, r, paid: r if env.total > 2000 else paid),
        "repayment skipped in the 7th episode": on_the_way(lambda env, r, paid: r if env.episode == 6 else paid),
    },
    "one length of the episode": {
        "wrong for episodes of 37 steps": wrong_for_length(37, delay=3),
        "wrong for episodes of 257 steps": wrong_for_length(257, delay=256),
        "wrong for episodes of 101 steps": wrong_for_length(101, delay=100),
        "wrong for episodes of 128 steps": wrong_for_length(128, delay=128),
        "wrong for episodes of 83 steps": wrong_for_length(83, delay=3),
        "wrong for episodes of 120 steps": wrong_for_length(120, delay=3),
        "wrong for episodes of 180 steps": at_the_end(lambda env, r, paid: 2 * paid if env.steps == 179 else paid),
    },
    "a buffer that loses rewards": {
        "a delay that grows loses loans": delay_grows(),
        "forgets after 12 zero rewards": patience(12),
        "loan one step off for a long delay": on_the_way(
            lambda env, r, paid: r - GAMMA**-299 * env.loans[299] if len(env.loans) == 300 else paid, delay=300
        ),
    },
    "lost digits": {
        "settles by subtraction": own_match(update=by_subtraction),
        "loans in float16": after_each(_narrow),
    },
    "rounding that grows": {
        "rounding grows": debt_recursion(),
    },
    "one dtype": {
        "wrong in float16": only(lambda r, d, v, s: r.dtype == np.float16 and d.any(), half),
        "wrong in float32": only(lambda r, d, v, s: r.dtype == np.float32 and len(r) > 1, half),
    },
    "one dtype, under one condition": {
        "float32 rewards above 1e30 halved": only(
            lambda r, d, v, s: r.dtype == np.float32 and np.abs(r).max() > 1e30, lambda x: x / 2
        ),
        "float32 wrong after 700 steps": counted(
            lambda x, n, done, event: np.where((n > 700) & (x.dtype == np.float32), 1.01 * x, x)
        ),
    },
}
