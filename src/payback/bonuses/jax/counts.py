"""Counted visits in tables of a fixed size, for JAX."""

# JAX's array constructors take a dtype and a sharding without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback.bonuses.jax.pure import PureBonus

Cell = Callable[[jax.Array], jax.Array]
"""From observations (B, …) to the number of the cell that each is in, 0 … cells − 1; another counts as the nearest."""


class Visited(NamedTuple):
    """How often each environment has been in each cell in this episode."""

    table: jax.Array
    """(B, cells)."""
    fresh: jax.Array
    """(B,): whether an episode is yet to begin."""


def episodic_count(cells: int, alpha: float = 0.02, *, root: bool = False, cell: Cell = lambda obs: obs) -> PureBonus:
    """Pay for arriving in a cell, less with each visit in this episode.

        F_t = α / n(s_{t+1}),  or  α / √n(s_{t+1}) with root=True                          (tabular_im)

    `payback.bonuses.EpisodicCount` with a table instead of a dictionary: n includes the present visit, the start
    counts once, without pay. A cell outside 0 … cells − 1 counts as the nearest one, because nothing can be raised
    under `jit`.

    >>> bonus = episodic_count(cells=3, alpha=1.0)
    >>> here, no = jnp.array([0]), jnp.array([False])
    >>> state = bonus.init(jax.random.key(0), here)
    >>> state, first = bonus.update(state, here, None, here + 1, no)
    >>> state, second = bonus.update(state, here + 1, None, here, no)
    >>> first.tolist(), second.tolist()
    ([1.0], [0.5])
    """

    def init(key: jax.Array, obs: jax.Array) -> Visited:
        rows = cell(obs).shape
        return Visited(jnp.zeros((*rows, cells), jnp.int32), jnp.ones(rows, bool))

    def update(
        state: Visited, obs: jax.Array, action: Any, next_obs: jax.Array, done: jax.Array, valid: Any = None
    ) -> tuple[Visited, jax.Array]:
        counted = jnp.ones_like(done) if valid is None else valid
        start, here = (jnp.arange(cells) == _within(cell(seen), cells)[..., None] for seen in (obs, next_obs))
        begins = (state.fresh & counted)[..., None]
        table = jnp.where(begins, start, state.table) + (here & counted[..., None])
        n = jnp.maximum(jnp.where(here, table, 0).sum(axis=-1), 1)
        ends = done & counted
        table = jnp.where(ends[..., None], 0, table).astype(jnp.int32)
        fresh = jnp.where(counted, ends, state.fresh)
        return Visited(table, fresh), jnp.where(counted, _pay(alpha, n, root), 0.0)

    return PureBonus(init, update)


def count(cells: int, alpha: float = 0.1, *, root: bool = True, cell: Cell = lambda obs: obs) -> PureBonus:
    """Pay for arriving in a cell, less with each visit in all episodes of all environments.

        F_t = α / √n(s_{t+1}),  or  α / n(s_{t+1}) with root=False

    `payback.bonuses.Count` with a table instead of a dictionary: a batch is counted before one of its rows is paid.
    A cell outside 0 … cells − 1 counts as the nearest one, because nothing can be raised under `jit`.

    >>> bonus = count(cells=2, alpha=1.0, root=False)
    >>> state = bonus.init(jax.random.key(0), jnp.array([0, 0]))
    >>> bonus.update(state, None, None, jnp.array([1, 1]), jnp.zeros(2, bool))[1].tolist()
    [0.5, 0.5]
    """

    def init(key: jax.Array, obs: jax.Array) -> jax.Array:
        return jnp.zeros(cells, jnp.int32)

    def update(
        state: jax.Array, obs: Any, action: Any, next_obs: jax.Array, done: jax.Array, valid: Any = None
    ) -> tuple[jax.Array, jax.Array]:
        counted, here = jnp.ones_like(done) if valid is None else valid, _within(cell(next_obs), cells)
        state = state.at[here].add(counted.astype(jnp.int32))
        return state, jnp.where(counted, _pay(alpha, jnp.maximum(state[here], 1), root), 0.0)

    return PureBonus(init, update)


def _within(found: jax.Array, cells: int) -> jax.Array:
    """Return the nearest cell that there is: one outside the table would be counted nowhere and pay α for ever."""
    whole = found.astype(jnp.int32) if found.dtype == bool else found  # as an index, booleans would be a mask
    return jnp.clip(whole, 0, cells - 1)


def _pay(alpha: float, n: jax.Array, root: bool) -> jax.Array:
    visits = n.astype(jnp.float32)
    return alpha / (jnp.sqrt(visits) if root else visits)
