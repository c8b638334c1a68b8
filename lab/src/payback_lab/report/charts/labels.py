"""Names beside the points of a chart, moved apart so that all can be read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

APART = 17.0
"""Pixels between two names, one below the other."""
MARGIN = 1.05
"""Where the names of points in the right half stand, in shares of the width."""
BESIDE = 0.06
"""How far right of the last point of the left half the names of these stand."""


def placed_labels(points: Sequence[Mapping[str, Any]], height: float, longest: float) -> list[dict[str, Any]]:
    """Add to points (found, times) where their names stand: label_x and label_y, in the units of the axes.

    The names of the right half stand in a column right of the chart, those of the left half in one right of their
    points. The axis of `times` is logarithmic and runs from 1, at the top, to `longest`.
    """

    def pixel(times: float) -> float:
        return height * np.log(times) / np.log(longest)

    found = []
    for right in (False, True):
        own = sorted((p for p in points if (p["found"] >= 0.5) == right), key=lambda p: p["times"])
        beside = MARGIN if right else max((p["found"] for p in own), default=0.0) + BESIDE
        heights = moved_apart([pixel(p["times"]) for p in own], height)
        for point, at in zip(own, heights, strict=True):
            found.append({**point, "label_x": beside, "label_y": float(longest ** (at / height))})
    return found


def moved_apart(wanted: Sequence[float], height: float, apart: float = APART) -> list[float]:
    """Return places as near to the wanted ones, in rising order, as keeps them so far apart and within the height.

    >>> moved_apart([10.0, 12.0, 100.0], 200.0, apart=20.0)
    [1.0, 21.0, 100.0]
    """
    # Pool neighbours that are too near, and spread each pool around its mean: isotonic regression by pooling.
    pools: list[list[float]] = []
    for n, place in enumerate(wanted):
        pools.append([place - n * apart])
        while len(pools) > 1 and np.mean(pools[-2]) >= np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    flat = [float(np.mean(pool)) for pool in pools for _ in pool]
    most = height - (len(wanted) - 1) * apart
    return [float(min(max(base, 0.0), max(most, 0.0)) + n * apart) for n, base in enumerate(flat)]
