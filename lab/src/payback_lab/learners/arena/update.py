"""One PPO update of all heads: the paper's epochs of minibatches, the losses of the policies and critics added up.

A minibatch's rows of numbers are: alive, log π_acted(a), the critics' old values, the policies' advantages, the
critics' targets, and, where a method trains critics on some steps only, 1 or 0 for each critic.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import Estimates
from payback_lab.learners.arena.heads import Heads, act_all, unflatten
from payback_lab.learners.arena.method import Method
from payback_lab.learners.arena.rollout import Collected
from payback_lab.learners.ppo.actor_critic import Parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.update import Batch, Learner, adam, flatten, in_epochs


class Rows(NamedTuple):
    """Hold a minibatch's numbers by name."""

    alive: jax.Array
    log_prob: jax.Array
    value: jax.Array
    """(V, n)."""
    advantage: jax.Array
    """(P, n)."""
    target: jax.Array
    """(V, n)."""
    counts: jax.Array | None
    """(V, n)."""


def update(
    config: ArenaPPO,
    method: Method,
    learner: Learner,
    state: Any,
    collected: Collected,
    estimates: Estimates,
    orders: jax.Array,
) -> tuple[Learner, Any]:
    """Train on a rollout; return also the method's state after the minibatches."""
    seen = collected.seen
    values = [seen.value[:, n] for n in range(method.heads.values)]
    counts = () if estimates.counts is None else estimates.counts
    rows = (seen.alive, seen.log_prob, *values, *estimates.advantage, *estimates.target, *counts)
    numbers = jnp.stack(rows).reshape(len(rows), -1)
    first_of_last = learner.taken + (config.epochs - 1) * (config.samples // config.batch)
    step = partial(_step, method, first_of_last)
    return in_epochs(config, (learner, state), seen, numbers, orders, step)


def _step(
    method: Method, first_of_last: jax.Array, config: PPO, trained: tuple[Learner, Any], batch: Batch
) -> tuple[tuple[Learner, Any], jax.Array]:
    """Take one Adam step on a minibatch, and let the method step its multiplier."""
    learner, state = trained
    p = unflatten(method.heads, learner.parameters)
    gradient, (half, gain) = jax.grad(loss, argnums=2, has_aux=True)(config, method.heads, p, batch)
    if method.step_multiplier is not None:
        state = method.step_multiplier(state, gain, learner.taken >= first_of_last)
    return (adam(config, learner, flatten(gradient)), state), half


def read_rows(heads: Heads, numbers: jax.Array) -> Rows:
    """Name the rows of a minibatch."""
    P, V = heads
    value, advantage, target, counts = jnp.split(numbers[2:], [V, V + P, 2 * V + P])
    return Rows(numbers[0], numbers[1], value, advantage, target, counts if len(counts) else None)


def loss(config: PPO, heads: Heads, p: Parameters, batch: Batch) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Return PPO's clipped loss over all heads, the memories halfway, and the first policy's gain.

        L = mean( Σ_π (−min(ρA, clip(ρ)A) − c_H H) + c_V Σ_V max((V − R)², (V_clip − R)²) )

    ρ is each policy's ratio to the one that acted. The gain is the mean of min(ρA, clip(ρ)A) with the first policy's ρ
    and the last policy's A.
    """
    rows = read_rows(heads, batch.numbers)
    memory = Memory(batch.memory[:HIDDEN], batch.memory[HIDDEN:])
    alive = rows.alive.reshape(config.recurrence, -1)
    logits, values, half = act_all(heads, p, batch.image, memory, alive)
    each, gain = jnp.zeros_like(rows.log_prob), jnp.zeros(())
    for n, scores in enumerate(logits):
        ratio, entropy = compared(scores, batch.action, rows.log_prob)
        each = each - clipped(config, ratio, rows.advantage[n]) - config.entropy_weight * entropy
        if n == 0:
            gain = (clipped(config, ratio, rows.advantage[-1]) * batch.weight).sum()
    for n, value in enumerate(values):
        error = value_error(config, value, rows.value[n], rows.target[n])
        each = each + config.value_weight * (error if rows.counts is None else rows.counts[n] * error)
    return (each * batch.weight).sum(), (jnp.concatenate([half.hidden, half.cell]), gain)


def compared(logits: jax.Array, action: jax.Array, log_prob: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a policy's ratio to the one that acted, and its entropy."""
    log_probs = jax.nn.log_softmax(logits, axis=0)
    taken = jnp.arange(len(log_probs))[:, None] == action
    ratio = jnp.exp(jnp.where(taken, log_probs, 0.0).sum(axis=0) - log_prob)
    return ratio, -(jnp.exp(log_probs) * log_probs).sum(axis=0)


def clipped(config: PPO, ratio: jax.Array, advantage: jax.Array) -> jax.Array:
    """Return min(ρA, clip(ρ)A)."""
    near = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    return jnp.minimum(ratio * advantage, near * advantage)


def value_error(config: PPO, value: jax.Array, old: jax.Array, target: jax.Array) -> jax.Array:
    """Return max((V − R)², (V_clip − R)²)."""
    near = old + jnp.clip(value - old, -config.clip, config.clip)
    return jnp.maximum((value - target) ** 2, (near - target) ** 2)
