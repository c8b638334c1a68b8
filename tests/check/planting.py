"""How a fault is planted: one change to a plain, right loop, or to one part of a right match."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import payback
from payback import RewardTransform

GAMMA = 0.97


@dataclass(frozen=True)
class Env:
    """One environment's side of the plain transform: its loans, newest first, and whatever a fault needs."""

    loans: tuple[float, ...] = ()
    steps: int = 0
    episode: int = 0
    total: int = 0
    before: float = 0.0


def altered(match: RewardTransform, **changes: Any) -> RewardTransform:
    """Return a match with other parts."""
    return replace(match, **changes)


Step = Callable[[Env, float, bool], tuple[Env, float]]


def plain(delay: int, gamma: float = GAMMA) -> Step:
    """(hyperparam_tuning), as anyone would write it."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        if done:
            paid = -sum(gamma**-k * loan for k, loan in enumerate(env.loans, start=1))
            return Env(episode=env.episode + 1, total=env.total + 1), paid
        due = gamma**-delay * env.loans[delay - 1] if len(env.loans) >= delay else 0.0
        loans = (reward, *env.loans)[:delay]
        return replace(env, loans=loans, steps=env.steps + 1, total=env.total + 1), reward - due

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
        return replace(after, loans=(reward, *env.loans)[:3]) if done and keep(env) else after, paid

    return each(step)


def wrong_block(change) -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def rollout(state, rewards, dones, valid, settle):
        return change(match, state, rewards, dones, valid, settle)

    return altered(match, _block=rollout)


def only(when: Callable[..., bool], fault: Callable[[np.ndarray], np.ndarray], match=None) -> RewardTransform:
    """A right match, but for what `fault` does to the payments of calls that meet a condition."""
    match = match or payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        state, shaped = match.update(state, reward, done, valid, settle)
        return state, fault(shaped) if when(reward, done, valid, settle) else shaped

    return RewardTransform(match.init, update)


def half(shaped: np.ndarray) -> np.ndarray:
    return shaped / 2
