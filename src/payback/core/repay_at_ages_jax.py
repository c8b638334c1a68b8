"""Repaying at fixed ages for a whole (T, B) block at once in JAX.

Stepping a shift register under `lax.scan` copies the window at every step. A short window is better unrolled:
each age is one shifted view of the block, and XLA fuses all of them into a single pass. A long delay is
counted down: each loan is valued at the end that will settle it, which costs the same for every delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from payback.core.arrays import Array

UNROLL = 32
"""The longest window that is unrolled; longer ones are scanned."""


def unrolled_block(
    xp: Any, due_of: np.ndarray, rest_of: np.ndarray, loans: Array, rewards: Array, dones: Array
) -> tuple[Array, Array]:
    """Repay over W = len(loans) steps as the step does; return the loans left, newest first, and the shaped rewards."""
    W, T = loans.shape[0], rewards.shape[0]
    due, rest = (weights.astype(rewards.dtype) for weights in (due_of, rest_of))
    lent = xp.concatenate((loans[::-1], rewards))
    age = _steps_since_end(xp, dones, W)
    paid, settled = xp.zeros_like(rewards), xp.zeros_like(rewards)
    for k in range(1, W + 1):
        loan = xp.where(age[:-1] >= k, lent[W - k : W - k + T], 0)
        if due[k - 1]:
            paid = paid + due[k - 1] * loan
        settled = settled + rest[k - 1] * loan
    shaped = xp.where(dones, -settled, rewards - paid)
    left = xp.where(age[-1] >= xp.arange(W, 0, -1)[:, None], lent[T:], 0)
    return left[::-1], shaped


def countdown_block(xp: Any, gamma: float, loans: Array, rewards: Array, dones: Array) -> tuple[Array, Array]:
    """Repay each loan in one sum at age D = len(loans), or at its episode's end, at a cost that is flat in D."""
    from jax import lax

    D, T, log_interest = loans.shape[0], rewards.shape[0], -math.log(gamma)
    lent = xp.concatenate((loans[::-1], rewards))
    ends = xp.concatenate((xp.zeros_like(loans, dtype=bool), dones))
    far = xp.full(rewards.shape[1:], D + 1, dtype=xp.int32)
    _, ahead = lax.scan(_count_down(xp, D + 1), far, ends, reverse=True)
    _, settlement = lax.scan(_settle(xp, D, log_interest), xp.zeros_like(rewards[0]), (lent, ends, ahead))
    # A loan is due at age D only if no end settles it before: `ahead` counts from its own step.
    due = xp.where(ahead[:T] < D, 0.0, lent[:T]) * float(gamma**-D)
    left = xp.where(ahead[T:] > D, lent[T:], 0.0)
    return left[::-1], xp.where(dones, -settlement[D:], rewards - due)


def _steps_since_end(xp: Any, dones: Array, most: int) -> Array:
    """Return (T+1, B): the steps of each row's episode before it, `most` if it began before the block."""
    from jax import lax

    start = xp.full(dones.shape[1:], most, dtype=xp.int32)
    last, before = lax.scan(_count_up(xp, most), start, dones)
    return xp.concatenate((before, last[None]))


# The bodies of the scans are kept, because outside `jit` a scan with a new function is compiled anew at every call.


@lru_cache(maxsize=64)
def _count_down(xp: Any, most: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda steps, end: (xp.where(end, 0, xp.minimum(steps + 1, most)),) * 2


@lru_cache(maxsize=64)
def _count_up(xp: Any, most: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda age, done: (xp.where(done, 0, xp.minimum(age + 1, most)), age)


@lru_cache(maxsize=64)
def _settle(xp: Any, D: int, log_interest: float) -> Callable[[Array, tuple[Array, Array, Array]], tuple[Array, Array]]:
    def settle(debt: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        loan, end, steps = row
        at_end = loan * xp.exp(steps.astype(loan.dtype) * log_interest)
        return xp.where(end, 0.0, debt + xp.where(steps <= D, at_end, 0.0)), debt

    return settle
