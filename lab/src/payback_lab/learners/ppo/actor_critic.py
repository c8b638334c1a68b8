"""The network of the paper's base code: convolutions, LSTM, a tanh layer each for actor and critic.

Arrays are feature-major, (features, samples). Weights are (out, in) as in Torch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.learners.ppo.convolutions import image_features
from payback_lab.learners.ppo.lstm import HIDDEN, Memory, Weights, lstm_sequence, lstm_step


class Parameters(NamedTuple):
    """Hold the weights and biases of the network."""

    conv1: jax.Array
    """(16, 12), inputs in the order (row, column, channel) of the 2×2 window."""
    conv1_bias: jax.Array
    conv2: jax.Array
    """(32, 64), inputs (channel, row, column)."""
    conv2_bias: jax.Array
    conv3: jax.Array
    """(64, 128), inputs (channel, row, column)."""
    conv3_bias: jax.Array
    input: jax.Array
    """(256, 64), the LSTM's weights of its input; gates i, f, g, o."""
    input_bias: jax.Array
    hidden: jax.Array
    """(256, 64), the LSTM's weights of its hidden state."""
    hidden_bias: jax.Array
    """A second bias that is added to the first, as in Torch: their sum moves twice as fast under Adam."""
    tops: jax.Array
    """(128, 64), the tanh layers of the actor (first 64 rows) and of the critic."""
    tops_bias: jax.Array
    policy: jax.Array
    """(7, 64)."""
    policy_bias: jax.Array
    value: jax.Array
    """(1, 64)."""
    value_bias: jax.Array


SHAPES: dict[str, tuple[int, int]] = {
    **{"conv1": (16, 12), "conv1_bias": (16, 1), "conv2": (32, 64), "conv2_bias": (32, 1)},
    **{"conv3": (64, 128), "conv3_bias": (64, 1)},
    **{"input": (256, 64), "input_bias": (256, 1), "hidden": (256, 64), "hidden_bias": (256, 1)},
    **{"tops": (128, 64), "tops_bias": (128, 1)},
    **{"policy": (7, 64), "policy_bias": (7, 1), "value": (1, 64), "value_bias": (1, 1)},
}
"""The shapes, in the order of `Parameters`."""


@jax.jit
def initial_parameters(key: jax.Array) -> Parameters:
    """Draw parameters as the base code does.

    Convolutions and LSTM are uniform in ±1/√(inputs) and ±1/√64 (Torch's default); the rows of the dense
    layers are normal, scaled to length 1, with bias 0.
    """
    inputs = {"conv1": 12, "conv2": 64, "conv3": 128, "input": HIDDEN, "hidden": HIDDEN}
    uniform_key, normal_key = jax.random.split(key)
    ends = np.cumsum([np.prod(shape) for shape in SHAPES.values()])
    # One draw, cut into pieces, because compiling sixteen draws takes a hundred megabytes.
    uniform = jnp.split(jax.random.uniform(uniform_key, (ends[-1],), minval=-1, maxval=1), ends[:-1])
    normal = jnp.split(jax.random.normal(normal_key, (ends[-1],)), ends[:-1])
    drawn = {}
    for place, (name, shape) in enumerate(SHAPES.items()):
        layer = name.removesuffix("_bias")
        if layer in inputs:
            drawn[name] = uniform[place].reshape(shape) / np.sqrt(inputs[layer])
        elif name == layer:
            weight = normal[place].reshape(shape)
            drawn[name] = weight / jnp.sqrt((weight**2).sum(axis=1, keepdims=True))
        else:
            drawn[name] = jnp.zeros(shape)
    return Parameters(**drawn)


def act(
    p: Parameters, image: Sequence[jax.Array], memory: Memory, alive: jax.Array
) -> tuple[jax.Array, jax.Array, Memory]:
    """Return logits (7, N), values (N,) and the next memory, for images of three channels (7, 7, N)."""
    memory = lstm_step(_lstm_weights(p), image_features(p[:6], image), memory, alive)
    logits, value = _heads(p, memory.hidden)
    return logits, value, memory


def act_all(
    p: Parameters, image: Sequence[jax.Array], memory: Memory, alive: jax.Array
) -> tuple[jax.Array, jax.Array, Memory]:
    """Do the same for sequences: images (7, 7, steps·N), alive (steps, N); the memory is that after half the steps."""
    hidden, half = lstm_sequence(_lstm_weights(p), image_features(p[:6], image), memory, alive)
    logits, value = _heads(p, hidden)
    return logits, value, half


def _lstm_weights(p: Parameters) -> Weights:
    return Weights(p.input, p.hidden, p.input_bias + p.hidden_bias)


def _heads(p: Parameters, hidden: jax.Array) -> tuple[jax.Array, jax.Array]:
    tops = jnp.tanh(p.tops @ hidden + p.tops_bias)
    return p.policy @ tops[:64] + p.policy_bias, (p.value @ tops[64:] + p.value_bias)[0]
