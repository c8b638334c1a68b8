"""Reading one step of a JAX environment in gymnax's form, with five values or six."""

# JAX's array constructors take a dtype and a sharding without types; gymnax's environments are anything.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from payback.bonuses.jax.pure import PureBonus

FINAL = "final_observation"
"""Where gymnax 1.0 shows an episode's last observation, which its autoreset replaces by the next one's first."""
CANNOT_HOLD = (
    "these observations cannot hold the debt: they must be vectors of floats; flatten them inside "
    "(FlattenObservationWrapper), or use observe_debt=False"
)


def six_values(out: tuple[Any, ...], settles: bool) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
    """Return (obs, state, reward, terminated, truncated, info) of a five- or six-valued step."""
    if len(out) == 6:
        obs, state, reward, terminated, truncated, info = out
    elif len(out) != 5:
        raise ValueError(f"the environment's step returns {len(out)} values; gymnax's form has five, or six as of 1.0")
    elif not settles:
        raise ValueError(
            "on_truncation='carry' needs an environment whose step returns six values (gymnax 1.0): a learner that is "
            "told `done` alone cannot bootstrap past a time limit, and the debt would never be paid; use 'settle'"
        )
    else:
        obs, state, reward, terminated, info = out
        truncated = info.get("truncated", jnp.zeros_like(terminated))
    terminated, truncated = (jnp.asarray(flags).astype(bool) for flags in (terminated, truncated))
    return obs, state, jnp.asarray(reward), terminated, truncated, dict(info)


def read_source(source: Any, *transition: Any) -> Any:
    """Return a callable's answer, or the value of an info key."""
    if isinstance(source, str):
        info = transition[-1]
        if source not in info:
            raise KeyError(f"info has no {source!r}; the environment gives {', '.join(sorted(map(str, info)))}")
        return info[source]
    try:
        return source(*transition)
    except jax.errors.TracerArrayConversionError as error:
        raise TypeError(f"the intrinsic reward must be written with jax.numpy, because it is traced: {error}") from None


def one_per_environment(what: str, values: Any, like: jax.Array) -> jax.Array:
    """Return (B,) floats; shapes are known while a function is traced, so that a wrong one raises."""
    values = jnp.asarray(values)
    if values.shape != like.shape:
        raise ValueError(
            f"the {what} has shape {values.shape}, not {like.shape}; it is called on batches, and returns one number "
            "per environment"
        )
    return values.astype(like.dtype)


def refuse_python_memory(source: Any) -> None:
    """Refuse a bonus that remembers in Python objects, which a traced function would change once and never again."""
    if source is None or isinstance(source, (str, PureBonus)):
        return
    if not callable(source) or hasattr(source, "reset"):
        raise TypeError(
            f"{type(source).__name__} cannot be traced: give a pure function of (obs, action, next_obs, info), a bonus "
            "of payback.bonuses.jax, whose memory is kept in the environment's state, or an info key"
        )


def without_time_limit(info: dict[str, Any], ended: jax.Array) -> dict[str, Any]:
    """Let gymnax's own info say what the learner is told: a settled time limit is a termination."""
    told = {"terminated": ended, "truncated": jnp.zeros_like(ended)}
    if "discount" in info:
        told["discount"] = jnp.where(ended, 0.0, info["discount"])
    return {**info, **{key: value for key, value in told.items() if key in info}}


def space_with_debt(space: Any) -> Any:
    """Return a gymnax Box of one more number, which has no bounds."""
    shape = tuple(getattr(space, "shape", ()))
    if len(shape) != 1 or not hasattr(space, "low"):
        raise ValueError(CANNOT_HOLD)
    low, high = (jnp.broadcast_to(jnp.asarray(bound), shape) for bound in (space.low, space.high))
    return type(space)(jnp.append(low, -jnp.inf), jnp.append(high, jnp.inf), (shape[0] + 1,), space.dtype)
