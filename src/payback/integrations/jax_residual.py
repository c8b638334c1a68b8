"""Watching what was paid inside `jit`: do the shaped rewards of every finished episode cancel?"""

# JAX's array constructors take a dtype and a sharding without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.watch import TOLERANCE


class Paid(NamedTuple):
    """What the episodes under way have been paid, (B,) each."""

    total: jax.Array
    """Σγ^t F'_t."""
    size: jax.Array
    """Σγ^t |F'_t|."""
    weight: jax.Array
    """γ^t of the next step."""


def nothing_paid(like: jax.Array) -> Paid:
    """Return the sums before the first step of an episode."""
    return Paid(jnp.zeros_like(like), jnp.zeros_like(like), jnp.ones_like(like))


def add_step(
    paid: Paid, shaped: jax.Array, ended: jax.Array, judged: jax.Array, gamma: float
) -> tuple[Paid, jax.Array]:
    """Add up one step, and return how far the episodes that end at it, if `judged`, are from cancelling.

    >>> paid = nothing_paid(jnp.zeros(1))
    >>> no, yes = jnp.array([False]), jnp.array([True])
    >>> paid, first = add_step(paid, jnp.array([1.0]), no, no, 0.5)
    >>> paid, last = add_step(paid, jnp.array([-1.0]), yes, yes, 0.5)
    >>> first.tolist(), [round(x, 3) for x in last.tolist()], paid.total.tolist()
    ([0.0], [0.333], [0.0])
    """
    total = paid.total + paid.weight * shaped
    size = paid.size + paid.weight * jnp.abs(shaped)
    left = jnp.abs(total) / jnp.where(size == 0, 1.0, size)
    going = Paid(total, size, paid.weight * gamma)
    paid = Paid(*(jnp.where(ended, new, old) for new, old in zip(nothing_paid(total), going, strict=True)))
    return paid, jnp.where(judged, left, 0.0)


def check_episodes(info: dict[str, Any]) -> int:
    """Warn if a finished episode's shaped rewards did not cancel, and return how many did not.

    `info` is what `step` returned, stacked by a scan or not: its "residual" is read outside `jit`, where values can be
    looked at. What overflowed float32 counts too, as it is not a number.

    >>> check_episodes({"residual": jnp.array([0.0, 3e-7])})
    0
    """
    residual = np.asarray(info["residual"])
    broken = int(np.count_nonzero(~(residual <= TOLERANCE)))
    if broken:
        warnings.warn(
            f"{broken} finished episodes did not cancel: |Σγ^t F′_t| is up to {np.max(residual):.3g} of Σγ^t |F′_t|, "
            "where 0 is right, so the bonus may change the optimal policy. The likely cause is a Match of your own "
            "that does not settle at `done` (payback.check_transform shows where), or, where it is nan, interest that "
            "float32 cannot hold: repay sooner, with grm and a shorter delay",
            ShapingWarning,
            stacklevel=2,
        )
    return broken
