"""What a method consists of; `named.py` has the methods by name."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback import RewardTransform
from payback_lab.learners.arena.estimates import Estimates
from payback_lab.learners.arena.heads import Heads
from payback_lab.learners.arena.rollout import Collected, Control


class Method(NamedTuple):
    """Describe a method to the learner, as pure functions of its own state (a pytree of arrays, () for most)."""

    init: Callable[[], Any]
    """The state before the first update."""
    zeta: Callable[[jax.Array], jax.Array]
    """The share of training that is done → ζ."""
    control: Callable[[Any, jax.Array], Control]
    """(state, ζ) → who acts in the next rollout, and what it is paid."""
    estimates: Callable[[Any, jax.Array, Collected], Estimates]
    """(state, ζ, rollout) → advantages and targets of the update."""
    after: Callable[[Any, Any, Collected], Any]
    """(state before the update, state after its minibatches, rollout) → the state of the next update."""
    heads: Heads = Heads()
    transform: RewardTransform | None = None
    """What the library does to F."""
    step_multiplier: Callable[[Any, jax.Array, jax.Array], Any] | None = None
    """(state, gain of the first policy on the second's advantage, whether this is the last epoch) → state, at every
    minibatch; None where nothing is learned but the network."""
    multiplier: Callable[[Any], jax.Array] = lambda state: jnp.full((), jnp.nan)
    """The state's multiplier, for the record; NaN where a method has none."""


def no_state() -> tuple[()]:
    """Start a method that keeps nothing between updates."""
    return ()


def unchanged(before: Any, state: Any, collected: Collected) -> Any:
    """Leave a method's state as it is."""
    return state


def first_policy(environments: int, of_bonus: Any, of_transform: Any = 0.0) -> Control:
    """Let the first policy act everywhere."""
    return Control(jnp.zeros(environments, jnp.int32), jnp.asarray(of_bonus), jnp.asarray(of_transform))
