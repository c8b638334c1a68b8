"""JAX environments in gymnax's form: play the finished stack, because nothing can be compared under `jit`."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from payback.core.errors import ShapingWarning
from payback.integrations.host import host
from payback.integrations.wiring import compare, names_of, warn_of_no_end
from payback.ledger import Ledger

with host("JAX", "pip install 'payback[gymnax]'"):
    import jax
    import jax.numpy as jnp


def check_wiring(env: Any, params: Any = None, *, num_envs: int | None = 4, steps: int = 1000) -> int:
    """Play `steps` random steps, and compare the reward that comes out of the stack with r_t + F'_t as it was paid.

    Takes the finished stack, with all that is wrapped around the shaping: purejaxrl's NormalizeVecReward, a clipped
    reward. `num_envs` is the number of keys that its `step` takes, None for a single key. Raises InvarianceError where
    a wrapper outside changes the reward or ends episodes. Returns the number of episodes.
    """
    *outside, shaping = _down_to_the_shaping(env)
    if shaping is None:
        raise ValueError("check_wiring found no ShapeReward or ShapeVectorReward; give it the finished stack")

    def split(key: jax.Array) -> jax.Array:
        return key if num_envs is None else jax.random.split(key, num_envs)

    def one(state: Any, key: jax.Array) -> tuple[Any, Any]:
        draw, move = jax.random.split(key)
        sample = env.action_space(params).sample
        action = sample(draw) if num_envs is None else jax.vmap(sample)(split(draw))
        _, state, reward, terminated, *truncated, info = env.step(split(move), state, action, params)
        truncated = truncated[0] if truncated else jnp.zeros_like(terminated)
        return state, (
            reward,
            terminated,
            truncated,
            *(info[key] for key in ("extrinsic", "shaped", "owed", "truncated")),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShapingWarning)
        _, state = env.reset(split(jax.random.key(0)), params)
        rows = jax.lax.scan(one, state, jax.random.split(jax.random.key(1), steps))[1]
    columns = [np.asarray(column).reshape(steps, -1) for column in rows]
    for t in range(steps):
        compare([column[t] for column in columns], t, shaping._ledger.settles, names_of(outside))
    finished = int(np.count_nonzero(columns[1] | columns[2]))
    if not finished:
        warn_of_no_end()
    return finished


def _down_to_the_shaping(env: Any) -> list[Any]:
    """Return the wrappers outside the shaping, the outermost first, and the shaping, None if there is none."""
    layers: list[Any] = []
    while env is not None and not isinstance(vars(env).get("_ledger"), Ledger):
        layers.append(env)
        env = vars(env).get("_env")
    return [*layers, env]
