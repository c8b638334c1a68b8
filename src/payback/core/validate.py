"""Reading what a caller hands in: every wrong value gets one sentence that says what to do about it."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np

from payback.core.arrays import Array, all_finite, as_flags, as_floats, can_look, first_not_finite, namespace


def read_gamma(gamma: Any) -> float:
    """Return γ as a float, or say why it cannot be a discount."""
    if not isinstance(gamma, Real) or not 0 < float(gamma) <= 1:
        raise ValueError(f"gamma must lie in (0, 1], got {gamma!r}; use the learner's own discount")
    return float(gamma)


def read_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of steps, at least `least`."""
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, bool) or count < least:
        raise ValueError(f"{name} must be a whole number of steps, at least {least}, got {value!r}")
    return count


def read_state(name: str, state: Any, kind: type) -> None:
    """Refuse a state that another transform made."""
    if not isinstance(state, kind):
        raise TypeError(
            f"{name} was given a state of type {type(state).__name__}, not its own {kind.__name__}; "
            f"use the state that this transform's init or update returned"
        )


def read_step(
    name: str, like: Array, reward: Array, done: Array, valid: Array | None
) -> tuple[Any, Array, Array, Array | None]:
    """Return (xp, reward, done, valid) of one step, fit for a state whose last axis is `like`'s.

    Rows that are no transition (`valid` false) get reward 0 and no end, whatever they hold.
    """
    if valid is None and _is_plain(reward, like, done):
        if not all_finite(reward):
            refuse_not_finite(np, name, reward)
        return np, reward, done, None
    xp = namespace(reward, like)
    reward = as_floats(xp, reward, like.dtype)
    fit_state(name, like, reward)
    _same_shape(name, "reward", reward, like.shape[-1:])
    done = read_flags(name, "done", done, reward)
    if valid is not None:
        valid = read_flags(name, "valid", valid, reward)
        reward, done = xp.where(valid, reward, 0.0), done & valid
    refuse_not_finite(xp, name, reward)
    return xp, reward, done, valid


def is_plain_step(reward: Array, done: Array) -> bool:
    """Whether these are finite NumPy floats and flags of one shape: what a chain needs to read only once."""
    return (
        type(reward) is type(done) is np.ndarray
        and reward.dtype.kind == "f"
        and done.dtype == np.bool_
        and reward.ndim == 1
        and reward.shape == done.shape
        and all_finite(reward)
    )


def read_flags(name: str, what: str, flags: Array, like: Array) -> Array:
    """Return booleans of the shape and library of `like`."""
    xp = namespace(flags, like)
    _same_shape(name, what, flags, like.shape)
    return as_flags(xp, flags)


def fit_state(name: str, like: Array, rewards: Array) -> None:
    """Refuse rewards of another dtype, or for other environments, than the state array `like` was made for."""
    if rewards.dtype != like.dtype:
        raise TypeError(
            f"{name}: the reward is {rewards.dtype}, the state was made for {like.dtype}; "
            f"cast the reward, or make the state with init(example) of the reward's dtype"
        )
    if rewards.shape[-1:] != like.shape[-1:]:
        raise ValueError(
            f"{name}: there are rewards for {rewards.shape[-1]} environments, the state is for {like.shape[-1]}; "
            f"make the state with init(example) for as many environments as there are rewards"
        )


def refuse_not_finite(xp: Any, name: str, reward: Array) -> None:
    """Raise on NaN or infinity, naming step and environment, where values may be looked at."""
    if not can_look(xp, reward):
        return
    where = first_not_finite(xp, reward)
    if where is None:
        return
    place = f"environment {where[-1]}" if len(where) == 1 else f"step {where[0]}, environment {where[1]}"
    raise ValueError(
        f"{name}: the reward of {place} is {float(reward[where])}; "
        f"mend the intrinsic reward before it is shaped (no state was changed)"
    )


def _is_plain(reward: Array, like: Array, done: Array) -> bool:
    """Whether one look shows that all is NumPy and fits: the common case, made cheap."""
    return (
        type(reward) is type(like) is type(done) is np.ndarray
        and reward.dtype == like.dtype
        and done.dtype == np.bool_
        and reward.shape == like.shape[-1:] == done.shape
    )


def _same_shape(name: str, what: str, array: Array, shape: tuple[int, ...]) -> None:
    if tuple(array.shape) != tuple(shape):
        raise ValueError(
            f"{name}: {what} has shape {tuple(array.shape)}, not {tuple(shape)}; "
            "all arrays of a step are (B,), all of a rollout (T, B)"
        )
