"""Gymnasium's vector forms: batches of one, infos as arrays with masks, last observations, and the debt beside them."""

# pyright: standard
from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from payback.integrations.host import host

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    import gymnasium as gym
    from gymnasium import Space, spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import concatenate, create_empty_array, iterate

KEY = "debt"  # in a dictionary observation


def copy(x: Any) -> Any:
    """Return a copy, by the cheapest way for arrays."""
    return x.copy() if isinstance(x, np.ndarray) else deepcopy(x)


def autoreset_mode(env: VectorEnv) -> AutoresetMode:
    """Return how a vector environment resets."""
    mode = (env.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        words = f"{env} does not say how it resets: metadata['autoreset_mode'] is {mode!r}; set it to an AutoresetMode"
        raise ValueError(words) from None


def read_info(info: Any) -> dict[str, Any]:
    """Return the infos of a step, which are a dictionary."""
    if not isinstance(info, dict):
        raise TypeError(f"the environment's step returned a {type(info).__name__} for its info, which must be a dict")
    return info


def from_info(key: str, num_envs: int, step: int, info: dict, valid: Any, resets: Any) -> np.ndarray:
    """Read F from `info[key]`, at an episode's end under SAME_STEP from the ended episode's own info."""
    if resets is None and key in info and (f"_{key}" not in info or info[f"_{key}"].all()):
        return info[key]
    values, missing = np.zeros(num_envs), np.ones(num_envs, dtype=bool) if valid is None else valid.copy()
    last = np.zeros(num_envs, dtype=bool) if resets is None else resets
    for source, rows in ((info, ~last), (info.get("final_info", {}), last)):
        if key in source:
            rows = rows & source.get(f"_{key}", np.ones(num_envs, dtype=bool))
            values[rows] = np.asarray(source[key])[rows]
            missing &= ~rows
    if missing.any():
        raise KeyError(f"info has no {key!r} for environment {int(np.flatnonzero(missing)[0])} at step {step}")
    return values


def with_final(env: VectorEnv, obs: Any, info: dict, resets: np.ndarray) -> Any:
    """Put the ended episodes' last observations in the place of the next ones' first."""
    rows = np.flatnonzero(resets)
    if "final_obs" not in info:
        raise KeyError(f"environment {rows[0]} ended under SAME_STEP autoreset, but infos['final_obs'] is missing")
    if isinstance(obs, np.ndarray) and isinstance(env.single_observation_space, spaces.Box):
        obs = obs.copy()
        for k in rows:
            obs[k] = info["final_obs"][k]
        return obs
    every, space = list(iterate(env.observation_space, obs)), env.single_observation_space
    for k in rows:
        every[k] = info["final_obs"][k]
    return concatenate(space, every, create_empty_array(space, len(every)))


class BatchOfOne(VectorEnv):
    """One environment's latest transition as a vector's; with observations and actions if a callable asks for them."""

    def __init__(self, env: gym.Env, observations: bool, actions: bool):
        self.num_envs, self._observations, self._actions = 1, observations, actions
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = gym.vector.utils.batch_space(env.observation_space, 1)
        self.action_space = gym.vector.utils.batch_space(env.action_space, 1)
        self.latest: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Return the observation of the latest reset."""
        return self._observed(), {}

    def read_action(self, action: Any) -> Any:
        """Return the action of the next step as a batch."""
        return _batch("action", self.single_action_space, action) if self._actions else None

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return the latest transition."""
        _, reward, terminated, truncated, info = self.latest
        flags = np.array([terminated]), np.array([truncated])
        return self._observed(), np.array([reward], dtype=np.float64), *flags, self._add_info({}, info, 0)

    def _observed(self) -> Any:
        return _batch("observation", self.single_observation_space, self.latest[0]) if self._observations else None


def _batch(what: str, space: Space, row: Any) -> Any:
    try:
        return concatenate(space, [row], create_empty_array(space, 1))
    except Exception as error:
        raise ValueError(f"the {what} {row!r:.200} does not fit its space {space}: {error}") from error


def space_with_debt(space: Space) -> Space:
    """Return the space of one environment's observations with the debt in them."""
    if isinstance(space, spaces.Dict):
        if KEY in space.spaces:
            raise ValueError(f"the observation space already has a {KEY!r}: rename it, or use observe_debt=False")
        return spaces.Dict({**space.spaces, KEY: spaces.Box(-np.inf, np.inf, (1,), np.float32)})
    if isinstance(space, spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
        low, high = np.append(space.low, -np.inf), np.append(space.high, np.inf)
        return spaces.Box(low.astype(space.dtype), high.astype(space.dtype), dtype=space.dtype.type)
    raise ValueError(f"the observation space {space} cannot hold the debt: make it a flat Box of floats or a Dict")


def with_debt(observation: Any, owed: np.ndarray) -> Any:
    """Return the observation with the debt: one environment's (`owed` a scalar) or a batch (`owed` (B,))."""
    column = np.asarray(owed)[..., None]
    if isinstance(observation, dict):
        return {**observation, KEY: column.astype(np.float32)}
    return np.concatenate((observation, column.astype(observation.dtype)), axis=-1)
