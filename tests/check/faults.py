"""Re-creations, in our own code, of faults found in shaping code: each is one change to a plain, right loop."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, Env, altered, at_the_end, each, half, leaks_into_next, on_the_way, only, plain, wrong_block


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
        shifted = replace(env, loans=tuple(loan - mean for loan in env.loans))
        after, paid = right(shifted, reward - mean, done)
        loans = () if done else (reward, *env.loans)[:2]
        return replace(after, loans=loans, before=env.before + reward), paid

    return each(step)


def potential_not_zeroed() -> RewardTransform:
    """γΦ_{t+1} − Φ_t with Φ_{t+1} = F_t, and no zero at the end."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        return Env() if done else replace(env, before=reward), GAMMA * reward - env.before

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


def shared_memory() -> RewardTransform:
    """Keeps its loans in one array that it writes into: a state kept for later is not what it was."""
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(match.init(reward)._replace(loans=state.copy()), reward, done, valid, settle)
        state[:] = new.loans
        return state, shaped

    return RewardTransform(lambda example: match.init(example).loans, update)


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


def block_forgets_border(match, state, rewards, dones, valid, settle):
    return match._block(match.init(rewards[0]), rewards, dones, valid, settle)


def block_keeps_old_state(match, state, rewards, dones, valid, settle):
    return state, match._block(state, rewards, dones, valid, settle)[1]


def wrong_debt() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)
    return altered(match, owed=lambda state: GAMMA * match.owed(state))


def drop_all() -> RewardTransform:
    match = payback.match_after(GAMMA, 3)
    return altered(match, drop=lambda state, where: match.drop(state, where | True))


def event_takes_own_reward() -> RewardTransform:
    """An event settles, and forgets to keep its own reward as a new loan."""
    match = payback.match_when(GAMMA)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(state, reward, done, valid, settle)
        if settle is None:
            return new, shaped
        return new._replace(lent=np.where(settle & ~done, 0, new.lent)), shaped

    return RewardTransform(match.init, update)


FAULTS: dict[str, RewardTransform] = {
    "end test inverted": inverted_end(),
    "no repayment at the end": at_the_end(lambda env, reward, paid: reward),
    "last reward kept": at_the_end(lambda env, reward, paid: paid + reward),
    "settlement forgets the oldest loan": at_the_end(lambda env, r, paid: paid + sum(env.loans[2:3]) * GAMMA**-3),
    "settlement without interest": at_the_end(lambda env, reward, paid: -sum(env.loans)),
    "state leaks into the next episode": leaks_into_next(),
    "state leaks from the second episode only": leaks_into_next(lambda env: env.episode == 1),
    "state leaks from long episodes only": leaks_into_next(lambda env: env.steps > 300),
    "state leaks after a hundred episodes": leaks_into_next(lambda env: env.episode > 100),
    "one-step episodes are paid": one_step_paid(),
    "clipped after matching": after_the_match(lambda x: np.clip(x, -5, 5)),
    "clipped far out after matching": after_the_match(lambda x: np.clip(x, -1e5, 1e5)),
    "standardised after matching": standardised_after(),
    "squashed after matching": after_the_match(np.tanh),
    "positive payments only scaled": after_the_match(lambda x: np.where(x > 0, 1.01 * x, x)),
    "tiny payments dropped": after_the_match(lambda x: np.where(np.abs(x) < 1e-7, 0, x)),
    "a constant added": after_the_match(lambda x: x + 1e-3),
    "wrong gamma": wrong_gamma(0.99),
    "gamma slightly wrong": wrong_gamma(0.97 + 1e-6),
    "wrong gamma, long delay": wrong_gamma(0.98, delay=400),
    "no interest": wrong_gamma(1.0),
    "potential not zeroed at the end": potential_not_zeroed(),
    "bonus on autoreset rows": each(plain(3), invalid_pays=True),
    "autoreset rows move the clock": each(plain(3), invalid_moves=True),
    "mean read again at repayment": mean_read_again(),
    "negative rewards never repaid": on_the_way(
        lambda env, r, paid: r if len(env.loans) == 3 and env.loans[2] < 0 else paid
    ),
    "no repayment after 2000 steps": on_the_way(lambda env, r, paid: r if env.steps > 2000 else paid),
    "no repayment after 2000 steps of all": on_the_way(lambda env, r, paid: r if env.total > 2000 else paid),
    "nothing repaid between steps 255 and 258": on_the_way(lambda env, r, paid: r if 255 < env.steps < 258 else paid),
    "loan one step off for a long delay": on_the_way(
        lambda env, r, paid: r - GAMMA**-299 * env.loans[299] if len(env.loans) == 300 else paid, delay=300
    ),
    "zero rewards end the repayment": on_the_way(lambda env, r, paid: 0.0 if r == 0 else paid),
    "rounding grows": debt_recursion(),
    "state in shared memory": shared_memory(),
    "all are reset when one ends": resets_all_when_one_ends(),
    "wrong only when all end at once": forgets_when_all_end(),
    "block forgets its border": wrong_block(block_forgets_border),
    "block hands back the old state": wrong_block(block_keeps_old_state),
    "owed is wrong": wrong_debt(),
    "drop forgets everyone": drop_all(),
    "an event forgets its own reward": event_takes_own_reward(),
    "wrong for the fourth environment": only(
        lambda r, d, v, s: len(r) > 3, lambda x: np.where((np.arange(len(x)) == 3) & (x < 0), 2 * x, x)
    ),
    "wrong in float32": only(lambda r, d, v, s: r.dtype == np.float32 and len(r) > 1, half),
    "wrong where rows are marked": only(lambda r, d, v, s: v is not None and v.all() and d.any(), half),
    "wrong where an event ends the episode": only(
        lambda r, d, v, s: s is not None and (s & d).any(), half, payback.match_when(GAMMA)
    ),
    "wrong for enormous rewards": only(lambda r, d, v, s: np.abs(r).max() > 1e10, half),
    "wrong for repeated rewards": only(lambda r, d, v, s: len(r) > 1 and r[0] == r[1] and d.any(), half),
    "wrong when nobody ends": only(lambda r, d, v, s: len(r) > 1 and not d.any(), lambda x: x * 1.001),
    "no match at all": payback.scale(0.1),
    "only centred": payback.center(),
}
