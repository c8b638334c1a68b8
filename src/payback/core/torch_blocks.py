"""Recurrences over the rows of a Torch block on an accelerator, in O(log T) operations, where a loop is slow.

Every debt and every running sum is x_{t+1} = a_t x_t + b_t, with a_t = 0 where it is settled and a_t = 1, b_t = 0 in
invalid rows. Rows are combined in pairs, pairs of pairs and so on. Sums are in float64 if the device has it.
"""

from __future__ import annotations

from typing import Any

from payback.core.arrays import Array


def before_each_row(xp: Any, factor: Array, added: Array, first: Array) -> Array:
    """Return x_0 … x_T of x_{t+1} = factor_t x_t + added_t with x_0 = `first`.

    Doubling (Hillis and Steele 1986): after k rounds each row includes the 2ᵏ rows before it.
    """
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
