"""What the NumPy block forms of our three ways to repay share: passes over a block's rows.

They walk down the rows with a running sum. They touch rewards in whole rows, and the few episode ends one by one. Sums
are in float64, in which the rounding of γ doesn't add up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CHUNK = 64
"""Rows cast to float64 at a time, few enough to stay in the cache."""


def invalid_only_between_episodes(dones: np.ndarray, valid: np.ndarray, debtless: np.ndarray) -> bool:
    """Return whether no invalid row has a debt, whose loans would have to stop ageing there."""
    free = np.concatenate((debtless[None], dones[:-1] | ~valid[:-1]))
    return bool((valid | free).all())


def accumulate(
    interest: float, debt: np.ndarray, rewards: np.ndarray, read: np.ndarray, write: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run debt ← (debt + rewards[t])·interest over the rows; return the last debt and the debts at `read`.

    `read` and `write` are sorted flat positions: the debt is read there before its row is added, and set to `values`
    after.
    """
    found = np.empty(read.size)
    (readers, reads), (writers, writes) = (split_by_row(at, *rewards.shape) for at in (read, write))
    with np.errstate(over="ignore"):  # sums that are never read may overflow
        for t, row in enumerate(_float64_rows(rewards)):
            if reads[t + 1] > reads[t]:
                found[reads[t] : reads[t + 1]] = debt[readers[reads[t] : reads[t + 1]]]
            debt += row
            debt *= interest
            if writes[t + 1] > writes[t]:
                debt[writers[writes[t] : writes[t + 1]]] = values[writes[t] : writes[t + 1]]
    return debt, found


def split_by_row(at: np.ndarray, T: int, B: int) -> tuple[np.ndarray, list[int]]:
    """Return the columns of sorted flat positions, and where each row's columns begin."""
    starts = np.searchsorted(at, np.arange(T + 1) * B)
    return at % B, starts.tolist()


def _float64_rows(rewards: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(rewards), CHUNK):
        yield from rewards[first : first + CHUNK].astype(np.float64, copy=False)
