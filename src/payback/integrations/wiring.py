"""Playing a finished stack of Gymnasium wrappers, to see whether what comes out is what the shaping paid."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Gymnasium's environments are generic in types that nobody fills in.

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from itertools import takewhile
from typing import Any

import numpy as np

from payback.core.errors import LawBroken
from payback.integrations.ledger import Ledger, ShapingWarning
from payback.integrations.watch import ROUNDING

STEPS_PER_EPISODE = 10_000
"""Random actions may never end an episode: after so many steps for each asked for, the check stops."""


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the outermost reward with r_t + F′_t as the shaping paid it.

    Takes the finished stack, single or vector, with all that is wrapped around `ShapeReward` or `ShapeVectorReward`.
    Raises LawBroken where a wrapper outside changes the reward (clipping, NormalizeReward, a frame skip that adds
    rewards) or ends episodes behind the shaping's back (a time limit outside), and warns of what may break the law:
    two stacked shapings, a reward wrapper outside that happened to change nothing. Returns the number of episodes.
    The environment is reset afterwards, without debts, and F̄ put back; what the bonus learned stays.

    >>> import gymnasium, payback
    >>> from payback.integrations.gymnasium import ShapeReward
    >>> env = ShapeReward(gymnasium.make("CartPole-v1"), lambda *t: abs(t[2][:, 0]), payback.grm(0.99, 10))
    >>> check_wiring(env, episodes=3)
    3
    >>> check_wiring(gymnasium.wrappers.TransformReward(env, lambda r: min(r, 1.0)))
    Traceback (most recent call last):
    payback.LawBroken: ...
    """
    shapings, outside = _walk(env)
    before = [{**vars(ledger), "watch": deepcopy(ledger.watch)} for ledger in shapings]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapingWarning)
            finished = _play(env, episodes, shapings[0], outside)
            env.reset()
    finally:
        for ledger, saved in zip(shapings, before, strict=True):
            vars(ledger).update(saved)
            ledger.forget(np.ones(ledger.num_envs, dtype=bool))
    _warn_of(shapings, outside, finished)
    return finished


def say_stacked(env: Any, gamma: float | None) -> None:
    """Warn of a shaping inside the one that is being built around `env`; its γ is compared where both are known."""
    inner = next((ledger for _, ledger in _layers(env) if ledger is not None), None)
    if inner is not None:
        _warn(_stacked(2, f"{gamma}, {getattr(inner.transform, 'gamma', None)}"))


def _stacked(count: int, gammas: str) -> str:
    return (
        f"{count} shapings are stacked (gamma {gammas}, the outermost first): the info of the inner ones is "
        "overwritten, and each needs the learner's gamma; add the bonuses up and shape them once"
    )


def _layers(env: Any) -> Iterator[tuple[Any, Ledger | None]]:
    """Yield each wrapper, and the environment within, with its ledger if it is a shaping; the outermost first."""
    while env is not None:
        ledger = vars(env).get("ledger")
        yield env, ledger if isinstance(ledger, Ledger) else None
        env = vars(env).get("env")


def _walk(env: Any) -> tuple[list[Ledger], list[Any]]:
    """Return the ledgers of all shapings, the outermost first, and the wrappers outside the first."""
    layers = list(_layers(env))
    ledgers = [ledger for _, ledger in layers if ledger is not None]
    outside = [layer for layer, _ in takewhile(lambda pair: pair[1] is None, layers)]
    if not ledgers:
        raise ValueError(
            "check_wiring found no ShapeReward or ShapeVectorReward among the wrappers; give it the finished stack"
        )
    return ledgers, outside


def _play(env: Any, episodes: int, ledger: Ledger, outside: list[Any]) -> int:
    vector = hasattr(env, "num_envs")
    env.reset(seed=0)
    env.action_space.seed(0)
    finished = 0
    for step in range(episodes * STEPS_PER_EPISODE):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        columns = [info.get(key) for key in ("extrinsic", "shaped", "owed", "truncated")]
        if any(column is None for column in columns):
            raise LawBroken(f"a wrapper outside the shaping drops its info: {_names(outside)}", law="wiring", step=step)
        row = [np.atleast_1d(np.asarray(x)) for x in (reward, terminated, truncated, *columns)]
        compare(row, step, ledger.settles, _names(outside))
        ended = row[1].astype(bool) | row[2].astype(bool)
        finished += int(np.count_nonzero(ended))
        if finished >= episodes:
            break
        mode = getattr((env.metadata or {}).get("autoreset_mode"), "name", None) if vector else None
        if not vector and ended.any():
            env.reset()
        elif mode == "DISABLED" and ended.any():
            env.reset(options={"reset_mask": ended})
    return finished


def compare(row: list[np.ndarray], step: int, settles: bool, outside: str) -> None:
    """Raise where the reward is not r_t + F′_t, or an episode ended that the shaping goes on with."""
    reward, terminated, truncated, extrinsic, shaped, owed, seen_cut = row
    paid = extrinsic + shaped
    wrong = np.abs(reward - paid) > ROUNDING * (np.abs(extrinsic) + np.abs(shaped)) + 1e-12
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise LawBroken(
            f"at step {step} the shaping paid {paid[k]:.6g} to environment {k}, but {reward[k]:.6g} came out of "
            f"{outside}: loans and repayments no longer cancel. Clip, normalise and add up rewards (frame "
            "skip) inside the shaping, or scale the bonus before its match",
            law="wiring",
            step=step,
            paid=float(reward[k]),
            owed=float(paid[k]),
        )
    ended = terminated.astype(bool) | truncated.astype(bool)
    carried = np.zeros_like(ended) if settles else seen_cut.astype(bool)
    open_ = ended & (owed != 0) & ~carried
    if open_.any():
        k = int(np.flatnonzero(open_)[0])
        raise LawBroken(
            f"at step {step} environment {k} ended with a debt of {owed[k]:.6g} that the shaping did not settle, "
            f"because it was ended outside the shaping, by {outside}; put the time limit inside",
            law="wiring",
            step=step,
            owed=float(owed[k]),
        )


def _warn_of(shapings: list[Ledger], outside: list[Any], finished: int) -> None:
    """Warn of what may break the law although these episodes kept it."""
    if len(shapings) > 1:
        gammas = ", ".join(str(getattr(ledger.transform, "gamma", None)) for ledger in shapings)
        _warn(_stacked(len(shapings), gammas))
    changing = [layer for layer in outside if hasattr(layer, "reward") or "Reward" in type(layer).__name__]
    if changing:
        _warn(
            f"{_names(changing)} outside the shaping can change rewards, although it did not in {finished} episodes; "
            "put it inside"
        )
    if not finished:
        _warn("no episode ended under random actions, so that check_wiring has seen no settlement")


def _warn(words: str) -> None:
    warnings.warn(words, ShapingWarning, stacklevel=4)


def _names(layers: list[Any]) -> str:
    return ", ".join(type(layer).__name__ for layer in layers) or "the shaping itself"
