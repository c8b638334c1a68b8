"""The wrapper of an evaluation environment: it stands where ShapeVecReward stands in training, and pays r_t alone."""

# Stable-Baselines3's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from payback.integrations.observed_debt import space_with_debt, with_debt


class Unshaped(VecEnvWrapper):
    """Pass everything on, so that training and evaluation environments are wrapped alike.

    SB3's EvalCallback walks both stacks side by side to copy the statistics of VecNormalize, and fails where one has a
    wrapper more. ShapeVecReward is built on this one, because EvalCallback also warns of a training environment that is
    not of the evaluation environment's type. Where the policy sees the debt, give `observe_debt=True` here, too: an
    agent that borrows nothing owes 0.

        EvalCallback(VecNormalize(Unshaped(make_vec_env("CartPole-v1", 4)), norm_reward=False, training=False))
    """

    def __init__(self, venv: VecEnv, observe_debt: bool = False):
        super().__init__(venv, space_with_debt(venv.observation_space) if observe_debt else None)
        self.observes_debt = observe_debt

    def reset(self) -> Any:
        """Reset all environments."""
        obs = self.venv.reset()
        return with_debt(obs, np.zeros(self.num_envs)) if self.observes_debt else obs

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t."""
        obs, reward, done, infos = self.venv.step_wait()
        if self.observes_debt:
            obs = with_debt(obs, np.zeros(self.num_envs))
            for k in np.flatnonzero(done):
                infos[k]["terminal_observation"] = with_debt(infos[k]["terminal_observation"], np.zeros(()))
        return obs, reward, done, infos
