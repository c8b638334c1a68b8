"""Find the wrappers around the shaping that change its rewards, by reading the call stack of its first steps.

A wrapper does not know what is wrapped around it, but while it steps, the wrappers around it are on the call stack.
Nothing else in payback reads the stack, but for the line that a warning names.
"""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from payback.messages import warn
from payback.monitor import Monitor

LOOKS = 16
"""Steps at which the call stack is read: enough for a frame skip, and for what a wrapper does in its first reset."""
NORMALISING = ("NormalizeReward", "NormalizeVecReward")
"""Gymnasium's wrapper, and purejaxrl's."""
CALLS = ("step", "step_wait", "reset")


class OuterWrapperCheck:
    """Read who calls the shaping's first steps, and warn once of a wrapper that undoes its guarantee.

    This detects those in the same process that are known to change rewards, that take several steps for one of their
    own (and add up or lose rewards), or that step in their `reset`.
    """

    def __init__(self) -> None:
        self.left = LOOKS
        """Steps at which the stack will still be read; 0 stops it."""
        self._before: list[FrameType] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_before": []}

    def look_once(self) -> None:
        """Read the stack of the first step only, the one that a traced function takes in Python."""
        if self.left:
            self.look()
            self.left, self._before = 0, []

    def look(self) -> None:
        """Read the stack of the step that is being taken, and warn of the first wrapper that changes rewards."""
        self.left -= 1
        # No shaping, because stacking two warns when they are built.
        callers = [
            (frame, layer)
            for frame, layer in callers_of(CALLS)
            if hasattr(layer, "action_space") and not isinstance(vars(layer).get("monitor"), Monitor)
        ]
        problem = _problem_of(callers, self._before)
        if problem:
            self.left = 0
            warn(
                f"{problem}: bonuses and repayments no longer cancel, so the bonus may change the optimal policy. "
                "Put it inside the shaping, which belongs last; this warning is given once"
            )
        # Held until the next look, because a frame that is alive cannot be mistaken for a later call's.
        self._before = [frame for frame, _ in callers] if self.left else []


def _problem_of(callers: list[tuple[FrameType, Any]], before: list[FrameType]) -> str | None:
    for _, layer in callers:
        if changes_rewards(layer):
            return f"{type(layer).__name__} around the shaping changes the rewards that it paid"
    for frame, layer in callers:
        if frame.f_code.co_name == "reset":
            return f"{type(layer).__name__} around the shaping takes steps in its reset, whose rewards are lost"
        if any(frame is call for call in before):
            name = type(layer).__name__
            return f"{name} around the shaping takes several steps in one of its own, and adds up or loses rewards"
    return None


def changes_rewards(layer: Any) -> bool:
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
