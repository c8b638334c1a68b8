"""PPO of RLlib on CartPole, with a bonus for rarely seen states that cannot change the task.

    python examples/rllib_ppo.py

The environments run in remote workers; each has its own counts, and they share the mean bonus F̄.
"""

from collections import Counter
from functools import partial

import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig

import payback
from payback.integrations.rllib import ShapeReward

GAMMA = 0.99


class Counts:
    """The bonus of a state: one over the square root of how often its neighbourhood has been seen."""

    def __init__(self):
        self.seen = Counter()

    def __call__(self, obs, action, next_obs, info):
        keys = [row.tobytes() for row in np.round(next_obs, 1)]
        self.seen.update(keys)
        return 0.5 / np.sqrt([self.seen[key] for key in keys])


def main(iterations: int = 10, runners: int = 2) -> list[float]:
    """Train, and return the mean extrinsic return after each iteration."""
    shaping = partial(ShapeReward, bonus=Counts(), transform=payback.grm(GAMMA, delay=10))
    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=4)
        .training(gamma=GAMMA, lr=1e-3, train_batch_size_per_learner=2000, minibatch_size=250, num_epochs=6)
        .callbacks(shaping)
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    returns = []
    for _ in range(iterations):
        returns.append(float(algorithm.train()["env_runners"]["extrinsic_return_mean"]))
        print(f"mean extrinsic return: {returns[-1]:.0f}")
    algorithm.stop()
    return returns


if __name__ == "__main__":
    main()
