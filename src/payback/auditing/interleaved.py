"""Rows of several environments in turn, without a column that tells them apart."""

from __future__ import annotations

import numpy as np

from payback.auditing.discounted_sums import segment_sums
from payback.auditing.found import BROKEN, Episodes
from payback.auditing.rows import Batch, Log

MOST_ENVIRONMENTS = 128
LOOKED_AT = 50_000


def refuse_interleaved(log: Log, head: Batch, episodes: Episodes, gamma: float, tolerance: float) -> None:
    """Raise if most episodes leak, but keep the law once every B-th row is taken for one environment's."""
    if len(np.unique(head.ids)) > 1 or (episodes.verdict == BROKEN).mean() < 0.5 or head.ends.sum() < 4:
        return
    paid, ends = head.shaped[:LOOKED_AT], head.ends[:LOOKED_AT]
    for B in range(2, min(MOST_ENVIRONMENTS, len(paid) // 4) + 1):
        whole = len(paid) // B * B
        column, over = (x[:whole].reshape(-1, B).T for x in (paid, ends))
        kept = [_kept(np.ascontiguousarray(column[b]), over[b], gamma, tolerance) for b in range(B)]
        lawful, total = (sum(x) for x in zip(*kept, strict=True))
        if total >= 4 and lawful >= 0.9 * total:
            raise ValueError(
                f"{log.name}: the rows are those of {B} environments in turn, because every {B}th row together sums to "
                "zero, but no column tells the environments apart; add one, or name it with --environment"
            )


def _kept(paid: np.ndarray, ends: np.ndarray, gamma: float, tolerance: float) -> tuple[int, int]:
    """Return how many of one environment's finished episodes of several steps sum to zero, and how many there are."""
    last = np.flatnonzero(ends)
    if not len(last):
        return 0, 0
    starts = np.append(0, last[:-1] + 1)
    leak, size = segment_sums(paid[: last[-1] + 1], starts, gamma)
    several = (np.diff(starts, append=last[-1] + 1) > 1) & (size > 0)
    return int((np.abs(leak) <= tolerance * size)[several].sum()), int(several.sum())
