"""Reading what a bonus and an environment hand in: F as float64, ends as booleans, or one sentence on what is wrong.

Loans are kept in float64 whatever F comes in: a float16 or bfloat16 bonus is lent as the number that it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from payback.core.arrays import all_finite
from payback.core.validate import read_flags


def ask(intrinsic: Callable[..., Any], num_envs: int, step: int, *transition: Any) -> Any:
    """Call the intrinsic reward on a batch of transitions; say where it raised, if it does."""
    try:
        return intrinsic(*transition)
    except Exception as error:
        which = "environment 0" if num_envs == 1 else f"environments 0 to {num_envs - 1}"
        raise RuntimeError(
            f"the intrinsic reward raised {type(error).__name__} at step {step} ({which}): {error}"
        ) from error


def read_intrinsic(values: Any, num_envs: int, step: int, valid: np.ndarray | None = None) -> np.ndarray:
    """Return F as float64 of shape (B,), or say which environment's is wrong, and at which step."""
    F = values if type(values) is np.ndarray and values.dtype == np.float64 else _as_floats(values, num_envs, step)
    if F.shape != (num_envs,):
        raise ValueError(
            f"the intrinsic reward at step {step} has shape {F.shape}, not ({num_envs},); "
            f"return one number per environment, for environments 0 to {num_envs - 1}"
        )
    if not all_finite(F):
        bad = ~np.isfinite(F) if valid is None else ~np.isfinite(F) & valid
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"the intrinsic reward of environment {k} at step {step} is {F[k]}; fix it before it is shaped"
            )
    return F


def _as_floats(values: Any, num_envs: int, step: int) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()  # because NumPy has no bfloat16
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"the intrinsic reward at step {step} is a {type(values).__name__}, not an array of {num_envs} numbers"
        ) from None


def refuse_reward_shape(reward: Any, num_envs: int) -> None:
    """Refuse rewards that are not (B,): with F′ of shape (B,) a column of them would become a (B, B) matrix."""
    shape = reward.shape if type(reward) is np.ndarray else np.shape(reward)
    if shape != (num_envs,):
        raise ValueError(
            f"the environment's rewards have shape {shape}, not ({num_envs},), that is one number per "
            "environment; flatten them before they are shaped"
        )


def read_end(what: str, flags: Any, num_envs: int) -> np.ndarray:
    """Return (B,) booleans; numbers other than 0 and 1 are refused."""
    flags = np.asarray(flags)
    if flags.dtype == np.bool_ and flags.shape == (num_envs,):
        return flags
    return read_flags("the environment", what, flags, np.zeros(num_envs))
