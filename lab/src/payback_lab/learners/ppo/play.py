"""Evaluation of a trained agent: whole episodes, greedy or sampled, without learning and without bonus."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from payback_lab.learners.ppo.actor_critic import Parameters, act
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.rollout import Environment, image_of, sample


class Play(NamedTuple):
    """Hold E episodes over T steps."""

    states: Any
    """The state before each step, (T, E) per field; not meaningful after an episode's end."""
    action: jax.Array
    """(T, E)."""
    active: jax.Array
    """(T, E), whether the episode was still going on."""
    solved: jax.Array
    """(E,), whether it terminated, rather than reached the time limit or T."""

    @property
    def length(self) -> jax.Array:
        """Return the episodes' lengths, (E,)."""
        return self.active.sum(axis=0)


class Score(NamedTuple):
    """Hold the result of an evaluation."""

    length: float
    """Mean length; an episode that was not solved counts with the time limit."""
    length_std: float
    solved: float
    """Share of episodes that reached the goal."""


@partial(jax.jit, static_argnames=("environment", "episodes", "steps", "greedy"))
def play(environment: Environment, p: Parameters, key: jax.Array, *, episodes: int, steps: int, greedy: bool) -> Play:
    """Play one episode in each of `episodes` environments, for at most `steps` steps."""
    start_key, act_key = jax.random.split(key)
    state = environment.start(jax.random.uniform(start_key, (environment.draws, episodes)))
    noise = jax.random.uniform(act_key, (steps, episodes))
    blank = jnp.zeros((HIDDEN, episodes))
    alive = jnp.ones(episodes)

    def step(carry: tuple, uniform: jax.Array) -> tuple[tuple, tuple]:
        state, memory, active, solved = carry
        logits, _, memory = act(p, image_of(environment.observe(state).T), memory, alive)
        action = jnp.argmax(logits, axis=0) if greedy else sample(logits, uniform)[0]
        after, _, terminated, truncated = environment.step(state, action)
        solved = solved | (active & terminated)
        return (after, memory, active & ~(terminated | truncated), solved), (state, action, active)

    begin = (state, Memory(blank, blank), alive > 0, alive < 0)
    (*_, solved), (states, action, active) = lax.scan(step, begin, noise)
    return Play(states, action, active, solved)


def evaluate(
    environment: Environment, p: Parameters, key: jax.Array, *, episodes: int, steps: int, greedy: bool
) -> Score:
    """Return mean and deviation of the episodes' lengths and the share that was solved."""
    played = play(environment, p, key, episodes=episodes, steps=steps, greedy=greedy)
    length = np.asarray(played.length)
    return Score(float(length.mean()), float(length.std()), float(played.solved.mean()))
