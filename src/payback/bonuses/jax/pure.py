"""The form of a bonus in JAX: a state and pure functions of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

State = Any
"""A tuple of arrays."""


class PureBonus(NamedTuple):
    """An intrinsic reward without hidden state.

    >>> import jax, jax.numpy as jnp
    >>> from payback.bonuses.jax import count
    >>> bonus = count(cells=3, alpha=1.0, root=False)
    >>> state = bonus.init(jax.random.key(0), jnp.zeros(2, int))
    >>> state, F = bonus.update(state, jnp.array([0, 0]), None, jnp.array([1, 2]), jnp.zeros(2, bool))
    >>> F.tolist()
    [1.0, 1.0]
    """

    init: Callable[[jax.Array, jax.Array], State]
    """(key, obs) → state: `obs` (B, …) shows the shapes."""
    update: Callable[..., tuple[State, jax.Array]]
    """(state, obs, action, next_obs, done, valid=None) → (state, F), F (B,)."""
    learn: Callable[[State, jax.Array, jax.Array, jax.Array], tuple[State, jax.Array]] | None = None
    """(state, obs, action, next_obs) → (state, loss): one gradient step on rows of the caller's choice."""
