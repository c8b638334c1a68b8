"""The LSTM of the actor-critic: one step for acting, a short sequence with its own backward pass for learning.

    i, f, o = σ(·), g = tanh(·) of  W_x x_t + W_h h + b;   c' = f∘c + i∘g;   h' = o∘tanh(c')

Arrays are feature-major: (features, samples), a sequence is (features, steps·samples), step by step.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

HIDDEN = 64


class Memory(NamedTuple):
    """Hold the LSTM's state, each (64, samples)."""

    hidden: jax.Array
    cell: jax.Array


class Weights(NamedTuple):
    """Hold the LSTM's weights; the rows of the four gates follow each other in the order i, f, g, o."""

    input: jax.Array
    """W_x, (256, 64)."""
    hidden: jax.Array
    """W_h, (256, 64)."""
    bias: jax.Array
    """b, (256, 1)."""


def lstm_step(weights: Weights, features: jax.Array, memory: Memory, alive: jax.Array) -> Memory:
    """Take one step; where `alive` is 0, because an episode has just begun, the memory is cleared first."""
    hidden, cell = memory.hidden * alive, memory.cell * alive
    both = jnp.concatenate([weights.input, weights.hidden], axis=1)
    values = _gate_values(both @ jnp.concatenate([features, hidden]) + weights.bias)
    return _next_memory(values, cell)


@jax.custom_vjp
def lstm_sequence(weights: Weights, features: jax.Array, memory: Memory, alive: jax.Array) -> tuple[Any, Memory]:
    """Run a sequence: features (64, steps·samples), alive (steps, samples).

    Return the hidden states (64, steps·samples), and the memory after half of the steps, from which the next epoch
    starts. No gradient flows through that memory, nor through the one that is given.
    """
    return _forward(weights, features, memory, alive)[0]


def _forward(weights: Weights, features: jax.Array, memory: Memory, alive: jax.Array) -> tuple[Any, tuple]:
    steps, samples = alive.shape
    from_input = (weights.input @ features).reshape(4 * HIDDEN, steps, samples)

    def step(t: jax.Array, carry: tuple) -> tuple:
        memory, seen, before, kept = carry
        now = lax.dynamic_index_in_dim(alive, t)
        hidden, cell = memory.hidden * now, memory.cell * now
        values = _gate_values(_at(from_input, t) + weights.hidden @ hidden + weights.bias)
        memory = _next_memory(values, cell)
        derivatives = _derivatives(values, cell, jnp.tanh(memory.cell), now)
        seen = Memory(*(_put(old, new, t) for old, new in zip(seen, memory, strict=True)))
        return memory, seen, _put(before, hidden, t), _keep(kept, derivatives, t)

    blank = jnp.zeros((HIDDEN, steps, samples), features.dtype)
    kept = (jnp.zeros_like(from_input), blank, blank)
    _, seen, before, kept = lax.fori_loop(0, steps, step, (memory, Memory(blank, blank), blank, kept))
    half = Memory(*(part[:, steps // 2 - 1] for part in seen))
    return (seen.hidden.reshape(HIDDEN, -1), half), (weights, features, alive, before, kept)


def _gate_values(gates: jax.Array) -> tuple[jax.Array, ...]:
    i, f, g, o = (gates[k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
    return jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)


def _next_memory(values: tuple[jax.Array, ...], cell: jax.Array) -> Memory:
    i, f, g, o = values
    cell = f * cell + i * g
    return Memory(o * jnp.tanh(cell), cell)


def _derivatives(values: tuple[jax.Array, ...], cell: jax.Array, squashed: jax.Array, alive: jax.Array) -> tuple:
    """Return the factors of the backward pass: ∂/∂ of the four gates' inputs, ∂h'/∂c', and ∂c'/∂c."""
    i, f, g, o = values
    of_gates = (g * i * (1 - i), cell * f * (1 - f), i * (1 - g * g), squashed * o * (1 - o))
    return of_gates, o * (1 - squashed * squashed), f * alive


def _keep(kept: tuple, derivatives: tuple, t: jax.Array) -> tuple:
    of_gates, by_cell, by_last = kept
    for k, derivative in enumerate(derivatives[0]):
        of_gates = lax.dynamic_update_slice(of_gates, derivative[:, None], (k * HIDDEN, t, 0))
    return of_gates, _put(by_cell, derivatives[1], t), _put(by_last, derivatives[2], t)


def _backward(saved: tuple, gradient: tuple) -> tuple:
    weights, features, alive, before, (of_gates, by_cell, by_last) = saved
    steps, samples = alive.shape
    seen = gradient[0].reshape(HIDDEN, steps, samples)
    transposed = weights.hidden.T

    def step(k: jax.Array, carry: tuple) -> tuple:
        hidden, cell, now, of_gates = carry
        t = steps - 1 - k
        earlier = jnp.maximum(t - 1, 0)
        factors = _at(of_gates, t).reshape(4, HIDDEN, samples)
        now = lax.dynamic_update_slice(now, (factors[:3] * cell).reshape(-1, samples), (0, 0))
        now = lax.dynamic_update_slice(now, factors[3] * hidden, (3 * HIDDEN, 0))
        hidden = (transposed @ now) * lax.dynamic_index_in_dim(alive, t) + _at(seen, earlier)
        cell = cell * _at(by_last, t) + hidden * _at(by_cell, earlier)
        return hidden, cell, now, _put(of_gates, now, t)

    hidden = seen[:, -1]
    blank = jnp.zeros((4 * HIDDEN, samples), features.dtype)
    *_, of_gates = lax.fori_loop(0, steps, step, (hidden, hidden * by_cell[:, -1], blank, of_gates))
    of_gates = of_gates.reshape(4 * HIDDEN, -1)
    before = before.reshape(HIDDEN, -1)
    by_weight = Weights(of_gates @ features.T, of_gates @ before.T, of_gates.sum(axis=1, keepdims=True))
    # In two parts, because XLA would otherwise merge the transposition into a slower matrix product.
    half = HIDDEN // 2
    turned = jnp.concatenate([weights.input[:, :half].T, weights.input[:, half:].T])
    return by_weight, turned @ of_gates, None, None


lstm_sequence.defvjp(_forward, _backward)


def _at(sequence: jax.Array, t: jax.Array) -> jax.Array:
    return lax.dynamic_index_in_dim(sequence, t, axis=1, keepdims=False)


def _put(sequence: jax.Array, value: jax.Array, t: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(sequence, value[:, None], (0, t, 0))
