"""How a method's weights change with the share of training that is done."""

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


def shrink(share: jax.Array | float, start: float, end: float, least: float) -> jax.Array:
    """Return a weight: 1 up to `start`, then shrinking geometrically towards `least` at `end`, and 0 from there on.

    >>> [round(float(shrink(share, 0.5, 0.9, 0.01)), 4) for share in (0.0, 0.5, 0.7, 0.9, 1.0)]
    [1.0, 1.0, 0.1, 0.0, 0.0]
    """
    share = jnp.asarray(share, jnp.float32)
    return jnp.where(share >= end, 0.0, least ** jnp.clip((share - start) / (end - start), 0.0, 1.0))
