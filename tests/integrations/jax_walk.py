"""A random walk in gymnax's form, written out: needs JAX alone, and ends in every way. `play` walks it at random."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LIMIT = 7
GAMMA, B, T = 0.9, 5, 60


class WalkState(NamedTuple):
    place: jax.Array
    time: jax.Array


class Walk:
    """Six values, as of gymnax 1.0: terminates by chance, is truncated after seven steps, and resets inside `step`."""

    hazard, limit = 0.2, LIMIT

    def action_space(self, params=None):
        return TwoActions()

    def reset(self, key, params=None):
        place = jax.random.normal(key, (2,))
        return place, WalkState(place, jnp.zeros((), jnp.int32))

    def step(self, key, state, action, params=None):
        move, chance, fresh = jax.random.split(key, 3)
        last = state.place + jax.random.normal(move, (2,)) + action
        terminated = jax.random.uniform(chance) < self.hazard
        truncated = state.time + 1 >= self.limit
        done = terminated | truncated
        first, begun = self.reset(fresh)
        after = jax.tree.map(lambda new, old: jnp.where(done, new, old), begun, WalkState(last, state.time + 1))
        info = {
            "novelty": jnp.abs(last[1]),
            "discount": jnp.where(terminated, 0.0, 1.0),
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": last,
        }
        return jnp.where(done, first, last), after, last[0], terminated, truncated, info


class TwoActions:
    """Gymnax's Discrete(2)."""

    n = 2

    def sample(self, key):
        return jax.random.randint(key, (), 0, 2)


class OldWalk(Walk):
    """Five values, as before gymnax 1.0: one `done`, and nothing of an episode's last observation."""

    def step(self, key, state, action, params=None):
        obs, state, reward, terminated, truncated, info = super().step(key, state, action, params)
        done = terminated | truncated
        return obs, state, reward, done, {"novelty": info["novelty"], "discount": jnp.where(done, 0.0, 1.0)}


def play(env, steps=T, num_envs=B, seed=0):
    """Scan over random actions; return the outputs of all steps, (T, B) each, with the observations before them."""
    keys = jax.random.split(jax.random.key(seed), num_envs)
    obs, state = env.reset(keys)

    def one(carry, key):
        obs, state = carry
        choose, *move = jax.random.split(key, num_envs + 1)
        action = jax.random.bernoulli(choose, 0.5, (num_envs,)).astype(jnp.int32)
        after, state, *out = env.step(jnp.stack(move), state, action)
        return (after, state), (obs, action, after, *out)

    (_, state), rows = jax.lax.scan(one, (obs, state), jax.random.split(jax.random.key(seed + 1), steps))
    return jax.tree.map(np.asarray, rows), state
