"""Check how a Gymnasium environment is wired: play the finished stack, find stacked shapings and missing resets."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import numpy as np

from payback.core.errors import InvarianceError, ShapingWarning
from payback.messages import warn
from payback.monitor import Monitor, changed

STEPS_PER_EPISODE = 10_000
"""Random actions may never end an episode: after so many steps for each asked for, the check stops."""


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the outermost reward with r_t + F′_t as the shaping paid it.

    Takes the finished stack, single or vector. Raises InvarianceError where a wrapper outside changes the reward
    (clipping, NormalizeReward, a frame skip) or ends episodes (a time limit outside); warns of two stacked shapings and
    of a reward wrapper outside that happened to change nothing. Returns the number of episodes. Afterwards the
    environment is reset and F̄ restored; what the bonus learned stays. Nothing is recorded.

    >>> import gymnasium, payback
    >>> from payback.integrations.gymnasium import ShapeReward
    >>> env = ShapeReward(gymnasium.make("CartPole-v1"), lambda *t: abs(t[2][:, 0]), payback.grm(0.99, 10))
    >>> check_wiring(env, episodes=3)
    3
    >>> check_wiring(gymnasium.wrappers.TransformReward(env, lambda r: min(r, 1.0)))
    Traceback (most recent call last):
    payback.InvarianceError: ...
    """
    shapings, outside = _walk(env)
    states = [shaping.shaping_state for shaping in shapings]
    with rehearsed(*(shaping.monitor for shaping in shapings)):
        try:
            finished = _play(env, episodes, shapings[0].monitor.ledger.settles, outside)
            env.reset()
        finally:
            for shaping, state in zip(shapings, states, strict=True):
                everywhere = np.ones(len(state.owed), dtype=bool)
                shaping.shaping_state, _ = shaping.monitor.ledger.reset(state, everywhere)
    _warn_of(shapings, outside, finished)
    return finished


@contextmanager
def rehearsed(*monitors: Monitor) -> Generator[None]:
    """Play without warnings, counts and logs: afterwards the monitors are as before, their open episodes given up."""
    before = [dict(vars(monitor)) for monitor in monitors]
    for monitor in monitors:
        monitor.log = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapingWarning)
            yield
    finally:
        for monitor, counts in zip(monitors, before, strict=True):
            vars(monitor).update(counts)
            if monitor.log is not None:
                monitor.log.restart(None)


def warn_stacked(env: Any, gamma: float | None) -> None:
    """Warn of a shaping inside the one that is being built around `env`, with the γ of both."""
    inner = next((layer for layer in _layers(env) if _shapes(layer)), None)
    if inner is not None:
        warn(_stacked(2, f"{gamma}, {_gamma(inner)}"))


def _stacked(count: int, gammas: str) -> str:
    return (
        f"{count} shapings are stacked (gamma {gammas}, the outermost first): the info of the inner ones is "
        "overwritten, and each needs the learner's gamma; add the bonuses up and shape them once"
    )


def _layers(env: Any) -> Iterator[Any]:
    """Yield each wrapper, and the environment within, the outermost first."""
    while env is not None:
        yield env
        env = vars(env).get("env")


def _shapes(layer: Any) -> bool:
    return isinstance(vars(layer).get("monitor"), Monitor)


def _gamma(shaping: Any) -> float | None:
    return getattr(shaping.monitor.ledger.transform, "gamma", None)


def _walk(env: Any) -> tuple[list[Any], list[Any]]:
    """Return all shapings, the outermost first, and the wrappers outside the first."""
    layers = list(_layers(env))
    shapings = [layer for layer in layers if _shapes(layer)]
    outside = list(takewhile(lambda layer: not _shapes(layer), layers))
    if not shapings:
        raise ValueError(
            "check_wiring found no ShapeReward or ShapeVectorReward among the wrappers; give it the finished stack"
        )
    return shapings, outside


def _play(env: Any, episodes: int, settles: bool, outside: list[Any]) -> int:
    vector = hasattr(env, "num_envs")
    env.reset(seed=0)
    env.action_space.seed(0)
    finished = 0
    for step in range(episodes * STEPS_PER_EPISODE):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        columns = [info.get(key) for key in ("extrinsic", "shaped", "owed", "truncated")]
        if any(column is None for column in columns):
            raise InvarianceError(
                f"a wrapper outside the shaping drops its info: {names_of(outside)}", violated="wiring", step=step
            )
        row = [np.atleast_1d(np.asarray(x)) for x in (reward, terminated, truncated, *columns)]
        compare(row, step, settles, names_of(outside))
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
    k = changed(reward, extrinsic, shaped)
    if k is not None:
        paid = float(extrinsic[k] + shaped[k])
        raise InvarianceError(
            f"at step {step} the shaping paid {paid:.6g} to environment {k}, but {reward[k]:.6g} came out of "
            f"{outside}: loans and repayments no longer cancel. Clip, normalise and add up rewards (frame "
            "skip) inside the shaping, or scale the bonus before its match",
            violated="wiring",
            step=step,
            paid=float(reward[k]),
            owed=paid,
        )
    ended = terminated.astype(bool) | truncated.astype(bool)
    carried = np.zeros_like(ended) if settles else seen_cut.astype(bool)
    open_ = ended & (owed != 0) & ~carried
    if open_.any():
        k = int(np.flatnonzero(open_)[0])
        raise InvarianceError(
            f"at step {step} environment {k} ended with a debt of {owed[k]:.6g} that the shaping did not settle, "
            f"because it was ended outside the shaping, by {outside}; put the time limit inside",
            violated="wiring",
            step=step,
            owed=float(owed[k]),
        )


def _warn_of(shapings: list[Any], outside: list[Any], finished: int) -> None:
    """Warn of what may break policy invariance although these episodes kept it."""
    if len(shapings) > 1:
        warn(_stacked(len(shapings), ", ".join(str(_gamma(shaping)) for shaping in shapings)))
    changing = [layer for layer in outside if hasattr(layer, "reward") or "Reward" in type(layer).__name__]
    if changing:
        warn(
            f"{names_of(changing)} outside the shaping can change rewards, although it did not in {finished} episodes; "
            "put it inside"
        )
    if not finished:
        warn_of_no_end()


def warn_of_no_end() -> None:
    """Warn that a check has seen no episode end."""
    warn("no episode ended under random actions, so check_wiring has seen no settlement")


def names_of(layers: Iterable[Any], otherwise: str = "the shaping itself") -> str:
    """Return the names of the wrappers' classes, for a message."""
    return ", ".join(type(layer).__name__ for layer in layers) or otherwise


class MissingResetCheck:
    """Warn once that an environment was stepped after an episode's end without a reset.

    For environments that do not reset themselves (Gymnasium's DISABLED, and single ones): such a step is an autoreset
    row of something inside, which the shaping would take for a transition.

    >>> missing = MissingResetCheck()
    >>> missing.step(np.array([True]), 1)
    >>> missing.reset(None)
    >>> missing.step(None, 2)
    """

    def __init__(self) -> None:
        self._over: np.ndarray | None = None
        self._warned = False

    def reset(self, mask: np.ndarray | None) -> None:
        """Take note of a reset of all environments, or those of the (B,) mask."""
        self._over = None if mask is None or self._over is None else self._over & ~mask

    def step(self, ended: np.ndarray | None, steps: int) -> None:
        """Take note of a step and of the episodes that ended with it; warn of environments that were over before."""
        over, self._over = self._over, ended
        if over is None or self._warned or not np.count_nonzero(over):
            return
        self._warned = True
        warn(
            f"environment {int(np.flatnonzero(over)[0])} was stepped after its episode had ended (step {steps}), "
            "without a reset. If something inside the shaping resets by itself (gymnasium.wrappers.Autoreset, an "
            "environment of your own), its reset row earned a bonus that later steps repay, although the learner "
            "drops that row: put Autoreset outside the shaping, or set metadata['autoreset_mode'] of the vector "
            "environment"
        )
