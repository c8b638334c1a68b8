"""Faults in what is lent and repaid: a mean or scale read late, loans lost, clocks that wrap, settlements cut off."""

from dataclasses import replace

import numpy as np

from payback import RewardTransform

from .conditional_faults import MATCH, counted
from .planting import GAMMA, Env, at_the_end, each, leaks_into_next, on_the_way, only, plain


def last_mean_read_late() -> RewardTransform:
    """F̄ is frozen at receipt, but the settlement corrects it by today's mean."""
    right = plain(2)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        mean = env.before / max(env.total, 1)
        after, paid = right(env, reward - mean, done)
        if done and len(env.loans) == 2:
            paid += (mean - env.before / (env.total + 1)) / GAMMA
        return replace(after, before=env.before + reward), paid

    return each(step)


def scale_read_late() -> RewardTransform:
    """Lends F/σ with σ read before the step, repays with the σ of the repayment."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        sigma = (1.0 + env.before / (1 + env.total)) ** 0.5
        raw = replace(env, loans=tuple(loan / sigma for loan in env.loans))
        after, paid = right(raw, reward / sigma, done)
        loans = () if done else (reward, *env.loans)[:3]
        return replace(after, loans=loans, before=env.before + min(reward * reward, 1e6)), paid

    return each(step)


def delay_grows() -> RewardTransform:
    """After 20 episodes the delay grows from 2 to 4, in mid-buffer: loans of age 3 are dropped."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        delay = 2 if env.episode < 20 else 4
        if done:
            paid = -sum(GAMMA**-k * loan for k, loan in enumerate(env.loans, start=1))
            return Env(episode=env.episode + 1), paid
        due = GAMMA**-delay * env.loans[delay - 1] if len(env.loans) >= delay else 0.0
        return replace(env, loans=(reward, *env.loans)[: min(delay, 3)]), reward - due

    return each(step)


def patience(steps: int) -> RewardTransform:
    """Forgets its loans after so many zero rewards in a row."""
    right = plain(30)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        still = int(env.before) + 1 if reward == 0 else 0
        after, paid = right(replace(env, loans=()) if still >= steps else env, reward, done)
        return replace(after, before=0.0 if done else float(still)), paid

    return each(step)


def keyed_by_reward() -> RewardTransform:
    """Keeps its loans in a dict by their size, so that two equal loans become one."""
    right = plain(4)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        seen = tuple(0.0 if loan in env.loans[:k] else loan for k, loan in enumerate(env.loans))
        return right(replace(env, loans=seen), reward, done)

    return each(step)


def relative_threshold() -> RewardTransform:
    """Leaves out what is a billion times smaller than the largest reward of any episode so far."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        largest = max(env.before, abs(reward))
        loans = tuple(loan if abs(loan) > 1e-9 * largest else 0.0 for loan in env.loans)
        after, paid = right(replace(env, loans=loans), reward, done)
        return replace(after, before=largest), paid

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


def every_call(count: int) -> RewardTransform:
    """A counter outside the state: every so many calls a payment is left out."""
    calls = [0]

    def update(state, reward, done, valid=None, settle=None):
        calls[0] += 1
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return new, 0 * shaped if calls[0] % count == 0 else shaped

    return RewardTransform(MATCH.init, update)


LOANS: dict[str, RewardTransform] = {
    "the mean corrected at the last step": last_mean_read_late(),
    "running scale read at repayment": scale_read_late(),
    "a delay that grows loses loans": delay_grows(),
    "forgets after 12 zero rewards": patience(12),
    "loans keyed by their size": keyed_by_reward(),
    "small loans beside an earlier large one dropped": relative_threshold(),
    "a clock of 8 bits wraps": wrapping_clock(256),
    "a clock of 15 bits wraps": wrapping_clock(32_768),
    "an end at the first step of all": first_step_ever(),
    "every 1000th call unpaid": every_call(1000),
    "wrong for episodes of 180 steps": at_the_end(lambda env, r, paid: 2 * paid if env.steps == 179 else paid),
    "a full buffer at the end loses its oldest loan": at_the_end(
        lambda env, r, paid: paid + GAMMA**-3 * env.loans[2] if env.steps == 3 else paid
    ),
    "no settlement after a last reward of 0": at_the_end(lambda env, r, paid: 0.0 if r == 0 else paid),
    "only what was paid is taken back": at_the_end(lambda env, r, paid: min(paid, 0.0)),
    "settlements beyond 1e8 cut off": at_the_end(lambda env, r, paid: max(min(paid, 1e8), -1e8)),
    "interest rounded to 4 digits at the end": at_the_end(
        lambda env, r, paid: -sum(round(GAMMA**-k, 4) * x for k, x in enumerate(env.loans, start=1))
    ),
    "state leaks after one-step episodes": leaks_into_next(lambda env: env.steps == 0 and env.episode > 0),
    "repayment skipped in the 7th episode": on_the_way(lambda env, r, paid: r if env.episode == 6 else paid),
    "negative zero taken for a reward": on_the_way(
        lambda env, r, paid: paid + 1e-3 if r == 0 and np.signbit(r) else paid
    ),
    "float32 rewards above 1e30 halved": only(
        lambda r, d, v, s: r.dtype == np.float32 and np.abs(r).max() > 1e30, lambda x: x / 2
    ),
}
