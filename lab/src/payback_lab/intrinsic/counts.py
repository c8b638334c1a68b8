"""The bonus of DoorKey: α divided by the number of visits to a place in this episode (`tabular_im`)."""

import jax
import jax.numpy as jnp


def first_visit(cell: jax.Array, cells: int) -> jax.Array:
    """Start counting visits at the start of episodes, where the first cell counts once; int32 (…, cells).

    >>> first_visit(jnp.array([2, 0]), 3).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    return _at(cell, cells).astype(jnp.int32)


def visit(counts: jax.Array, cell: jax.Array, alpha: float) -> tuple[jax.Array, jax.Array]:
    """Count a visit and return the bonus F_t = α / n(s_{t+1})  (`tabular_im`).

    n counts the visits in this episode to (x, y, carrying the key), the present one included: the first pays α. The
    paper says "previously visited", but its own example (1, 1/2, 1/3, …) includes the present visit. The cell where an
    episode starts has been visited once, without a bonus.

    >>> counts, bonus = visit(first_visit(jnp.array([0]), 3), jnp.array([2]), alpha=0.5)
    >>> counts, bonus = visit(counts, jnp.array([2]), alpha=0.5)
    >>> counts.tolist(), bonus.tolist()
    ([[1, 0, 2]], [0.25])
    """
    here = _at(cell, counts.shape[-1])
    counts = counts + here
    visits = jnp.where(here, counts, 0).sum(axis=-1)
    return counts, alpha / visits.astype(jnp.float32)


def _at(cell: jax.Array, cells: int) -> jax.Array:
    # A comparison with all cells, because on a CPU it is much faster than scattering a few indices.
    return jnp.arange(cells) == cell[..., None]
