"""ζ: how far a method has gone from the raw bonus to its own end, by the share of training that is done."""

import jax
import jax.numpy as jnp


def zeta(share: jax.Array | float, start: float, end: float) -> jax.Array:
    """Return ζ, 0 up to `start`, 1 from `end` on, and a straight line between.

    >>> [float(zeta(share, 0.25, 0.75)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    >>> float(zeta(0.0, 0.0, 0.0)), float(zeta(0.49, 0.5, 0.5)), float(zeta(0.5, 0.5, 0.5))
    (1.0, 0.0, 1.0)
    """
    if start == end:
        return jnp.where(jnp.asarray(share) >= end, 1.0, 0.0)
    return jnp.clip((jnp.asarray(share) - start) / (end - start), 0.0, 1.0)
