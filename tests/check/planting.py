"""How a fault is planted: one change to a plain, correct loop, or to one part of a correct match."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import payback
from payback import RewardTransform

GAMMA = 0.97
MATCH = payback.match_after(GAMMA, 3)
WHEN = payback.match_when(GAMMA)


def after_each(change) -> RewardTransform:
    """A correct match, but for what `change(state, shaped, done)` makes of its answers; done only on transitions."""

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return change(new, shaped, done if valid is None else done & valid)

    return RewardTransform(MATCH.init, update)


def counted(
    pay: Callable[..., np.ndarray] | None = None,
    tell: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    match: payback.Match = MATCH,
) -> RewardTransform:
    """A correct match that counts each episode's steps, for `pay(shaped, age, done, settle)` and `tell(owed, age)`."""

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
    return payback.Match(init, update, gamma=match.gamma, owed=owed, drop=drop, falls_due_alone=match.falls_due_alone)


def own_match(owed=None, drop=None, update=None) -> RewardTransform:
    """match_at_end as a user would write it: the state is the debt."""

    def right(state, reward, done, valid=None, settle=None):
        shaped = np.where(done, -state, reward)
        new = np.where(done, 0, (state + reward) / np.asarray(GAMMA, reward.dtype))
        if valid is not None:
            shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
        return new, shaped

    return payback.Match(
        np.zeros_like,
        update or right,
        gamma=GAMMA,
        owed=owed or (lambda state: state.copy()),
        drop=drop or (lambda state, where: np.where(where, 0, state)),
    )


def by_subtraction(state, reward, done, valid=None, settle=None):
    """Subtracts the last reward from a sum that holds it."""
    debt = state + reward
    shaped = np.where(done, reward - debt, reward)
    new = np.where(done, 0, debt / np.asarray(GAMMA, reward.dtype))
    if valid is not None:
        shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
    return new, shaped


class Env(NamedTuple):
    """One environment's side of the plain transform: its loans, newest first, and whatever a fault needs."""

    loans: tuple[float, ...] = ()
    steps: int = 0
    episode: int = 0
    total: int = 0
    before: float = 0.0


Step = Callable[[Env, float, bool], tuple[Env, float]]


def plain(delay: int, gamma: float = GAMMA) -> Step:
    """(hyperparam_tuning), as anyone would write it."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        if done:
            paid = -sum(gamma**-k * loan for k, loan in enumerate(env.loans, start=1))
            return Env(episode=env.episode + 1, total=env.total + 1), paid
        due = gamma**-delay * env.loans[delay - 1] if len(env.loans) >= delay else 0.0
        loans = (reward, *env.loans)[:delay]
        return Env(loans, env.steps + 1, env.episode, env.total + 1, env.before), reward - due

    return step


def each(step: Step, invalid_pays: bool = False, invalid_moves: bool = False) -> RewardTransform:
    """Run the step for every environment by itself."""

    def update(state, reward, done, valid=None, settle=None):
        envs, shaped = list(state), np.zeros_like(reward)
        for b in range(len(reward)):
            live = valid is None or bool(valid[b])
            if live or invalid_moves:
                envs[b], shaped[b] = step(state[b], float(reward[b]), bool(done[b]) and live)
            if not live:
                shaped[b] = reward[b] if invalid_pays else 0
        return tuple(envs), shaped

    return RewardTransform(lambda example: (Env(),) * len(example), update)


def only(when: Callable[..., bool], fault: Callable[[np.ndarray], np.ndarray], match=None) -> RewardTransform:
    """A correct match, but for what `fault` does to the payments of calls that meet a condition."""
    match = match or payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        state, shaped = match.update(state, reward, done, valid, settle)
        return state, fault(shaped) if when(reward, done, valid, settle) else shaped

    return RewardTransform(match.init, update)


def half(shaped: np.ndarray) -> np.ndarray:
    return shaped / 2
