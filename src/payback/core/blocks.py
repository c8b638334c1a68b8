"""Recurrences over the rows of a (T, B) block: a walk down the rows in NumPy, O(log T) operations on an accelerator.

Every debt and every running sum is x_{t+1} = a_t x_t + b_t, with a_t = 0 where it is settled and a_t = 1, b_t = 0 in
invalid rows. NumPy's walk touches rewards in whole rows, and the few episode ends one by one. In Torch, where a loop is
slow, rows are combined in pairs, pairs of pairs and so on. Sums are in float64, in which the rounding of γ doesn't add
up, if the device has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core.arrays import Array, constant

CHUNK = 64  # rows cast at a time, few enough to stay in the cache


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


def everywhere(xp: Any, dones: Array, value: Any) -> Array:
    """Return (B,) of one value, made from `dones` so that `jax.shard_map` lets a scan vary it over devices."""
    return xp.where(dones[0], value, value)


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


# ------------------------------------------------------------------ the sum behind `payback.grm_adv`, last row first


class Rows(NamedTuple):
    """What is summed, (T, B) each."""

    bonus: Array  # G; 0 in invalid rows
    goes_on: Array  # whether the episode goes on after the row
    carried: Array | None  # the ends that nothing is settled at; None where there is none
    valid: Array | None
    values: Array | None  # the second critic's V of each row
    after: Array | None  # V of what followed each row, 0 where nothing does; None stands for V of the next valid row


class Sum(NamedTuple):
    """The sum's parameters."""

    lam: float | None  # λ_I, or None where the bonus does not fade
    delay: int
    discount: float  # γλ_I
    trace: float  # λ of the GAE with a second critic


def sum_backwards(xp: Any, own: Sum, rows: Rows, last: Array | None) -> Array:
    """Return A^I of each row; `last` is V after the last one. What invalid rows get means nothing."""
    if is_torch_namespace(xp):
        return _on_device(xp, own, rows, last)
    kind = rows.bonus.dtype.type
    zero, share = (everywhere(xp, rows.goes_on, kind(x)) for x in (0, _largest_share(own)))
    carry, row_step = (zero, share, zero if last is None else last), _row_step(xp, own, rows.bonus.dtype)
    if is_jax_namespace(xp):
        from jax import lax

        if rows.values is not None and last is not None and rows.valid is None:
            # One pass over the block costs less than to carry V.
            rows = rows._replace(after=xp.where(rows.goes_on, xp.concat((rows.values[1:], last[None])), 0.0))
        return lax.scan(row_step, carry, rows, reverse=True)[1]
    found = np.empty_like(rows.bonus)
    for t, row in zip(reversed(range(len(found))), _upwards(rows), strict=True):
        carry, found[t] = row_step(carry, row)
    return found


def _upwards(rows: Rows) -> Iterator[Rows]:
    """Yield NumPy's rows, the last first, with `goes_on` as floats, cast while it is in the cache."""
    kind = rows.bonus.dtype
    for first in reversed(range(0, len(rows.bonus), CHUNK)):
        part = Rows(*(None if x is None else x[first : first + CHUNK][::-1] for x in rows))
        part = part._replace(goes_on=part.goes_on.astype(kind))
        yield from map(Rows._make, zip(*(repeat(None) if x is None else x for x in part), strict=False))


def _largest_share(own: Sum) -> float:
    return 1.0 if own.lam is None else 1 - own.lam**own.delay


@lru_cache(maxsize=64)
def _row_step(xp: Any, own: Sum, kind: Any) -> Callable[[Any, Rows], tuple[Any, Array]]:
    """Return the body of the scan, which is kept, because outside `jit` a scan with a new one is compiled anew."""
    # NumPy takes three times as long to multiply by a Python number as by an array.
    numbers = own.lam or 0.0, 1 - (own.lam or 0.0), _largest_share(own), own.discount, own.trace
    lam, rest, most, discount, trace = (np.array(x, kind) if xp is np else x for x in numbers)

    def step(carry: Any, row: Rows) -> tuple[Any, Array]:
        later, share_later, ahead = carry
        share, f = share_later, row.bonus
        if own.lam is not None:
            # The share 1 − λ^K of a row is 0 at a settled end, and s ← (1 − λ) + λs a row before it, up to 1 − λ^D.
            share = xp.minimum(lam * share_later + rest, most) * row.goes_on
            share = share if row.carried is None else share + most * row.carried
            f = f * share
        if row.values is None:
            here = f + discount * row.goes_on * later
        else:
            if row.after is None:
                kept = (trace * later + ahead) * row.goes_on
            else:
                kept = trace * later * row.goes_on + row.after
            here = discount * kept + f - row.values
            ahead = row.values if row.valid is None else xp.where(row.valid, row.values, ahead)
        if row.valid is not None:
            here, share = xp.where(row.valid, here, later), xp.where(row.valid, share, share_later)
        return (here, share, ahead), here

    return step


def _on_device(xp: Any, own: Sum, rows: Rows, last: Array | None) -> Array:
    f, V = rows.bonus, rows.values
    goes_on = rows.goes_on.to(f.dtype)
    kept = own.discount * goes_on * (1.0 if V is None else own.trace)
    if own.lam is not None:
        most = min(own.delay, f.shape[0])
        table = 1 - own.lam ** np.append(np.arange(float(most)), float(own.delay))
        f = f * constant(xp, table, f)[_rows_left(xp, most, rows)]
    if V is not None:
        following = rows.after
        if following is None:
            skipped = xp.zeros_like(V) if rows.valid is None else (~rows.valid).to(V.dtype)
            following = xp.concat((_linear(xp, skipped, V, last)[1:], last[None])) * goes_on  # pyright: ignore
        f = f + own.discount * following - V
    if rows.valid is not None:
        f, kept = xp.where(rows.valid, f, 0.0), xp.where(rows.valid, kept, 1.0)
    return _linear(xp, kept, f, xp.zeros_like(f[0]))


def _linear(xp: Any, factor: Array, added: Array, last: Any) -> Array:
    """Return x_t = factor_t·x_{t+1} + added_t of every row, in O(log T) operations."""
    found = before_each_row(xp, wide(xp, factor).flip(0), wide(xp, added).flip(0), wide(xp, last))
    return found[1:].flip(0).to(added.dtype)


def _rows_left(xp: Any, most: int, rows: Rows) -> Array:
    """Return min(K, most). A carried end counts as `most` rows, so that no end beyond it is near."""
    steps = xp.ones_like(rows.bonus, dtype=xp.int64) if rows.valid is None else rows.valid.to(xp.int64)
    settled = ~rows.goes_on
    if rows.carried is not None:
        settled = settled & ~rows.carried
        steps = steps + most * rows.carried.to(xp.int64)
    place = steps.cumsum(0) - steps
    ends = xp.where(settled, place, place[-1:] + 2 * most + 1)
    return (ends.flip(0).cummin(0).values.flip(0) - place).clip(max=most)
