"""What a method makes of a rollout: an advantage for every policy, a target for every critic."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from payback_lab.learners.arena.rollout import Collected
from payback_lab.learners.ppo.update import Discounting, advantages


class Estimates(NamedTuple):
    """Hold what the update is made with; every array is (T, B)."""

    advantage: tuple[jax.Array, ...]
    """Of each policy."""
    target: tuple[jax.Array, ...]
    """Of each critic, the return that it is regressed on."""
    counts: tuple[jax.Array, ...] | None
    """Of each critic, 1 where it is trained and 0 where not; None where all are trained on everything."""
    paid: jax.Array
    """F'_t, what the policy was paid for novelty, for the record."""


def estimated(config: Discounting, collected: Collected, reward: jax.Array, critic: int) -> jax.Array:
    """Return the advantages (T, B) of a reward by the values that a critic had when the rollout was collected.

        δ_t = r_t + γ V_{t+1} alive_{t+1} − V_t;   A_t = δ_t + γλ alive_{t+1} A_{t+1}

    V of the next episode never enters: alive_{t+1} is 0 after an episode's last step.
    """
    value = jnp.concatenate([collected.seen.value[:, critic], collected.last_value[critic][None]])
    return advantages(config, reward, value, alive_after(collected, first=True))


def alive_after(collected: Collected, *, first: bool = False) -> jax.Array:
    """Return whether the episode goes on after each step, (T, B); with `first` also whether it did before the first."""
    alive = jnp.concatenate([collected.seen.alive, collected.last_alive[None]])
    return alive if first else alive[1:]


def value_after(collected: Collected, critic: int) -> jax.Array:
    """Return a critic's value after each step, (T, B), of whichever episode goes on there."""
    value = collected.seen.value[:, critic]
    return jnp.concatenate([value[1:], collected.last_value[critic][None]])
