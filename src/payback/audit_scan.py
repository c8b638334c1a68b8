"""Discounted sums of many episodes in one pass over a column of rewards.

    leak = Σ_t γ^t F'_t,    size = Σ_t γ^t |F'_t|                       of every episode

The column is weighted by γ^(i mod L) in blocks of L rows, one multiplication a row; each episode is then put together
from its pieces of blocks, whose weights are made up for once a piece.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

CHUNK = 1 << 16
"""Rows taken at a time: small enough to stay in the cache in float64."""


class Sums(NamedTuple):
    """Leak and size of each segment of a column."""

    leak: np.ndarray
    size: np.ndarray


def segment_sums(values: np.ndarray, starts: np.ndarray, gamma: float) -> Sums:
    """Return Σ γ^k x and Σ γ^k |x| over each segment; `starts` are sorted, begin with 0, and cut the column."""
    n, L = len(values), _block(gamma)
    weights = np.tile(gamma ** np.arange(L, dtype=np.float64), -(-min(CHUNK, n + L) // L))
    chunk = len(weights)
    marks = np.searchsorted(starts, np.arange(0, n + chunk, chunk))
    buffer, flags = np.empty(chunk), np.empty(chunk, dtype=bool)
    places, sums, sizes = [], [], []
    for k, first in enumerate(range(0, n, chunk)):
        part = values[first : first + chunk]
        here = buffer[: len(part)]
        np.multiply(part, weights[: len(part)], out=here)
        flags[:] = False
        flags[starts[marks[k] : marks[k + 1]] - first] = True
        flags[::L] = True
        pieces = np.flatnonzero(flags[: len(part)])
        sums.append(np.add.reduceat(here, pieces))
        np.abs(here, out=here)
        sizes.append(np.add.reduceat(here, pieces))
        places.append(pieces + first)
    return _together(starts, gamma, L, *(np.concatenate(x) for x in (places, sums, sizes)))


def _together(
    starts: np.ndarray, gamma: float, L: int, places: np.ndarray, sums: np.ndarray, sizes: np.ndarray
) -> Sums:
    """Add the pieces of each segment, each brought to its place in the segment."""
    first = np.searchsorted(places, starts)
    # A segment's first piece is off by its place in the block, the others begin a block.
    weight = (gamma ** -np.arange(L, dtype=np.float64))[places % L]
    later = np.ones(len(places), dtype=bool)
    later[first] = False
    segment = np.repeat(np.arange(len(starts)), np.diff(np.append(first, len(places))))
    ages = (places - starts[segment])[later]
    weight[later] = np.float64(gamma) ** ages
    return Sums(np.add.reduceat(sums * weight, first), np.add.reduceat(sizes * weight, first))


def _block(gamma: float) -> int:
    """Rows whose weights stay within a million of each other."""
    if gamma == 1:
        return 4096
    return max(1, min(4096, math.floor(math.log(2.0**-20) / math.log(gamma))))
