"""Discounted sums of many episodes in one pass over a column of rewards.

    leak = Σ_t γ^t F'_t,    size = Σ_t γ^t |F'_t|                       of every episode

The column is weighted by γ^(i mod L) in blocks of L rows, one multiplication a row, and summed from mark to mark: the
starts of episodes and of blocks. Each sum is then divided by the weight at its mark, so that it starts with γ^0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

CHUNK = 1 << 14
"""Rows taken at a time: few enough to stay in the cache in float64."""
LEAST = 1e-100
"""The smallest weight in a block. Products with any float32, and with any sane float64, keep all their digits."""


class Sums(NamedTuple):
    """Leak and size of each segment of a column."""

    leak: np.ndarray
    size: np.ndarray


def segment_sums(values: np.ndarray, starts: np.ndarray, gamma: float) -> Sums:
    """Return Σ γ^k x and Σ γ^k |x| over each segment; `starts` are sorted, begin with 0, and cut the column."""
    n, L = len(values), _block(gamma)
    blocks = np.arange(0, n, L)
    after = np.searchsorted(starts, blocks)
    new = np.append(starts, -1)[after] != blocks
    blocks, after = blocks[new], after[new]
    marks = np.insert(starts, after, blocks)
    pieces = _piece_sums(values, marks, gamma, L)
    # Blocks that begin within a segment are few: these pieces are brought to their age and added one by one.
    later, weight = after + np.arange(len(after)), np.float64(gamma) ** (blocks - starts[after - 1])
    found = Sums(*(np.delete(x, later) for x in pieces))
    for total, x in zip(found, pieces, strict=True):
        np.add.at(total, after - 1, weight * x[later])
    return found


def _piece_sums(values: np.ndarray, marks: np.ndarray, gamma: float, L: int) -> Sums:
    """Return the sums from each mark to the next; no piece reaches over the beginning of a block of L rows."""
    n, ages = len(values), np.arange(L, dtype=np.float64)
    weights, undone = (np.tile(np.float64(gamma) ** x, max(1, CHUNK // L)) for x in (ages, -ages))
    chunk = len(weights)
    # Leak and size are summed at once, as a complex number: short pieces cost a call each, not two.
    buffer, both = np.empty(chunk), np.empty(chunk, dtype=np.complex128)
    found = Sums(np.empty(len(marks)), np.empty(len(marks)))
    bounds = np.searchsorted(marks, np.arange(0, n + chunk, chunk)).tolist()
    for k, first in enumerate(range(0, n, chunk)):
        part, pieces = values[first : first + chunk], slice(bounds[k], bounds[k + 1])
        plain, here, begins = buffer[: len(part)], both[: len(part)], marks[pieces] - first
        # A cast and a product apart are faster than both in one, which goes through small buffers.
        np.copyto(plain, part, casting="unsafe")
        np.multiply(plain, weights[: len(part)], out=here.real)
        np.abs(here.real, out=here.imag)
        sums, back = np.add.reduceat(here, begins), undone[begins]
        np.multiply(np.real(sums), back, out=found.leak[pieces])
        np.multiply(np.imag(sums), back, out=found.size[pieces])
    return found


def _block(gamma: float) -> int:
    """Rows whose weights stay above the least."""
    if gamma == 1:
        return CHUNK
    return max(1, min(CHUNK, math.floor(math.log(LEAST) / math.log(gamma))))
