"""One PPO update with the semantics of torch-ac: epochs of minibatches of short sequences.

A rollout is cut into sequences of `recurrence` steps. Sequence q = block·B + environment starts at step
block·recurrence; in every second epoch half a recurrence later, without the last block. A sequence starts
from the memory that the epoch before it left at that step; the first epoch from the rollout's.

Every minibatch has the same shape, because another shape would be compiled again; what is left out has weight 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from payback_lab.environments.doorkey.view import VIEW, channels
from payback_lab.learners.ppo.actor_critic import SHAPES, Parameters, act_all
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory


class Rollout(NamedTuple):
    """Hold T steps of B environments."""

    tiles: jax.Array
    """(T, 49, B) uint16, the views."""
    memory: jax.Array
    """(T, 128, B), hidden state and cell before each step."""
    alive: jax.Array
    """(T, B), 0 at the first step of an episode."""
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    """R_t + F'_t."""


class Learner(NamedTuple):
    """Hold the parameters, flattened into one vector, with Adam's moments."""

    parameters: jax.Array
    mean: jax.Array
    square: jax.Array
    taken: jax.Array
    """Adam steps taken, a float."""


class Batch(NamedTuple):
    """Hold one minibatch of S sequences, or several along a leading axis; columns count (step, sequence)."""

    image: tuple[jax.Array, ...]
    """Three channels (7, 7, steps·S), uint8."""
    memory: jax.Array
    """(128, S)."""
    numbers: jax.Array
    """(5, steps·S): alive, log_prob, value, advantage, return; another learner's step may read other rows."""
    action: jax.Array
    """(steps·S,)."""
    weight: jax.Array
    """(steps·S,), the weight of each step in the loss."""


Step = Callable[[PPO, Any, Batch], tuple[Any, jax.Array]]
"""(config, what is trained, minibatch) → it after one step, and the memories halfway through the sequences."""


def flatten(p: Parameters) -> jax.Array:
    """Concatenate the parameters into one vector."""
    return jnp.concatenate([part.ravel() for part in p])


def unflatten(vector: jax.Array) -> Parameters:
    """Undo `flatten`."""
    ends = np.cumsum([np.prod(shape) for shape in SHAPES.values()])
    parts = zip(jnp.split(vector, ends[:-1]), SHAPES.values(), strict=True)
    return Parameters(*(part.reshape(shape) for part, shape in parts))


def initial_learner(p: Parameters) -> Learner:
    """Start Adam with moments 0."""
    vector = flatten(p)
    return Learner(vector, jnp.zeros_like(vector), jnp.zeros_like(vector), jnp.zeros((), vector.dtype))


class Discounting(Protocol):
    """What an advantage estimate needs of a config."""

    @property
    def gamma(self) -> float:
        """Return γ."""
        ...

    @property
    def gae_lambda(self) -> float:
        """Return λ."""
        ...


def advantages(config: Discounting, reward: jax.Array, value: jax.Array, alive: jax.Array) -> jax.Array:
    """Estimate the advantages (T, B) from rewards (T, B), values and aliveness (T + 1, B).

        δ_t = R_t + γ V_{t+1} alive_{t+1} − V_t;   A_t = δ_t + γλ alive_{t+1} A_{t+1}

    After an episode's end, terminated or truncated, nothing is bootstrapped, because the debt is settled there.
    """

    def back(later: jax.Array, row: tuple) -> tuple[jax.Array, jax.Array]:
        reward, value, next_value, next_alive = row
        delta = reward + config.gamma * next_value * next_alive - value
        now = delta + config.gamma * config.gae_lambda * later * next_alive
        return now, now

    rows = (reward, value[:-1], value[1:], alive[1:])
    return lax.scan(back, jnp.zeros_like(reward[0]), rows, reverse=True, unroll=8)[1]


def draw_orders(config: PPO, key: jax.Array) -> jax.Array:
    """Shuffle the sequences for each epoch: (epochs, Q); what a shifted epoch leaves out comes last."""
    rank = jax.random.uniform(key, (config.epochs, config.sequences))
    left_out = jnp.arange(config.sequences) >= config.sequences - config.environments
    return jnp.argsort(rank.at[1::2].add(left_out), axis=1)


def inverse(order: jax.Array) -> jax.Array:
    """Return the inverse of a permutation; for some hundreds, comparing all pairs is faster than sorting.

    >>> inverse(jnp.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    places = jnp.arange(len(order))
    return jnp.where(order[:, None] == places, places[:, None], 0).sum(axis=0)


def update(config: PPO, learner: Learner, rollout: Rollout, advantage: jax.Array, orders: jax.Array) -> Learner:
    """Train on a rollout; `orders` is the order of its sequences in each epoch, from `draw_orders`."""
    numbers = (rollout.alive, rollout.log_prob, rollout.value, advantage, rollout.value + advantage)
    numbers = jnp.stack(numbers).reshape(5, -1)
    return in_epochs(config, learner, rollout, numbers, orders, train)


def in_epochs(config: PPO, learner: Any, rollout: Rollout, numbers: jax.Array, orders: jax.Array, step: Step) -> Any:
    """Take a step on every minibatch of every epoch; `numbers` (n, samples) are the rows that the step reads."""
    B, Q = config.environments, config.sequences
    sequence = jnp.arange(Q)

    def epoch(carry: tuple, now: tuple) -> tuple[tuple, None]:
        learner, memory, where = carry
        order, shifted = now
        batches = gather(config, rollout, numbers, order, shifted)
        batches = batches._replace(memory=columns(memory, where[order], len(batches.weight)))
        learner, half = lax.scan(lambda learner, batch: step(config, learner, batch), learner, batches)
        half = jnp.moveaxis(half, 1, 0).reshape(2 * HIDDEN, -1)
        # A shifted block begins halfway through its block, and block k + 1 halfway through shifted block k. Block 0
        # begins where the rollout did.
        later = B + inverse(order)
        where = jnp.where(shifted, jnp.where(sequence < B, sequence, jnp.roll(later, B)), later)
        return (learner, jnp.concatenate([rollout.memory[0], half], axis=1), where), None

    starts = jnp.moveaxis(rollout.memory[:: config.recurrence], 1, 0).reshape(2 * HIDDEN, -1)
    carry = (learner, jnp.concatenate([rollout.memory[0], starts], axis=1), B + sequence)
    shifted = jnp.arange(config.epochs) % 2 == 1
    return lax.scan(epoch, carry, (orders, shifted))[0][0]


def columns(memory: jax.Array, where: jax.Array, batches: int) -> jax.Array:
    """Return the named columns of (128, n), minibatch by minibatch: (batches, 128, S)."""
    rows = jnp.arange(len(memory))[:, None] * memory.shape[1]
    return memory.ravel()[rows + where.reshape(batches, 1, -1)]


def gather(config: PPO, rollout: Rollout, numbers: jax.Array, order: jax.Array, shifted: jax.Array) -> Batch:
    """Collect an epoch's minibatches along a leading axis, without their memory."""
    B, size = config.environments, config.batch // config.recurrence
    rows = order.reshape(-1, 1, size)
    shift = jnp.where(shifted, config.recurrence // 2, 0)
    step = rows // B * config.recurrence + shift + jnp.arange(config.recurrence)[:, None]
    step = jnp.minimum(step, config.steps - 1)  # beyond it, the weight is 0
    at = (step * B + rows % B).reshape(len(rows), 1, -1)
    cells = VIEW * VIEW
    first_cell = (step * B * cells + rows % B).reshape(len(rows), 1, -1)
    tiles = rollout.tiles.ravel()[first_cell + B * jnp.arange(cells)[:, None]]
    used = jnp.tile(rows[:, 0] < config.sequences - jnp.where(shifted, B, 0), config.recurrence)
    return Batch(
        image=channels(tiles.reshape(len(rows), VIEW, VIEW, -1)),
        memory=jnp.zeros(0),
        numbers=numbers.ravel()[at + jnp.arange(len(numbers))[:, None] * config.samples],
        action=rollout.action.ravel()[at[:, 0]],
        weight=used / used.sum(axis=1, keepdims=True, dtype=numbers.dtype),
    )


def train(config: PPO, learner: Learner, batch: Batch) -> tuple[Learner, jax.Array]:
    """Take one Adam step on a minibatch; return the memories halfway through its sequences."""
    p = unflatten(learner.parameters)
    gradient, half = jax.grad(loss, argnums=1, has_aux=True)(config, p, batch)
    return adam(config, learner, flatten(gradient)), half


def loss(config: PPO, p: Parameters, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Return PPO's clipped loss, and the memories halfway through the sequences.

    L = mean( −min(ρA, clip(ρ)A) − c_H H + c_V max((V − R)², (V_clip − R)²) )
    """
    alive, log_prob, old_value, advantage, target = batch.numbers
    memory = Memory(batch.memory[:HIDDEN], batch.memory[HIDDEN:])
    alive = alive.reshape(config.recurrence, -1)
    logits, value, half = act_all(p, batch.image, memory, alive)
    log_probs = jax.nn.log_softmax(logits, axis=0)
    taken = jnp.arange(len(log_probs))[:, None] == batch.action
    ratio = jnp.exp(jnp.where(taken, log_probs, 0.0).sum(axis=0) - log_prob)
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=0)
    near = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    policy_loss = -jnp.minimum(ratio * advantage, near * advantage)
    value_near = old_value + jnp.clip(value - old_value, -config.clip, config.clip)
    value_loss = jnp.maximum((value - target) ** 2, (value_near - target) ** 2)
    each = policy_loss - config.entropy_weight * entropy + config.value_weight * value_loss
    return (each * batch.weight).sum(), jnp.concatenate([half.hidden, half.cell])


def adam(config: PPO, learner: Learner, gradient: jax.Array) -> Learner:
    """Take one Adam step (β = 0.9, 0.999) along the gradient, clipped to the largest norm."""
    norm = jnp.sqrt((gradient * gradient).sum())
    gradient = gradient * jnp.minimum(1.0, config.largest_norm / (norm + 1e-6))
    taken = learner.taken + 1
    mean = 0.9 * learner.mean + 0.1 * gradient
    square = 0.999 * learner.square + 0.001 * gradient * gradient
    # 1 − βⁿ by expm1, because in float32 the plain difference is wrong in the fifth digit.
    unbias = -jnp.expm1(taken * np.log(0.9))
    spread = jnp.sqrt(square) / jnp.sqrt(-jnp.expm1(taken * np.log(0.999))) + config.adam_epsilon
    return Learner(learner.parameters - config.learning_rate / unbias * mean / spread, mean, square, taken)
