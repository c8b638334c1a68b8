"""The VecEnv wrapper that adds potential-based shaping, γΦ(s′) − Φ(s)."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from payback.integrations.gymnasium_rows import copy
from payback.integrations.host import read_end, refuse_reward_shape
from payback.integrations.potential import Potential, Potentials
from payback.integrations.sb3.shape_vector_reward import _last_observation, _paid_in, _record, _split, _with_terminal


class ShapeVectorWithPotential(VecEnvWrapper):
    """Add γΦ(s′) − Φ(s) to the rewards of SB3's environments; `gamma` is the learner's.

    `potential` maps a batch of observations to Φ, (B,). Φ is 0 where an episode terminates and kept where
    `TimeLimit.truncated` is set, because SB3 bootstraps there with the value of the last observation. Each info has
    Φ(s′) as `intrinsic`, the payment as `shaped`, and `owed`: from the next step on the episode pays −owed in total.

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = ShapeVectorWithPotential(make_vec_env("CartPole-v1", 2), lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs = env.reset()
    >>> obs, reward, done, infos = env.step(np.array([0, 1]))
    >>> infos[0]["extrinsic"], bool(np.isclose(reward[0], 1 + infos[0]["shaped"]))
    (1.0, True)
    """

    def __init__(self, env: VecEnv, potential: Potential, *, gamma: float):
        if not isinstance(env, VecEnv):
            raise TypeError(
                f"ShapeVectorWithPotential shapes a VecEnv of Stable-Baselines3, got {env!r}; use make_vec_env"
            )
        super().__init__(env)
        self._potentials = Potentials(potential, gamma, env.num_envs)

    def reset(self) -> Any:
        """Reset all environments."""
        obs = self.venv.reset()
        self._potentials.begin(copy(obs))
        return obs

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t + γΦ(s_{t+1}) − Φ(s_t)."""
        obs, reward, done, infos = self.venv.step_wait()
        refuse_reward_shape(reward, self.num_envs)
        done = read_end("done", done, self.num_envs)
        ended = np.flatnonzero(done).tolist()
        terminated, truncated = _split(done, infos, ended)
        for k in ended:
            _last_observation(infos, k)
        phi, shaped, owed = self._potentials.step(_with_terminal(obs, infos, ended), terminated)
        if ended:
            self._potentials.begin(copy(obs))
        _record(infos, *(column.tolist() for column in (reward, phi, shaped, owed, truncated)))
        return obs, (reward + shaped).astype(_paid_in(reward.dtype)), done, infos
