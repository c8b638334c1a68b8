"""Evaluation of a trained agent of the arena: whole episodes, greedy or sampled, without learning and without bonus."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from payback_lab.learners.arena.heads import Heads, act
from payback_lab.learners.ppo.actor_critic import Parameters
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.rollout import Environment, image_of, sample


class Score(NamedTuple):
    """Hold the result of an evaluation."""

    length: float
    """Mean length; an episode that was not solved counts with the time limit."""
    solved: float
    """Share of episodes that were solved."""
    solved_length: float | None
    """Mean length of those; None if there is none."""


@partial(jax.jit, static_argnames=("environment", "heads", "episodes", "steps", "greedy", "policy"))
def play(
    environment: Environment,
    heads: Heads,
    p: Parameters,
    key: jax.Array,
    *,
    episodes: int,
    steps: int,
    greedy: bool,
    policy: int = 0,
) -> tuple[jax.Array, jax.Array]:
    """Play one episode in each of `episodes` environments; return their lengths and whether they were solved.

    States are not kept, because those of a thousand long episodes would not fit into memory.
    """
    act_key = jax.random.split(key)[1]
    state = starts(environment, key, episodes)
    blank, alive = jnp.zeros((HIDDEN, episodes)), jnp.ones(episodes)

    def goes_on(carry: tuple) -> jax.Array:
        t, _, _, active, _, _ = carry
        return (t < steps) & active.any()

    def step(carry: tuple) -> tuple:
        t, state, memory, active, length, solved = carry
        logits, _, memory = act(heads, p, image_of(environment.observe(state).T), memory, alive)
        uniform = jax.random.uniform(jax.random.fold_in(act_key, t), (episodes,))
        action = jnp.argmax(logits[policy], axis=0) if greedy else sample(logits[policy], uniform)[0]
        state, _, terminated, truncated = environment.step(state, action)
        solved = solved | (active & terminated)
        return t + 1, state, memory, active & ~(terminated | truncated), length + active, solved

    zero = jnp.zeros(episodes, jnp.int32)
    begin = (jnp.int32(0), state, Memory(blank, blank), alive > 0, zero, alive < 0)
    *_, length, solved = lax.while_loop(goes_on, step, begin)
    return length, solved


def evaluate(
    environment: Environment,
    heads: Heads,
    p: Parameters,
    key: jax.Array,
    *,
    episodes: int,
    steps: int,
    greedy: bool,
    policy: int = 0,
) -> Score:
    """Return the mean length of episodes by one of the policies and the share that was solved."""
    length, solved = play(environment, heads, p, key, episodes=episodes, steps=steps, greedy=greedy, policy=policy)
    length, solved = np.asarray(length), np.asarray(solved)
    counted = np.where(solved, length, steps)
    own = float(length[solved].mean()) if solved.any() else None
    return Score(float(counted.mean()), float(solved.mean()), own)


def starts(environment: Environment, key: jax.Array, episodes: int) -> Any:
    """Return the states in which the episodes of an evaluation with this key start."""
    return environment.start(jax.random.uniform(jax.random.split(key)[0], (environment.draws, episodes)))
