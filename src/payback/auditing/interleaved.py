"""Rows of several environments in turn, without a column that tells them apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from payback.auditing.fitting_gamma import discounted
from payback.auditing.found import BROKEN, Episodes
from payback.auditing.rows import Batch, Log

MOST_ENVIRONMENTS = 128
LOOKED_AT = 50_000
EPISODES = 8
"""Episodes of each supposed environment that are looked at."""


def refuse_interleaved(log: Log, head: Batch, episodes: Episodes, gamma: float, tolerance: float) -> None:
    """Raise if most episodes leak, but keep the law once every B-th row is taken for one environment's."""
    if len(np.unique(head.ids)) > 1 or (episodes.verdict == BROKEN).mean() < 0.5 or head.ends.sum() < 4:
        return
    paid, ends = head.shaped[:LOOKED_AT].astype(np.float64), head.ends[:LOOKED_AT]
    for B in range(2, min(MOST_ENVIRONMENTS, len(paid) // 4) + 1):
        kept: list[bool] = []
        for b in range(B):
            kept += _kept(paid[b::B], ends[b::B], gamma, tolerance)
            if len(kept) >= 4 and np.mean(kept) < 0.9:
                break
        if len(kept) >= 4 and np.mean(kept) >= 0.9:
            raise ValueError(
                f"{log.name}: the rows are those of {B} environments in turn, because every {B}th row together sums to "
                "zero, but no column tells the environments apart; add one, or name it with --environment"
            )


def _kept(paid: np.ndarray, ends: np.ndarray, gamma: float, tolerance: float) -> list[bool]:
    """Return of some finished episodes of several steps whether they sum to zero."""
    stops = np.flatnonzero(ends)[: EPISODES + 1] + 1
    parts = [paid[a:b] for a, b in pairwise([0, *stops.tolist()]) if b > a + 1]
    return [abs(discounted(x, gamma)) <= tolerance * discounted(np.abs(x), gamma) for x in parts if x.any()]
