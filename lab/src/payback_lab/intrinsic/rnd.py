"""Random network distillation (Burda 2018; `sec:cw`): a state is novel while a network cannot predict its features.

    error = mean_k (predictor_k(s') − target_k(s'))²,   F_t = scale · error

The target is a fixed random network; the predictor has the same shape and takes one Adam step on `error` at every
transition. The reward is the error before that step. Both networks see the cell as a one-hot vector: the target is
therefore a table of its outputs, and the predictor's first layer is a look-up of one row of weights.

The gradient is written out by hand, because the network is so small that Adam's pass over all weights (a weight without
gradient still moves while its mean decays) should be the only cost of a step. The tests compare it with PyTorch's
autograd and Adam. All functions are for one run; `vmap` them for more.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants, as PyTorch sets them."""

Layers = list[tuple[jax.Array, jax.Array]]
"""(weights (inputs, outputs), biases (outputs,)) of each layer."""


class Rnd(NamedTuple):
    """Hold one run's distillation."""

    target: jax.Array
    """(cells, outputs): the fixed network's output for every cell."""
    predictor: Layers
    """The trained network."""
    mean: Layers
    """Adam's running mean of the gradient."""
    square: Layers
    """Adam's running mean of its square."""
    updates: jax.Array
    """Adam steps taken."""


def init(key: jax.Array, cells: int, hidden: tuple[int, ...], outputs: int) -> Rnd:
    """Draw a target and a predictor, each weight and bias from U(±1/√inputs), PyTorch's default."""
    sizes = (cells, *hidden, outputs)
    target_key, predictor_key = jax.random.split(key)
    target, predictor = _layers(target_key, sizes), _layers(predictor_key, sizes)
    x = jnp.eye(cells)
    for weights, biases in target[:-1]:
        x = jax.nn.relu(x @ weights + biases)
    said = x @ target[-1][0] + target[-1][1]
    zeros = jax.tree.map(jnp.zeros_like, predictor)
    return Rnd(said, predictor, zeros, zeros, jnp.zeros((), jnp.int32))


def update(state: Rnd, cell: jax.Array, rate: float) -> tuple[Rnd, jax.Array]:
    """Return the prediction error on a cell, then take one Adam step of size `rate` to lower it."""
    activations, said = _predict(state.predictor, cell)
    off = said - state.target[cell]
    gradient = _gradient(state.predictor, cell, activations, 2 / off.size * off)
    return _adam(state, gradient, rate), jnp.mean(off * off)


def _layers(key: jax.Array, sizes: tuple[int, ...]) -> Layers:
    shapes = [(inputs + 1, outputs) for inputs, outputs in pairwise(sizes)]
    # One draw for all layers, because twelve draws would be twelve programs to compile.
    draws = jax.random.uniform(key, (sum(map(math.prod, shapes)),), minval=-1, maxval=1)
    layers, at = [], 0
    for rows, columns in shapes:
        block = draws[at : at + rows * columns].reshape(rows, columns) * (rows - 1) ** -0.5
        layers.append((block[:-1], block[-1]))
        at += rows * columns
    return layers


def _predict(layers: Layers, cell: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """Return the input of each layer but the first, and the output."""
    (weights, biases), *rest = layers
    x, entered = weights[cell] + biases, []
    for weights, biases in rest:
        entered.append(jax.nn.relu(x))
        x = entered[-1] @ weights + biases
    return entered, x


def _gradient(layers: Layers, cell: jax.Array, entered: list[jax.Array], upstream: jax.Array) -> Layers:
    """Backpropagate ∂error/∂output through the layers."""
    gradient = []
    for (weights, _), x in zip(layers[:0:-1], entered[::-1], strict=True):
        gradient.append((x[:, None] * upstream[None, :], upstream))
        upstream = jnp.where(x > 0, weights @ upstream, 0)
    chosen = jnp.arange(layers[0][0].shape[0]) == cell
    gradient.append((jnp.where(chosen[:, None], upstream[None, :], 0), upstream))
    return gradient[::-1]


def _adam(state: Rnd, gradient: Layers, rate: float) -> Rnd:
    """Take one Adam step: w ← w − rate · (m/(1−β₁ⁿ)) / (√(v/(1−β₂ⁿ)) + ε)."""
    updates = state.updates + 1
    # 1 − βⁿ by expm1, because in float32 the plain difference loses four digits at n = 1.
    n = updates.astype(jnp.float32)
    size = rate / -jnp.expm1(n * jnp.log(DECAY_MEAN))
    root = jax.lax.rsqrt(-jnp.expm1(n * jnp.log(DECAY_SQUARE)))
    mean = jax.tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, state.mean, gradient)
    square = jax.tree.map(lambda v, g: DECAY_SQUARE * v + (1 - DECAY_SQUARE) * g * g, state.square, gradient)
    predictor = jax.tree.map(
        lambda w, m, v: w - size * m / (jnp.sqrt(v) * root + EPSILON), state.predictor, mean, square
    )
    return Rnd(state.target, predictor, mean, square, updates)
