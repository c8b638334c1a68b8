"""PPO of Stable-Baselines3 on MiniGrid, with a count bonus that cannot change the task.

python examples/sb3_ppo_minigrid.py
"""

from collections import Counter

import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import payback
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward

GAMMA = 0.99


class Counts:
    """The bonus of a view: one over the square root of how often it has been seen."""

    def __init__(self):
        self.seen = Counter()

    def __call__(self, obs, actions, next_obs, infos):
        keys = [row.tobytes() for row in next_obs]
        self.seen.update(keys)
        return 0.1 / np.sqrt([self.seen[key] for key in keys])


def grid(size: int = 5) -> gym.Env:
    """An empty room; the agent's view of it, flattened."""
    return gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(f"MiniGrid-Empty-{size}x{size}-v0")))


def main(steps: int = 16_000, seed: int = 0, transform=None, callbacks: tuple[BaseCallback, ...] = ()) -> PPO:
    """Train and return the model; `Monitor` reports the extrinsic return."""
    env = make_vec_env(grid, n_envs=8, seed=seed)
    env = ShapeVectorReward(env, Counts(), transform or payback.grm(GAMMA, delay=10))
    model = PPO("MlpPolicy", env, gamma=GAMMA, n_steps=128, batch_size=256, n_epochs=4, learning_rate=1e-3, seed=seed)
    model.learn(steps, callback=[CheckShaping(), *callbacks])
    late = np.mean([episode["r"] for episode in model.ep_info_buffer])
    print(f"mean extrinsic return of the last {len(model.ep_info_buffer)} episodes: {late:.2f}")
    return model


if __name__ == "__main__":
    main()
