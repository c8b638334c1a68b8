"""Four tasks with a known answer, drawn at random for each episode; the view is one tile all over.

CHOICE   one step; the tile says which of two actions pays 1                    value 1: advantage
RECALL   three steps; the first tile says which action pays 1 at the third      value γ² at first: memory
CHAIN    five steps whatever is done, 1 at the last                             value γ^(4−t): bootstrapping
LIMIT    1 at every step, truncated after four                                  value Σ_{k<4−t} γ^k: no value
                                                                                is carried over a time limit
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from payback_lab.environments.doorkey.view import VIEW
from payback_lab.learners.ppo.rollout import Environment

CHOICE, RECALL, CHAIN, LIMIT = range(4)
LENGTHS = (1, 3, 5, 4)


class State(NamedTuple):
    kind: jax.Array
    cue: jax.Array
    time: jax.Array


def start(uniform: jax.Array) -> State:
    kind = jnp.floor(4 * uniform[0]).astype(jnp.int32)
    return State(kind, (uniform[1] < 0.5).astype(jnp.int32), jnp.zeros_like(kind))


def step(state: State, action: jax.Array):
    time = state.time + 1
    over = time >= jnp.array(LENGTHS)[state.kind]
    right = (action == state.cue) & over
    reward = jnp.select(
        [state.kind == LIMIT, state.kind == CHAIN], [jnp.ones(time.shape), over.astype(float)], right.astype(float)
    )
    truncated = over & (state.kind == LIMIT)
    return state._replace(time=time), reward, over & ~truncated, truncated


def observe(state: State) -> jax.Array:
    """Show kind and time, and the cue at the first step; the pixels are as small as MiniGrid's."""
    cue = jnp.where((state.time == 0) & (state.kind <= RECALL), 1 + state.cue, 0)
    tile = (2 * state.kind + 1) | state.time << 4 | cue << 7
    return jnp.broadcast_to(tile[..., None], (*tile.shape, VIEW * VIEW)).astype(jnp.uint16)


PROBES = Environment(draws=2, start=start, step=step, observe=observe, cells=4, cell=lambda state: state.kind)


def right_values(gamma: float) -> dict[int, list[float]]:
    """Return the value before each step of a learner that has understood each task."""
    return {
        CHOICE: [1.0],
        RECALL: [gamma**2, gamma, 1.0],
        CHAIN: [gamma ** (4 - t) for t in range(5)],
        LIMIT: [sum(gamma**k for k in range(4 - t)) for t in range(4)],
    }
