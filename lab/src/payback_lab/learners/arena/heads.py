"""The network of the paper's learner with several policies and several values on its one trunk.

A head is a tanh layer of 64 and a linear layer. The trunk, the first policy and the first value are those of
`ppo/actor_critic.py`, drawn from the same numbers: with one head of each kind the network is the paper's. `Parameters`
is the same type; only the shapes of its last six arrays grow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.learners.ppo.actor_critic import SHAPES, Parameters, initial_parameters
from payback_lab.learners.ppo.convolutions import image_features
from payback_lab.learners.ppo.lstm import HIDDEN, Memory, Weights, lstm_sequence, lstm_step

ACTIONS = SHAPES["policy"][0]


class Heads(NamedTuple):
    """Count the heads of a method."""

    policies: int = 1
    values: int = 1


def shapes_of(heads: Heads) -> dict[str, tuple[int, int]]:
    """Return the shapes of the parameters, in the order of `Parameters`; the tops are the policies', then the values'.

    >>> shapes_of(Heads()) == SHAPES, shapes_of(Heads(2, 3))["tops"]
    (True, (320, 64))
    """
    tops, outputs = HIDDEN * sum(heads), ACTIONS * heads.policies
    return {
        **SHAPES,
        **{"tops": (tops, HIDDEN), "tops_bias": (tops, 1)},
        **{"policy": (outputs, HIDDEN), "policy_bias": (outputs, 1)},
        **{"value": (heads.values, HIDDEN), "value_bias": (heads.values, 1)},
    }


def initial_network(heads: Heads, key: jax.Array) -> Parameters:
    """Draw parameters: the paper's network, and further heads with rows of length 1 as its own heads have."""
    first = initial_parameters(key)
    more = Heads(heads.policies - 1, heads.values - 1)
    if not sum(more):
        return first
    shapes = {"tops": HIDDEN * sum(more), "policy": ACTIONS * more.policies, "value": more.values}
    keys = jax.random.split(jax.random.fold_in(key, 1), len(shapes))
    drawn = {name: _rows_of_length_one(k, n) for k, (name, n) in zip(keys, shapes.items(), strict=True)}
    actor, critic = jnp.split(first.tops, 2)
    others = jnp.split(drawn["tops"], [HIDDEN * more.policies])
    full = shapes_of(heads)
    return first._replace(
        tops=jnp.concatenate([actor, others[0], critic, others[1]]),
        policy=jnp.concatenate([first.policy, drawn["policy"]]),
        value=jnp.concatenate([first.value, drawn["value"]]),
        **{name: jnp.zeros(full[name]) for name in ("tops_bias", "policy_bias", "value_bias")},
    )


def _rows_of_length_one(key: jax.Array, rows: int) -> jax.Array:
    weight = jax.random.normal(key, (rows, HIDDEN))
    return weight / jnp.sqrt((weight**2).sum(axis=1, keepdims=True))


def unflatten(heads: Heads, vector: jax.Array) -> Parameters:
    """Undo `ppo.update.flatten` for a network with these heads."""
    shapes = shapes_of(heads).values()
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    parts = zip(jnp.split(vector, ends[:-1]), shapes, strict=True)
    return Parameters(*(part.reshape(shape) for part, shape in parts))


Answers = tuple[list[jax.Array], list[jax.Array], Memory]
"""Logits (7, N) of each policy, values (N,) of each critic, and a memory."""


def act(heads: Heads, p: Parameters, image: Sequence[jax.Array], memory: Memory, alive: jax.Array) -> Answers:
    """Answer images of three channels (7, 7, N) with every head, and return the next memory."""
    memory = lstm_step(_lstm_weights(p), image_features(p[:6], image), memory, alive)
    return *_read(heads, p, memory.hidden), memory


def act_all(heads: Heads, p: Parameters, image: Sequence[jax.Array], memory: Memory, alive: jax.Array) -> Answers:
    """Do the same for sequences: images (7, 7, steps·N), alive (steps, N); the memory is that after half the steps."""
    hidden, half = lstm_sequence(_lstm_weights(p), image_features(p[:6], image), memory, alive)
    return *_read(heads, p, hidden), half


def _lstm_weights(p: Parameters) -> Weights:
    return Weights(p.input, p.hidden, p.input_bias + p.hidden_bias)


def _read(heads: Heads, p: Parameters, hidden: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
    tops = jnp.tanh(p.tops @ hidden + p.tops_bias)
    logits, values = [], []
    for n in range(heads.policies):
        rows = slice(ACTIONS * n, ACTIONS * (n + 1))
        logits.append(p.policy[rows] @ tops[HIDDEN * n : HIDDEN * (n + 1)] + p.policy_bias[rows])
    for n in range(heads.values):
        at = HIDDEN * (heads.policies + n)
        values.append((p.value[n : n + 1] @ tops[at : at + HIDDEN] + p.value_bias[n : n + 1])[0])
    return logits, values
