"""Gymnasium's vector forms: infos as arrays with masks, the last observations of ended episodes, batches of one."""

# Gymnasium's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from payback.integrations.host import host
from payback.integrations.observed_debt import with_debt

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import concatenate, create_empty_array, iterate


def copy(x: Any) -> Any:
    """Return a copy, by the cheapest way for arrays."""
    return x.copy() if isinstance(x, np.ndarray) else deepcopy(x)


def stack(space: gym.Space, rows: list[Any]) -> Any:
    """Return one environment's observations or actions as a batch."""
    return concatenate(space, rows, create_empty_array(space, len(rows)))


def autoreset_mode(env: VectorEnv) -> AutoresetMode:
    """Return how a vector environment resets, or say that it does not tell."""
    mode = (env.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise ValueError(
            f"the vector environment {env} does not say how it resets: metadata['autoreset_mode'] is {mode!r}; "
            "set it to the gymnasium.vector.AutoresetMode that it follows"
        ) from None


def from_info(
    key: str, num_envs: int, step: int, info: dict, valid: np.ndarray | None, resets: np.ndarray | None
) -> np.ndarray:
    """Read F from `info[key]`, at an episode's end under SAME_STEP from the ended episode's own info."""
    if resets is None and key in info and (f"_{key}" not in info or info[f"_{key}"].all()):
        return info[key]
    values = np.zeros(num_envs)
    missing = np.ones(num_envs, dtype=bool) if valid is None else valid.copy()
    last = resets if resets is not None else np.zeros(num_envs, dtype=bool)
    for source, rows in ((info, ~last), (info.get("final_info", {}), last)):
        if key in source:
            rows = rows & source.get(f"_{key}", np.ones(num_envs, dtype=bool))
            values[rows] = np.asarray(source[key])[rows]
            missing &= ~rows
    if missing.any():
        raise KeyError(
            f"info has no {key!r} for environment {int(np.flatnonzero(missing)[0])} at step {step}: "
            "every transition needs its intrinsic reward there"
        )
    return values


def with_final(env: VectorEnv, obs: Any, info: dict, resets: np.ndarray) -> Any:
    """Put the ended episodes' last observations in the place of the next ones' first."""
    rows = np.flatnonzero(resets)
    if "final_obs" not in info:
        raise KeyError(f"environment {rows[0]} ended under SAME_STEP autoreset, but infos['final_obs'] is missing")
    if isinstance(obs, np.ndarray) and isinstance(env.single_observation_space, gym.spaces.Box):
        obs = obs.copy()
        for k in rows:
            obs[k] = info["final_obs"][k]
        return obs
    every = list(iterate(env.observation_space, obs))
    for k in rows:
        every[k] = info["final_obs"][k]
    return stack(env.single_observation_space, every)


def add_debt_to_final(final: Any, owed: np.ndarray, resets: np.ndarray) -> None:
    """Show the debt in the last observations of the episodes that ended."""
    for k in np.flatnonzero(resets):
        final[k] = with_debt(final[k], owed[k])
