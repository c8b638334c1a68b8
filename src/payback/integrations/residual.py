"""Watching what was paid without looking at values, in Torch and under JAX's `jit`: does Σγ^t F′_t cancel?"""

from __future__ import annotations

from typing import NamedTuple

from payback.core.arrays import Array, namespace
from payback.integrations.watch import FADED, FLOOR, MOST_STEPS, TOLERANCE

ROUNDINGS = 2
"""How many roundings of what was paid before a debt may be off by, because it can be a difference of large loans."""


class Paid(NamedTuple):
    """What the episodes under way have been paid, (B,) each; t counts from where they are judged from."""

    total: Array
    """Σγ^t F′_t, and the debt that it is judged from."""
    size: Array
    """Σγ^t |F′_t|, and the size of that debt."""
    floor: Array
    """Is added to the size, because of the rounding of what was paid before."""
    largest: Array
    """The largest |F′_t| of the episode."""
    weight: Array
    """γ^t of the next step."""
    steps: Array
    """t of the next step."""
    off: Array
    """How far, relatively, the sum was from γ^t Debt_t where the episode was judged so far."""


def nothing_paid(like: Array) -> Paid:
    """Return the sums before the first step of an episode."""
    xp = namespace(like)
    zeros, ones, steps = xp.zeros_like(like), xp.ones_like(like), xp.zeros_like(like, dtype=xp.int32)
    return Paid(zeros, zeros, zeros, zeros, ones, steps, zeros)


def add_step(
    paid: Paid, shaped: Array, owed: Array, ended: Array, judged: Array, gamma: float, least: float = 0.0
) -> tuple[Paid, Array]:
    """Add up one step, and return how far the episodes that end at it, if `judged`, are from cancelling.

        |Σγ^t F′_t| / Σγ^t |F′_t|

    `owed` is the debt after the step. Every 256 steps, and sooner where γ^t becomes small, the sum so far must be
    γ^t Debt_t (the law); from there on the episode is judged from that debt, so that the discount hides nothing of what
    comes late. Sizes below `least` count as `least`.

    >>> import numpy as np
    >>> paid, no, yes = nothing_paid(np.zeros(1)), np.array([False]), np.array([True])
    >>> paid, first = add_step(paid, np.array([1.0]), np.array([2.0]), no, no, 0.5)
    >>> paid, last = add_step(paid, np.array([-1.0]), np.array([0.0]), yes, yes, 0.5)
    >>> first.tolist(), last.round(3).tolist(), paid.total.tolist()
    ([0.0], [0.333], [0.0])
    """
    xp = namespace(shaped)
    total, size = paid.total + paid.weight * shaped, paid.size + paid.weight * xp.abs(shaped)
    left = xp.maximum(paid.off, _relative(total, size + paid.floor, least))
    largest = xp.maximum(paid.largest, xp.abs(shaped))
    going = Paid(total, size, paid.floor, largest, paid.weight * gamma, paid.steps + 1, paid.off)
    going = _judge_from(owed, going, least)
    return _where(ended, nothing_paid(total), going), xp.where(judged, left, xp.zeros_like(left))


def _judge_from(owed: Array, paid: Paid, least: float) -> Paid:
    """Compare the sums with γ^t Debt_t after 256 steps, or where γ^t has become small, and go on there from Debt_t."""
    xp, due = namespace(owed), paid.weight * owed
    off = xp.maximum(paid.off, _relative(paid.total - due, paid.size + paid.floor + xp.abs(due), least))
    share = max(FLOOR, ROUNDINGS * float(xp.finfo(owed.dtype).eps) / TOLERANCE)
    floor = share * xp.maximum(paid.largest, paid.size / paid.weight)
    anew = nothing_paid(owed)._replace(total=owed, size=xp.abs(owed), floor=floor, largest=paid.largest, off=off)
    return _where((paid.weight < FADED) | (paid.steps == MOST_STEPS), anew, paid)


def _where(chosen: Array, new: Paid, old: Paid) -> Paid:
    xp = namespace(chosen)
    return Paid(*(xp.where(chosen, x, y) for x, y in zip(new, old, strict=True)))


def _relative(left: Array, size: Array, least: float) -> Array:
    xp = namespace(left)
    return xp.abs(left) / xp.where(size <= least, xp.full_like(size, least or 1.0), size)
