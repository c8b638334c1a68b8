"""Gymnasium: potential-based shaping γΦ(s′) − Φ(s), for one environment and for vectors of them."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

from typing import Any

import numpy as np

from payback.integrations.gymnasium_rows import BatchOfOne, autoreset_mode, copy, read_info, with_final
from payback.integrations.host import host, read_end, refuse_reward_shape
from payback.integrations.potential import Potential, Potentials

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    import gymnasium as gym
    from gymnasium.utils import RecordConstructorArgs
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper


class ShapeVectorWithPotential(VectorWrapper):
    """Add γΦ(s′) − Φ(s) to the rewards of a vector of environments, in any of Gymnasium's autoreset modes.

    `potential` maps a batch of observations to Φ, (B,); `gamma` is the learner's discount. Φ is 0 where an episode
    terminates and kept where it is truncated, so let the learner bootstrap at truncations. `info` has Φ(s′) as
    `intrinsic`, the payment as `shaped`, and `owed`: from the next step on the episode pays −owed in total.

    >>> envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    >>> envs = ShapeVectorWithPotential(envs, lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs, info = envs.reset(seed=0)
    >>> obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    >>> bool((reward == info["extrinsic"] + info["shaped"]).all())
    True
    """

    def __init__(self, env: VectorEnv, potential: Potential, *, gamma: float):
        if not isinstance(env, VectorEnv):
            raise TypeError(
                f"ShapeVectorWithPotential shapes a vector environment, got {env!r}; use ShapeWithPotential"
            )
        self._potentials = Potentials(potential, gamma, env.num_envs)
        super().__init__(env)
        self._mode = autoreset_mode(env)
        self._valid: np.ndarray | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`."""
        mask = None if options is None else options.get("reset_mask")
        mask = None if mask is None else read_end("reset_mask", mask, self.num_envs)
        obs, info = self.env.reset(seed=seed, options=options)
        self._potentials.begin(copy(obs))
        self._valid = None if mask is None or self._valid is None else self._valid | mask
        return obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; the reward is r_t + γΦ(s_{t+1}) − Φ(s_t)."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        refuse_reward_shape(reward, self.num_envs)
        info = read_info(info)
        ends = (read_end(*flags, self.num_envs) for flags in (("terminated", terminated), ("truncated", truncated)))
        terminated, truncated = ends
        ended, valid = terminated | truncated, self._valid
        resets = ended if self._mode is AutoresetMode.SAME_STEP and ended.any() else None
        last = copy(obs) if resets is None else with_final(self.env, obs, info, resets)
        phi, shaped, owed = self._potentials.step(last, terminated, valid)
        if resets is not None:
            self._potentials.begin(copy(obs))
        self._valid = ~ended if self._mode is AutoresetMode.NEXT_STEP and ended.any() else None
        info.update(extrinsic=reward, intrinsic=phi, shaped=shaped, owed=owed, truncated=truncated)
        return obs, reward + shaped, terminated, truncated, info


class ShapeWithPotential(gym.Wrapper, RecordConstructorArgs):
    """Add γΦ(s′) − Φ(s) to the reward of one environment: `ShapeVectorWithPotential` for a batch of one.

    `potential` is called on batches of one, and returns shape (1,).

    >>> env = ShapeWithPotential(gym.make("CartPole-v1"), lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs, info = env.reset(seed=0)
    >>> obs, reward, terminated, truncated, info = env.step(0)
    >>> reward == info["extrinsic"] + info["shaped"]
    True
    """

    def __init__(self, env: gym.Env, potential: Potential, *, gamma: float):
        if not isinstance(env, gym.Env):
            raise TypeError(
                f"ShapeWithPotential shapes one gymnasium.Env, got {env!r}; use ShapeVectorWithPotential for a vector"
            )
        RecordConstructorArgs.__init__(self, potential=potential, gamma=gamma, _disable_deepcopy=True)
        gym.Wrapper.__init__(self, env)
        self._one = BatchOfOne(env, stacks=True)
        self._batch = ShapeVectorWithPotential(self._one, potential, gamma=gamma)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._one.latest = obs, {}
        self._batch.reset()
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is r_t + γΦ(s_{t+1}) − Φ(s_t)."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._one.latest = obs, reward, terminated, truncated, read_info(info)
        _, total, _, _, record = self._batch.step(None)
        info.update({key: record[key][0].item() for key in ("extrinsic", "intrinsic", "shaped", "owed", "truncated")})
        return obs, float(total[0]), terminated, truncated, info
