"""Recurrences over the rows of a (T, B) block: a walk down the rows in NumPy, O(log T) operations on an accelerator.

Every debt and every running sum is x_{t+1} = a_t x_t + b_t, with a_t = 0 where it is settled and a_t = 1, b_t = 0 in
invalid rows. NumPy's walk touches rewards in whole rows, and the few episode ends one by one. In Torch, where a loop is
slow, rows are combined in pairs, pairs of pairs and so on. Sums are in float64, in which the rounding of γ doesn't add
up, if the device has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from payback.core.arrays import Array

CHUNK = 64  # rows cast to float64 at a time, few enough to stay in the cache


def accumulate(
    interest: float, debt: np.ndarray, rewards: np.ndarray, read: np.ndarray, write: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run debt ← (debt + rewards[t])·interest over the rows; return the last debt and the debts at `read`."""
    # At the sorted flat positions `read` and `write` the debt is read before its row is added, set to `values` after.
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


# ------------------------------------------------------------------ Torch on an accelerator


def before_each_row(xp: Any, factor: Array, added: Array, first: Array) -> Array:
    """Return x_0 … x_T of x_{t+1} = factor_t x_t + added_t with x_0 = `first`."""
    # Doubling (Hillis and Steele 1986): after k rounds each row includes the 2ᵏ rows before it.
    a = xp.concat((xp.zeros_like(factor[:1]), factor))
    x = xp.concat((xp.broadcast_to(first, added[:1].shape), added))
    reach = 1
    while reach < a.shape[0]:
        # A debt of 0 stays 0 if the product overflows.
        carried = xp.where(x[:-reach] == 0, 0.0, a[reach:] * x[:-reach])
        x = xp.concat((x[:reach], x[reach:] + carried))
        a = xp.concat((a[:reach], a[reach:] * a[:-reach]))
        reach *= 2
    return x


def wide(xp: Any, x: Array) -> Array:
    """Return `x` in the widest float that its device has."""
    return x.to(xp.float32 if x.device.type == "mps" else xp.float64)


def debts_before_rows(
    xp: Any, debt: Array, rewards: Any, dones: Any, valid: Any, gamma: float, growth: float, cleared: Array
) -> tuple[Array, Array]:
    """Return the debt before each row and after the last: x ← growth·x + F/γ, 0 after `cleared` rows."""
    lent = xp.where(dones, 0.0, wide(xp, rewards))
    factor, added = xp.where(cleared, 0.0, xp.full_like(lent, growth)), lent / gamma
    if valid is not None:
        factor, added = xp.where(valid, factor, 1.0), xp.where(valid, added, 0.0)
    debts = before_each_row(xp, factor, added, wide(xp, debt))
    return debts[:-1], debts[-1]


def sums_before_rows(xp: Any, fade: float, weight: Array, total: Array, values: Array, valid: Any) -> Any:
    """Return a running mean's weight and total before each row and after the last, and how many values were added."""
    sums = values.sum(1)
    n = xp.full_like(sums, values.shape[1]) if valid is None else valid.sum(1).to(sums.dtype)
    return before_each_row(xp, fade**n, n, weight), before_each_row(xp, fade**n, sums, total), n.sum()
