"""MiniGrid tasks as a VecEnv of Stable-Baselines3, stepped as in `vector`: one jitted step for all environments.

env = make_sb3_vec("MiniGrid-DoorKey-8x8-v0", 16)
PPO("MlpPolicy", env).learn(1_000_000)
"""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from payback_lab.environments.minigrid.vector import Lanes


class MiniGridVecEnv(VecEnv):
    """The lanes as Stable-Baselines3's VecEnv; `make_sb3_vec` makes it."""

    render_mode = None

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        super().__init__(lanes.num_envs, lanes.observation_space, lanes.action_space)

    def reset(self) -> np.ndarray:
        """Start an episode in every environment, with the seed of the last call of `seed`."""
        obs = self.lanes.reset(self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one action in each environment."""
        obs, reward, terminated, truncated, last = self.lanes.step(self._actions)
        infos: list[dict[str, Any]] = [
            {"TimeLimit.truncated": bool(flag)} for flag in (truncated & ~terminated).tolist()
        ]
        done = terminated | truncated
        for k in np.flatnonzero(done):
            infos[k]["terminal_observation"] = last[k]
        return obs, reward, done, infos

    def close(self) -> None:
        """Do nothing: there are no processes and no windows."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, which all environments share."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the environments are rows of one array."""
        raise NotImplementedError(f"{attr_name} cannot be set, because the environments are rows of one array")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refuse: the environments are rows of one array."""
        raise NotImplementedError(f"{method_name} cannot be called, because the environments are rows of one array")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for every environment: rows of an array have no wrappers."""
        return [False] * len(list(self._get_indices(indices)))


def make_sb3_vec(name: str, num_envs: int, **options: Any) -> VecMonitor:
    """Return a task as a VecEnv, with the monitor that SB3's logs and evaluation read; `options` are `Lanes`'."""
    return VecMonitor(MiniGridVecEnv(Lanes(name, num_envs, **options)))
