"""Validate what callers pass in. Every error says what to pass instead."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Generator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from payback.core.arrays import Array, Mask, all_finite, can_look, cast_to, first_not_finite, float_dtype, namespace

SHAPES = "all arrays of a step are (B,), all of a rollout (T, B)"
UNCHANGED = "(no state was changed)"
OWN = "use the state that this transform's init or update returned"
ExpectedShape = tuple[Array, tuple[int, ...]]  # an array of the library and dtype of rewards, and their shape


def read_gamma(gamma: Any) -> float:
    """Return γ as a float; raise unless it is a discount."""
    if not isinstance(gamma, Real) or isinstance(gamma, bool) or not 0 < float(gamma) <= 1:
        raise ValueError(f"gamma must lie in (0, 1], got {gamma!r}; use the learner's own discount")
    return float(gamma)


def read_share(name: str, value: Any) -> float:
    """Return a number of [0, 1]."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return float(value)


def read_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of steps, at least `least`."""
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, bool) or count < least:
        raise ValueError(f"{name} must be a whole number of steps, at least {least}, got {value!r}")
    return count


@contextmanager
def refuse_too_many(name: str, what: str, count: int) -> Generator[None]:
    """Explain a MemoryError: how many numbers are kept per environment, and what keeps fewer."""
    try:
        if count > sys.maxsize // 8:
            raise MemoryError("NumPy has no array that long")
        yield
    except MemoryError as error:
        words = f"{count} numbers ({what}) are kept per environment, more than there is memory for"
        raise MemoryError(f"{name}: {words}; repay sooner, or with match_at_end, which keeps one") from error


def read_horizon(horizon: Any) -> float:
    """Return the factor by which old rewards fade with each new one: 1 − 1/horizon, or 1 without a horizon."""
    if horizon is None:
        return 1.0
    if not isinstance(horizon, Real) or isinstance(horizon, bool) or not float(horizon) > 1:
        raise ValueError(f"horizon must be more than 1 reward, or None for the mean of all, got {horizon!r}")
    return 1 - 1 / float(horizon)


def read_state(name: str, state: Any, kind: type[Any], constants: np.ndarray | None = None) -> None:
    """Refuse the state of another transform, or of one with other constants: γ, ages and shares, or a horizon."""
    # JAX's constants are compared in `load_state(path, like=…)` only, because reading a value would break `jit`.
    if type(state) is not kind:
        raise TypeError(f"{name} was given a state of type {type(state).__name__}, not its own {kind.__name__}; {OWN}")
    there: Any = None if constants is None else getattr(state, kind.constants[0])
    if constants is None or there is constants:
        return
    xp = np if type(there).__module__ == "numpy" else None
    if not can_look(xp, there):
        return
    # In the state's dtype, because a Torch module may have been cast.
    ours: Any = constants.astype(there.dtype.str) if xp is np else there.new_tensor(constants)
    if there.shape == ours.shape and (there == ours).all():
        return
    what = "a match with other ages or shares"
    if not ours.shape:
        what = "a mean with another horizon"
    elif len(there) and there[0] != ours[0]:
        what = f"a match with γ = {float(there[0]):g}, not {constants[0]:g}"
    raise ValueError(f"{name} was given the state of {what}; {OWN}")


def read_step(
    name: str, fit: ExpectedShape | None, reward: Array, done: Array, valid: Mask, settle: Mask
) -> tuple[Any, Array, Mask, Mask, Mask]:
    """Return (xp, reward, done, valid, settle) of one step: 0, no end and no event in invalid rows."""
    # NumPy's `done` is None if no episode ends.
    if valid is None and settle is None and _is_plain(fit, reward, done):
        if not all_finite(reward):
            refuse_not_finite(np, name, reward)
        return np, reward, done if np.count_nonzero(done) else None, None, None
    namespace(done)  # raises for None, too
    xp, reward, done, valid, settle = read_arrays(name, fit, reward, "done", done, valid, settle)
    refuse_not_finite(xp, name, reward)
    return xp, reward, None if xp is np and not np.count_nonzero(done) else done, valid, settle


def read_arrays(
    name: str, fit: ExpectedShape | None, reward: Array, ends: str, done: Mask, valid: Mask, settle: Mask
) -> tuple[Any, Array, Any, Mask, Mask]:
    """Return the same of a step or a block; `ends` is the caller's name for `done`, for errors."""
    xp = namespace(reward) if fit is None else namespace(reward, fit[0])
    reward, own = detached(reward), float_dtype(xp, reward)
    if reward.dtype != own:  # integers
        reward = cast_to(xp, reward, own if fit is None else fit[0].dtype)
    if fit is not None:
        fits(name, fit, reward)
    done = None if done is None else read_flags(name, ends, done, reward)
    settle = None if settle is None else read_flags(name, "settle", settle, reward)
    if valid is not None:
        valid = read_flags(name, "valid", valid, reward)
        reward, done = xp.where(valid, reward, 0.0), None if done is None else done & valid
        settle = None if settle is None else settle & valid
    return xp, reward, done, valid, settle


def read_flags(name: str, what: str, flags: Array, like: Array) -> Array:
    """Return booleans of the shape and library of `like`; numbers other than 0 and 1 are refused."""
    xp = namespace(flags, like)
    if tuple(flags.shape) != tuple(like.shape):
        raise ValueError(f"{name}: {what} has shape {tuple(flags.shape)}, not {tuple(like.shape)}; {SHAPES}")
    boolean = np.bool_ if xp is np else xp.bool
    if flags.dtype == boolean:
        return flags
    if can_look(xp, flags):
        odd = np.asarray(flags)[~np.isin(np.asarray(flags), (0, 1))]
        if odd.size:
            raise ValueError(f"{name}: {what} holds {odd.flat[0]}, which is neither 0 nor 1; give booleans")
    return cast_to(xp, flags, boolean)


def fits(name: str, fit: ExpectedShape, rewards: Array) -> None:
    """Refuse rewards of another dtype, or for other environments, than the state was made for."""
    dtype, shape, given = fit[0].dtype, tuple(fit[1]), tuple(rewards.shape)
    if rewards.dtype != dtype:
        remedy = "cast the reward, or make the state with init(example) of the reward's dtype"
        raise TypeError(f"{name}: the reward is {rewards.dtype}, the state was made for {dtype}; {remedy}")
    if given == shape:
        return
    if shape and len(given) == len(shape) and given[:-1] == shape[:-1]:
        sizes = f"there are rewards for {given[-1]} environments, the state is for {shape[-1]}"
        raise ValueError(f"{name}: {sizes}; make the state with init(example) for as many environments as rewards")
    raise ValueError(f"{name}: reward has shape {given}, not {shape}; {SHAPES}")


def refuse_not_finite(xp: Any, name: str, reward: Array) -> None:
    """Raise on NaN or infinity, naming step and environment, if values can be read."""
    where = first_not_finite(xp, reward)
    if where is not None:
        found = f"the reward of {place_of(where)} is {float(reward[where])}"
        raise ValueError(f"{name}: {found}; fix the intrinsic reward before it is shaped {UNCHANGED}")


def read_made(xp: Any, name: object, shaped: Array, reward: Array, valid: Mask) -> Array:
    """Validate the output of a user-defined transform; return it in the reward's dtype, 0 in invalid rows."""
    # A column (B, 1) would turn the debt into a (B, B) block, so another shape raises.
    shape = getattr(shaped, "shape", None)
    if shape != reward.shape:
        what = f"a {type(shaped).__name__}" if shape is None else f"shape {tuple(shape)}"
        words = f"{what} for rewards of shape {tuple(reward.shape)}; let it return one number per reward"
        raise ValueError(f"{name} returned {words} {UNCHANGED}")
    if valid is not None:
        shaped = xp.where(valid, shaped, 0.0)
    where = first_not_finite(xp, shaped)
    if where is not None:  # before it enters another state
        words = f"{float(shaped[where])} for the reward of {place_of(where)}; let it return finite numbers"
        raise ValueError(f"{name} returned {words} {UNCHANGED}")
    if shaped.dtype == reward.dtype:
        return shaped
    with np.errstate(over="ignore"):
        narrow = cast_to(namespace(shaped, reward), shaped, reward.dtype)
    refuse_overflow(xp, name, narrow)  # finite before the cast, so the dtype is at fault, not the transform
    return narrow


def refuse_overflow(xp: Any, name: object, shaped: Array, gamma: float | None = None) -> None:
    """Raise if shaped rewards, or settlements at γ, are not finite although the rewards were."""
    if xp is np and all_finite(shaped):
        return
    where = first_not_finite(xp, shaped)
    if where is not None:
        what, why = "shaped reward", ""
        if gamma is not None:
            steps = longest_held(xp, shaped.dtype, gamma)
            what, why = "settlement", f": at γ = {gamma} it holds the interest of {steps:,} steps"
        found = f"the {what} of {place_of(where)} overflows {shaped.dtype}{why} {UNCHANGED}"
        raise OverflowError(f"{name}: {found}; {repay_sooner(shaped.dtype)}, or scale the bonus down")


def longest_held(xp: Any, dtype: Any, gamma: float) -> float:
    """Return the last age whose interest γ⁻ᵏ the dtype still holds."""
    return math.inf if gamma == 1 else math.ceil(math.log(float(xp.finfo(dtype).max)) / -math.log(gamma)) - 1


def repay_sooner(dtype: Any) -> str:
    """Say what to do about interest that the dtype cannot hold."""
    wider = "" if "float64" in str(dtype) else "use rewards in float64, or "
    return f"{wider}repay sooner, with grm and a delay"


def place_of(where: tuple[int, ...]) -> str:
    """Name the step and environment of an index."""
    names = ("this environment", "environment {}", "step {}, environment {}")
    return names[len(where)].format(*where)


def detached(x: Array) -> Array:
    """Return a Torch tensor without its graph, because the state keeps rewards for many steps."""
    return x.detach() if is_torch_array(x) and x.requires_grad else x


def _is_plain(fit: ExpectedShape | None, reward: Array, done: Array) -> bool:
    """Return whether everything is NumPy and fits: the common case, made cheap."""
    if not type(reward) is type(done) is np.ndarray or done.dtype != np.bool_ or reward.shape != done.shape:
        return False
    if fit is None:
        return reward.dtype.kind == "f"
    return type(fit[0]) is np.ndarray and reward.dtype == fit[0].dtype and reward.shape == fit[1]
