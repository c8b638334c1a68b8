"""Whether shaping in float32 stays near shaping in float64: what drifts apart loses its debt in rounding."""

from __future__ import annotations

import numpy as np

from payback.check.streams import Stream
from payback.check.trial import Trial, step_through
from payback.core.errors import LawBroken

APART = 1e-2
"""How far the two precisions may lie apart, against the largest reward or payment so far."""


def check_precision(wide: Trial, narrow: Trial, stream: Stream) -> None:
    """Raise `LawBroken` where float32 pays something else than float64.

    The recursion debt ← debt/γ + F − due has the right value on paper, but its rounding grows as γ⁻ᵗ.
    """
    size = float(np.abs(stream.rewards).max(initial=0))
    if narrow.may_overflow(len(stream.rewards), size):
        try:
            one, other = (step_through(trial, stream).shaped for trial in (wide, narrow))
        except OverflowError:
            return
        if not np.isfinite(other).all():
            return
    else:
        one, other = (step_through(trial, stream).shaped for trial in (wide, narrow))
    drift = first_drift(one, other, size)
    if drift is not None:
        t, b = drift
        found = LawBroken(
            f"float32 pays {other[t, b]:.6g} where float64 pays {one[t, b]:.6g}: rounding errors grow from step to "
            "step; keep the loans and sum them anew instead of carrying debt ← debt/γ",
            law="precision",
            rewards=stream.rewards,
            step=t,
            paid=float(other[t, b]),
            owed=float(one[t, b]),
        )
        found.environment, found.stream = b, stream  # pyright: ignore[reportAttributeAccessIssue]
        raise found


def first_drift(wide: np.ndarray, narrow: np.ndarray, size: float) -> tuple[int, int] | None:
    """Return the first (step, environment) where two precisions lie apart, or None."""
    scale = np.maximum.accumulate(np.abs(wide), axis=0) + size
    bad = np.argwhere(~(np.abs(wide - narrow) <= APART * scale))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None
