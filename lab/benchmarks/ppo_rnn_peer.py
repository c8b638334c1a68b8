"""A plain PPO with an LSTM in the way of purejaxrl, as a peer for `arena_learner.py`; written for it, nothing copied.

One jitted update: a scan over the steps of all environments, advantages, then epochs of minibatches of whole
environments, with backpropagation through the whole rollout. The layers have the sizes of the arena's learner.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from payback_lab.learners.ppo.config import PPO

HIDDEN = 64
LAYERS = {
    "conv1": (2, 2, 3, 16),
    "conv2": (2, 2, 16, 32),
    "conv3": (2, 2, 32, 64),
    "lstm": (2 * HIDDEN, 4 * HIDDEN),
    "actor": (HIDDEN, 64),
    "critic": (HIDDEN, 64),
    "policy": (64, 7),
    "value": (64, 1),
}
Weights = dict[str, tuple[jax.Array, jax.Array]]


class Worlds(NamedTuple):
    """Hold an environment: both functions are of one environment, and start again by themselves."""

    reset: Callable[[jax.Array], tuple[Any, jax.Array]]
    """key → state, view (7, 7, 3)."""
    step: Callable[[Any, jax.Array, jax.Array], tuple[Any, jax.Array, jax.Array, jax.Array]]
    """(state, action, key) → state, view, reward, whether the episode ended."""


class Seen(NamedTuple):
    """Hold one step of all environments."""

    view: jax.Array
    begins: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array


class State(NamedTuple):
    """Hold everything that an update changes."""

    weights: Weights
    moments: tuple[Weights, Weights]
    taken: jax.Array
    world: Any
    view: jax.Array
    begins: jax.Array
    memory: tuple[jax.Array, jax.Array]
    key: jax.Array


class Trainer(NamedTuple):
    """Hold how training starts and goes on, as the arena's trainer does."""

    init: Callable[[jax.Array], State]
    update: Callable[[State], tuple[State, jax.Array]]


def make_peer(config: PPO, worlds: Worlds) -> Trainer:
    """Return the trainer."""

    def init(key: jax.Array) -> State:
        key, first, second = jax.random.split(key, 3)
        world, view = jax.vmap(worlds.reset)(jax.random.split(first, config.environments))
        weights = _drawn(second)
        zero = jax.tree.map(jnp.zeros_like, weights)
        memory = (jnp.zeros((config.environments, HIDDEN)),) * 2
        begins = jnp.ones(config.environments, bool)
        return State(weights, (zero, zero), jnp.zeros(()), world, view, begins, memory, key)

    @jax.jit
    def update(state: State) -> tuple[State, jax.Array]:
        start = state.memory
        (state, last), seen = _rollout(config, worlds, state)
        advantage = _advantages(config, seen, last, state.begins)
        learnt, loss = _learn(config, state, start, seen, advantage)
        return learnt, loss

    return Trainer(init, update)


def _rollout(config: PPO, worlds: Worlds, state: State) -> tuple[tuple[State, jax.Array], Seen]:
    def one(state: State, _: None) -> tuple[State, Seen]:
        key, draw, move = jax.random.split(state.key, 3)
        memory, logits, value = _apply(state.weights, state.memory, state.view, state.begins)
        action = jax.random.categorical(draw, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1)[:, 0]
        keys = jax.random.split(move, config.environments)
        world, view, reward, ended = jax.vmap(worlds.step)(state.world, action, keys)
        seen = Seen(state.view, state.begins, action, log_prob, value, reward)
        return state._replace(world=world, view=view, begins=ended, memory=memory, key=key), seen

    state, seen = lax.scan(one, state, None, config.steps)
    last = _apply(state.weights, state.memory, state.view, state.begins)[2]
    return (state, last), seen


def _advantages(config: PPO, seen: Seen, last: jax.Array, ended: jax.Array) -> jax.Array:
    def back(carry: tuple, row: tuple) -> tuple[tuple, jax.Array]:
        later, next_value, next_begins = carry
        begins, value, reward = row
        delta = reward + config.gamma * next_value * (1 - next_begins) - value
        now = delta + config.gamma * config.gae_lambda * (1 - next_begins) * later
        return (now, value, begins), now

    rows = (seen.begins.astype(jnp.float32), seen.value, seen.reward)
    return lax.scan(back, (jnp.zeros_like(last), last, ended.astype(jnp.float32)), rows, reverse=True)[1]


def _learn(config: PPO, state: State, start: tuple, seen: Seen, advantage: jax.Array) -> tuple[State, jax.Array]:
    wide = config.batch // config.steps
    """Environments of one minibatch."""

    def batch(carry: tuple, lanes: jax.Array) -> tuple[tuple, jax.Array]:
        part = jax.tree.map(lambda x: x[:, lanes], (seen, advantage))
        memory = jax.tree.map(lambda x: x[lanes], start)
        loss, gradient = jax.value_and_grad(_loss)(carry[0], config, memory, *part)
        return _adam(config, *carry, gradient), loss

    def epoch(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        lanes = jax.random.permutation(key, config.environments).reshape(-1, wide)
        return lax.scan(batch, carry, lanes)

    key, draw = jax.random.split(state.key)
    carry = (state.weights, state.moments, state.taken)
    (weights, moments, taken), losses = lax.scan(epoch, carry, jax.random.split(draw, config.epochs))
    return state._replace(weights=weights, moments=moments, taken=taken, key=key), losses.mean()


def _loss(weights: Weights, config: PPO, memory: tuple, seen: Seen, advantage: jax.Array) -> jax.Array:
    def one(memory: tuple, row: tuple) -> tuple[tuple, tuple]:
        memory, logits, value = _apply(weights, memory, *row)
        return memory, (logits, value)

    _, (logits, value) = lax.scan(one, memory, (seen.view, seen.begins))
    log_probs = jax.nn.log_softmax(logits)
    ratio = jnp.exp(jnp.take_along_axis(log_probs, seen.action[..., None], axis=-1)[..., 0] - seen.log_prob)
    target = advantage + seen.value
    normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    surrogate = jnp.minimum(ratio * normal, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * normal)
    near = seen.value + jnp.clip(value - seen.value, -config.clip, config.clip)
    error = jnp.maximum((value - target) ** 2, (near - target) ** 2).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
    return -surrogate.mean() + config.value_weight * 0.5 * error - config.entropy_weight * entropy


def _apply(weights: Weights, memory: tuple, view: jax.Array, begins: jax.Array) -> tuple[tuple, jax.Array, jax.Array]:
    x = jax.nn.relu(_conv(weights["conv1"], view.astype(jnp.float32)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(_conv(weights["conv2"], x))
    x = jax.nn.relu(_conv(weights["conv3"], x)).reshape(len(view), -1)
    hidden, cell = (jnp.where(begins[:, None], 0.0, part) for part in memory)
    i, f, g, o = jnp.split(_dense(weights["lstm"], jnp.concatenate([x, hidden], axis=1)), 4, axis=1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
    logits = _dense(weights["policy"], jnp.tanh(_dense(weights["actor"], hidden)))
    value = _dense(weights["value"], jnp.tanh(_dense(weights["critic"], hidden)))[:, 0]
    return (hidden, cell), logits, value


def _conv(layer: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
    weight, bias = layer
    return lax.conv_general_dilated(x, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias


def _dense(layer: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
    return x @ layer[0] + layer[1]


def _drawn(key: jax.Array) -> Weights:
    keys = jax.random.split(key, len(LAYERS))
    draw = jax.nn.initializers.orthogonal()
    return {name: (draw(k, shape), jnp.zeros(shape[-1])) for k, (name, shape) in zip(keys, LAYERS.items(), strict=True)}


def _adam(config: PPO, weights: Weights, moments: tuple, taken: jax.Array, gradient: Weights) -> tuple:
    norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, config.largest_norm / (norm + 1e-6)), gradient)
    taken = taken + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradient)
    rate = config.learning_rate * jnp.sqrt(1 - 0.999**taken) / (1 - 0.9**taken)
    moved = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + config.adam_epsilon), weights, first, second)
    return moved, (first, second), taken
