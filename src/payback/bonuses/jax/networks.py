"""Multilayer perceptrons and Adam as pure functions, computing what Torch's do."""

# JAX's array constructors take a dtype without a type, and jax.tree.map does not type what it passes to its function.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Layers = list[tuple[jax.Array, jax.Array]]
"""Weights (inputs, outputs) and biases, layer by layer."""


def init_mlp(key: jax.Array, *sizes: int) -> Layers:
    """Draw orthogonal weights of gain √2 and set biases to 0.

    >>> [weight.shape for weight, _ in init_mlp(jax.random.key(0), 3, 8, 2)]
    [(3, 8), (8, 2)]
    """
    draw = jax.nn.initializers.orthogonal(math.sqrt(2))
    keys = jax.random.split(key, len(sizes) - 1)
    return [(draw(k, (i, o), jnp.float32), jnp.zeros(o)) for k, (i, o) in zip(keys, pairwise(sizes), strict=True)]


def mlp(layers: Layers, x: jax.Array) -> jax.Array:
    """Apply the layers with ReLU between them."""
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


class Adam(NamedTuple):
    """The running moments of gradients (Kingma and Ba 2015)."""

    step: jax.Array
    first: Any
    second: Any


def init_adam(weights: Any) -> Adam:
    """Return moments of 0."""
    zeros = jax.tree.map(jnp.zeros_like, weights)
    return Adam(jnp.zeros((), jnp.int32), zeros, zeros)


def adam(state: Adam, weights: Any, gradient: Any, rate: float) -> tuple[Adam, Any]:
    """Take one step, with Torch's defaults β = (0.9, 0.999), ε = 1e-8."""
    step = state.step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state.second, gradient)
    one, two = 1 - 0.9**step, 1 - 0.999**step
    weights = jax.tree.map(lambda w, m, v: w - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8), weights, first, second)
    return Adam(step, first, second), weights
