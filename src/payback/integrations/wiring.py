"""Find what is wrapped around a shaping: play the finished stack, or read the call stack of its first steps.

A wrapper does not know what is wrapped around it, but while it steps, the wrappers around it are on the call stack.
"""

# pyright: standard
from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType
from typing import Any

import numpy as np

from payback.core.errors import InvarianceError, ShapingWarning
from payback.messages import warn
from payback.monitor import Monitor, changed

STEPS_PER_EPISODE = 10_000  # after so many for each episode asked for, the check stops
NO_END = "no episode ended under random actions, so check_wiring has seen no settlement"
LOOKS = 16  # steps at which the call stack is read: enough for a frame skip, and for steps in a first reset
NORMALISING = ("NormalizeReward", "NormalizeVecReward")  # Gymnasium's wrapper, and purejaxrl's
CALLS = ("step", "step_wait", "reset")


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the outermost reward with r_t + F′_t as the shaping paid it.

    Takes the finished stack, single or vector. Raises InvarianceError where a wrapper outside changes the reward or
    ends episodes; warns of two stacked shapings and of a reward wrapper outside that happened to change nothing.
    Returns the number of episodes. Afterwards F̄ is restored, and what the bonus learned stays. Nothing is recorded.

    >>> import gymnasium, payback
    >>> from payback.integrations.gymnasium import ShapeReward
    >>> env = ShapeReward(gymnasium.make("CartPole-v1"), lambda *t: abs(t[2][:, 0]), payback.grm(0.99, 10))
    >>> check_wiring(env, episodes=3)
    3
    >>> check_wiring(gymnasium.wrappers.TransformReward(env, lambda r: min(r, 1.0)))
    Traceback (most recent call last):
    payback.InvarianceError: ...
    """
    layers = list(_layers(env))
    shapings = [layer for layer in layers if _shapes(layer)]
    outside = list(takewhile(lambda layer: not _shapes(layer), layers))
    if not shapings:
        raise ValueError("check_wiring found no ShapeReward or ShapeVectorReward; give it the finished stack")
    states = [shaping.shaping_state for shaping in shapings]
    with rehearsed(*(shaping.monitor for shaping in shapings)):
        try:
            finished = _play(env, episodes, shapings[0].monitor.ledger.settles, outside)
            env.reset()
        finally:
            for shaping, state in zip(shapings, states, strict=True):
                everywhere = np.ones(len(state.owed), dtype=bool)
                shaping.shaping_state, _ = shaping.monitor.ledger.reset(state, everywhere)
    warn_stacked(env)
    changing = [layer for layer in outside if hasattr(layer, "reward") or "Reward" in type(layer).__name__]
    if changing:
        warn(f"{names_of(changing)} outside the shaping can change rewards, although it did not here; put it inside")
    if not finished:
        warn(NO_END)
    return finished


@contextmanager
def rehearsed(*monitors: Monitor) -> Generator[None]:
    """Play without warnings, counts and logs; afterwards the monitors are as before, their open episodes given up."""
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


def warn_stacked(env: Any, *outer: float | None) -> None:
    """Warn if there are several shapings: those in `env`, and one that is built around it with the γ `outer`."""
    inner = [layer.monitor.ledger.transform for layer in _layers(env) if _shapes(layer)]
    gammas = [*outer, *(getattr(transform, "gamma", None) for transform in inner)]
    if len(gammas) > 1:
        why = "which overwrite each other's info, and each needs the learner's gamma"
        stacked = f"{len(gammas)} shapings are stacked (gamma {', '.join(map(str, gammas))}, the outermost first)"
        warn(f"{stacked}, {why}; add the bonuses up and shape them once")


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = vars(env).get("env")


def _shapes(layer: Any) -> bool:
    return isinstance(vars(layer).get("monitor"), Monitor)


def _play(env: Any, episodes: int, settles: bool, outside: list[Any]) -> int:
    env.reset(seed=0)
    env.action_space.seed(0)
    finished = 0
    for step in range(episodes * STEPS_PER_EPISODE):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        columns = [info.get(key) for key in ("extrinsic", "shaped", "owed", "truncated")]
        if any(column is None for column in columns):
            words = f"a wrapper outside the shaping drops its info: {names_of(outside)}"
            raise InvarianceError(words, violated="wiring", step=step)
        row = [np.atleast_1d(np.asarray(x)) for x in (reward, terminated, truncated, *columns)]
        ended = compare(row, step, settles, names_of(outside))
        finished += int(np.count_nonzero(ended))
        if finished >= episodes:
            break
        mode = getattr((env.metadata or {}).get("autoreset_mode"), "name", None)
        if ended.any() and not hasattr(env, "num_envs"):
            env.reset()
        elif ended.any() and mode == "DISABLED":
            env.reset(options={"reset_mask": ended})
    return finished


def compare(row: list[np.ndarray], step: int, settles: bool, outside: str) -> np.ndarray:
    """Raise where the reward is not r_t + F′_t, or an episode ended that the shaping goes on with; return the ends."""
    reward, terminated, truncated, extrinsic, shaped, owed, seen_cut = row
    k = changed(reward, extrinsic, shaped)
    if k is not None:
        paid = float(extrinsic[k] + shaped[k])
        what = f"at step {step} the shaping paid {paid:.6g} to environment {k}, but {reward[k]:.6g} came out"
        remedy = "Clip, normalise and add up rewards (frame skip) inside it, or scale the bonus before its match"
        words = f"{what} of {outside}: loans and repayments no longer cancel. {remedy}"
        raise InvarianceError(words, violated="wiring", step=step, paid=float(reward[k]), owed=paid)
    ended = terminated.astype(bool) | truncated.astype(bool)
    carried = np.zeros_like(ended) if settles else seen_cut.astype(bool)
    open_ = ended & (owed != 0) & ~carried
    if open_.any():
        k = int(np.argmax(open_))
        found = f"at step {step} environment {k} ended with a debt of {owed[k]:.6g} that the shaping did not settle"
        words = f"{found}, because it was ended outside the shaping, by {outside}; put the time limit inside"
        raise InvarianceError(words, violated="wiring", step=step, owed=float(owed[k]))
    return ended


def names_of(layers: Iterable[Any], otherwise: str = "the shaping itself") -> str:
    """Name the wrappers' classes."""
    return ", ".join(type(layer).__name__ for layer in layers) or otherwise


def warn_missing_reset(over: np.ndarray, steps: int) -> bool:
    """Warn of an environment that is stepped although its episode is over; return whether there is one."""
    late = np.flatnonzero(over)
    if len(late):
        what = f"environment {late[0]} was stepped after its episode had ended (step {steps}), without a reset"
        why = "If something inside the shaping resets by itself, the learner drops a reset row that earned a bonus"
        warn(f"{what}. {why}: put Autoreset outside, or set metadata['autoreset_mode'] of the vector environment")
    return len(late) > 0


class OuterWrapperCheck:
    """Read who calls the shaping's first steps, and warn once of a wrapper that undoes its guarantee."""

    def __init__(self, left: int = LOOKS) -> None:
        self.left = left  # 0 stops it
        self._before: list[FrameType] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_before": []}

    def look(self) -> None:
        """Read the stack of the step that is being taken, and warn of the first wrapper that changes rewards."""
        self.left -= 1
        # No shaping, because stacking two warns when they are built.
        layers = callers_of(CALLS)
        callers = [(call, layer) for call, layer in layers if hasattr(layer, "action_space") and not _shapes(layer)]
        problem = _problem_of(callers, self._before)
        if problem:
            self.left = 0
            warn(f"{problem}: bonuses and repayments no longer cancel. Put it inside the shaping, which belongs last")
        # Held until the next look, because a frame that is alive cannot be mistaken for a later call's.
        self._before = [frame for frame, _ in callers] if self.left else []


def _problem_of(callers: list[tuple[FrameType, Any]], before: list[FrameType]) -> str | None:
    for _, layer in callers:
        if _changes_rewards(layer):
            return f"{type(layer).__name__} around the shaping changes the rewards that it paid"
    for frame, layer in callers:
        if frame.f_code.co_name == "reset":
            return f"{type(layer).__name__} around the shaping takes steps in its reset, whose rewards are lost"
        if any(frame is call for call in before):
            name = type(layer).__name__
            return f"{name} around the shaping takes several steps in one of its own, and adds up or loses rewards"
    return None


def _changes_rewards(layer: Any) -> bool:
    """Return whether a wrapper is known to change rewards; so are all that have a method `reward`."""
    if hasattr(layer, "norm_reward"):  # SB3's VecNormalize
        return bool(layer.norm_reward)
    kind = type(layer)
    named = any(parent.__name__ in NORMALISING for parent in kind.__mro__)
    return named or any(callable(getattr(kind, method, None)) for method in ("reward", "rewards"))


def callers_of(methods: tuple[str, ...]) -> Iterator[tuple[FrameType, Any]]:
    """Yield the objects whose `methods` are under way around the shaping, the innermost first, with their frames."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in methods and code.co_argcount:
            layer = frame.f_locals.get(code.co_varnames[0])
            if hasattr(layer, "__dict__"):
                yield frame, layer
        frame = frame.f_back
