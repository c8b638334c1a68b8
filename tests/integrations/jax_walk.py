"""A random walk in gymnax's form, written out: needs JAX alone, and ends in every way."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

LIMIT = 7


class WalkState(NamedTuple):
    place: jax.Array
    time: jax.Array


class Walk:
    """Six values, as of gymnax 1.0: terminates by chance, is truncated after seven steps, and resets inside `step`."""

    hazard, limit = 0.2, LIMIT

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


class OldWalk(Walk):
    """Five values, as before gymnax 1.0: one `done`, and nothing of an episode's last observation."""

    def step(self, key, state, action, params=None):
        obs, state, reward, terminated, truncated, info = super().step(key, state, action, params)
        done = terminated | truncated
        return obs, state, reward, done, {"novelty": info["novelty"], "discount": jnp.where(done, 0.0, 1.0)}
