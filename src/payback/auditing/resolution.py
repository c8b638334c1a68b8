"""How exactly a log holds what was paid: its dtype, or the digits it was rounded to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SAMPLE = 1000
"""Values that are looked at."""
MOST_DECIMALS = 6
"""Values with more decimals are taken for printed float32 numbers, not for rounded ones."""


class Resolution(NamedTuple):
    """The rounding error of one logged payment: relative · |F'| + absolute."""

    relative: float
    absolute: float = 0.0
    decimals: int | None = None
    """How many decimals a log was rounded to, where it was."""


def resolution_of(values: np.ndarray) -> Resolution:
    """Return how exactly the values are held.

    float64 columns often hold less: float32 numbers, or text rounded to a few decimals. Both are found by looking at
    the first values, because a rounded log cannot sum to zero more exactly than its digits allow.

    >>> resolution_of(np.linspace(0, 1, 100).round(3))
    Resolution(relative=5.96e-08, absolute=0.0005, decimals=3)
    """
    if values.dtype.kind == "f" and values.dtype.itemsize < 4:
        return Resolution(4.88e-4)
    sample = values[values != 0][:SAMPLE] if len(values) < 10 * SAMPLE else values[: 10 * SAMPLE]
    sample = sample[sample != 0][:SAMPLE].astype(np.float64)
    decimals = _decimals(sample)
    if decimals is not None:
        return Resolution(5.96e-8, 0.5 * 10.0**-decimals, decimals)
    if values.dtype.itemsize == 4 or _is_float32(sample):
        return Resolution(5.96e-8)
    return Resolution(1.11e-16)


def _decimals(sample: np.ndarray) -> int | None:
    """Return the number of decimals, 1 to 6, that all values share, None where they are not rounded to so few.

    Few distinct values say nothing: a bonus of 0.5 or 1 is not rounded.
    """
    if len(sample) < 50 or len(np.unique(sample)) < 20:
        return None
    for decimals in range(MOST_DECIMALS + 1):
        scaled = sample * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() <= 1e-6:
            return decimals or None
    return None


def _is_float32(sample: np.ndarray) -> bool:
    """Whether these are float32 numbers, as such or printed with their nine digits and read again."""
    with np.errstate(over="ignore", under="ignore"):
        exact = bool((sample.astype(np.float32) == sample).all())
    return exact or all(float(f"{x:.9g}") == x for x in sample[:100].tolist())
