"""Names beside the points of a chart, moved apart so that all can be read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

APART = 17.0
"""Pixels between two names, one below the other."""
MARGIN = 1.05
"""Where the names stand, in shares of the width: right of all points, because between points they hide some."""


def placed_labels(points: Sequence[Mapping[str, Any]], height: float, longest: float) -> list[dict[str, Any]]:
    """Add to points (found, times) where their names stand: label_x and label_y, in the units of the axes.

    The names stand in a column right of the chart. The axis of `times` is logarithmic and runs from 1, at the top, to
    `longest`.
    """
    own = sorted(points, key=lambda point: point["times"])
    heights = moved_apart([height * np.log(point["times"]) / np.log(longest) for point in own], height)
    places = [float(longest ** (at / height)) for at in heights]
    return [{**point, "label_x": MARGIN, "label_y": at} for point, at in zip(own, places, strict=True)]


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
