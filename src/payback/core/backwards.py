"""The sum behind `payback.grm_adv`, from a block's last row to its first: a loop, a scan, or neither in Torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core.arrays import Array, constant
from payback.core.blocks import before_each_row, wide
from payback.core.repay_at_ages import _everywhere


class Rows(NamedTuple):
    """What is summed, (T, B) each."""

    bonus: Array  # G; 0 in invalid rows
    goes_on: Array  # 1 where the episode goes on after the row, 0 at an end, in the bonus' dtype
    carried: Array | None  # 1 at an end that nothing is settled at, in the bonus' dtype; None where there is none
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
    whole = rows.goes_on >= 0
    zero, share = _everywhere(xp, whole, kind(0)), _everywhere(xp, whole, kind(_largest_share(own)))
    carry, row_step = (zero, share, zero if last is None else last), _row_step(xp, own)
    if is_jax_namespace(xp):
        from jax import lax

        return lax.scan(row_step, carry, rows, reverse=True)[1]
    found = np.empty_like(rows.bonus)
    given = zip(*(repeat(None) if x is None else x[::-1] for x in rows), strict=False)
    for t, row in zip(reversed(range(len(found))), given, strict=False):
        carry, found[t] = row_step(carry, Rows(*row))
    return found


def _largest_share(own: Sum) -> float:
    return 1.0 if own.lam is None else 1 - own.lam**own.delay


@lru_cache(maxsize=64)
def _row_step(xp: Any, own: Sum) -> Callable[[Any, Rows], tuple[Any, Array]]:
    """Return the body of the scan, which is kept, because outside `jit` a scan with a new one is compiled anew."""
    # The share 1 − λ^K of a row is 0 at a settled end, and s ← (1 − λ) + λs a row before it, up to 1 − λ^D.
    most = _largest_share(own)

    def step(carry: Any, row: Rows) -> tuple[Any, Array]:
        later, share_later, ahead = carry
        share, f = share_later, row.bonus
        if own.lam is not None:
            share = xp.minimum(own.lam * share_later + (1 - own.lam), most) * row.goes_on
            share = share if row.carried is None else share + most * row.carried
            f = f * share
        if row.values is None:
            here = f + own.discount * row.goes_on * later
        else:
            if row.after is None:
                kept = (own.trace * later + ahead) * row.goes_on
            else:
                kept = own.trace * later * row.goes_on + row.after
            here = own.discount * kept + f - row.values
            ahead = row.values if row.valid is None else xp.where(row.valid, row.values, ahead)
        if row.valid is not None:
            here, share = xp.where(row.valid, here, later), xp.where(row.valid, share, share_later)
        return (here, share, ahead), here

    return step


# ------------------------------------------------------------------ Torch on an accelerator, where a row costs a launch


def _on_device(xp: Any, own: Sum, rows: Rows, last: Array | None) -> Array:
    f, V = rows.bonus, rows.values
    kept = own.discount * rows.goes_on * (1.0 if V is None else own.trace)
    if own.lam is not None:
        most = min(own.delay, f.shape[0])
        table = 1 - own.lam ** np.append(np.arange(float(most)), float(own.delay))
        f = f * constant(xp, table, f)[_rows_left(xp, most, rows)]
    if V is not None:
        following = rows.after
        if following is None:
            skipped = xp.zeros_like(V) if rows.valid is None else (~rows.valid).to(V.dtype)
            following = xp.concat((_linear(xp, skipped, V, last)[1:], last[None])) * rows.goes_on  # pyright: ignore
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
    settled = rows.goes_on == 0
    if rows.carried is not None:
        settled = settled & (rows.carried == 0)
        steps = steps + most * rows.carried.to(xp.int64)
    place = steps.cumsum(0) - steps
    ends = xp.where(settled, place, place[-1:] + 2 * most + 1)
    return (ends.flip(0).cummin(0).values.flip(0) - place).clip(max=most)
