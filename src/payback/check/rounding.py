"""What rounding is forgiven: how exact a float is, and whether float32 stays near float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

APART = 1e-2
"""How far float32 may lie from float64, against the largest reward or payment so far."""


@dataclass(frozen=True)
class Precision:
    """How exact a float is, and how large it may grow."""

    epsilon: float
    """The relative error that is forgiven."""
    largest: float
    """The largest finite number."""

    def may_overflow(self, gamma: float, steps: int, size: float) -> bool:
        """Whether the interest on `steps` steps is more than the dtype holds, so that raising is right."""
        room = float(np.log(self.largest)) - 7
        return -np.log(gamma) * steps + float(np.log(max(size, 1e-30) * max(steps, 1))) > room


FLOAT64 = Precision(1e-10, float(np.finfo(np.float64).max))
FLOAT32 = Precision(1e-5, float(np.finfo(np.float32).max))
FLOAT16 = Precision(80 * float(np.finfo(np.float16).eps), float(np.finfo(np.float16).max))


def precision_of(eps: float, largest: float) -> Precision:
    """Return what is forgiven in a dtype with this machine epsilon: 1e-10 in float64, 1e-5 in float32."""
    return FLOAT64 if eps < 1e-12 else Precision(max(1e-5, 80 * eps), largest)


def keeps_float32(pay: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether a function of one episode's rewards (N,), given float64, keeps its loans in float32.

    A change of the rewards by about one part in 2³⁰ moves a float64 settlement by about as much. A float32 settlement
    stays where it is or jumps by a unit in its last place. Two sizes are tried because a clip that stands before
    the match would hide the change of large rewards.
    """
    rewards = np.array([0.71, -0.37, 0.93, 0.58, -0.21, 0.87, 0.5], dtype=np.float32).astype(np.float64)
    # Not all by the same factor, which a shaper that divides by the rewards' own size would not feel.
    other = rewards * (1 + 2.0**-30 * np.array([1.0, 0.6, -0.7, 0.9, -0.8, 0.5, -1.0]))
    for size in (1.0, 2.0**-10):
        try:
            settlement, moved = (float(pay(size * x)[-1]) for x in (rewards, other))
        except Exception:
            # What is wrong with it is found, and shown, on the streams.
            return False
        if settlement == 0 or 0 < abs(moved - settlement) < 2.0**-26 * size:
            return False
    return True


def first_drift(wide: np.ndarray, narrow: np.ndarray, size: float) -> tuple[int, int] | None:
    """Return the first (step, environment) where payments in two precisions lie apart, or None.

    The recursion debt ← debt/γ + F − due has the right value on paper, but its rounding grows as γ⁻ᵗ.
    """
    scale = np.maximum.accumulate(np.abs(wide), axis=0) + size
    bad = np.argwhere(~(np.abs(wide - narrow) <= APART * scale))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None
