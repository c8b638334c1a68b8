"""Q-learning on a frozen lake that is not slippery, with a count bonus that cannot change the task.

    python examples/gymnasium_q_learning.py

The bonus 1/√n of a square is paid at once and repaid three steps later, so the optimal policy stays the same.
"""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeVectorReward

GAMMA, ENVS, STEPS = 0.95, 8, 4000


class Counts:
    """The bonus of a visit: one over the square root of how often the square has been visited."""

    def __init__(self, squares: int):
        self.visits = np.zeros(squares)

    def __call__(self, obs, action, next_obs, info):
        np.add.at(self.visits, next_obs[info["valid"]], 1)
        return 0.1 / np.sqrt(np.maximum(self.visits[next_obs], 1))


def main(steps: int = STEPS, seed: int = 0) -> float:
    """Train, and return the mean extrinsic return of the last tenth of all episodes."""
    lake = lambda: gym.make("FrozenLake-v1", is_slippery=False)  # noqa: E731
    envs = SyncVectorEnv([lake] * ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    squares, moves = envs.single_observation_space.n, envs.single_action_space.n
    envs = ShapeVectorReward(envs, Counts(squares), payback.grm(GAMMA, delay=3), learner_gamma=GAMMA)

    Q, chance = np.zeros((squares, moves)), np.random.default_rng(seed)
    obs, _ = envs.reset(seed=seed)
    returns, running = [], np.zeros(ENVS)
    for step in range(steps):
        explore = chance.random(ENVS) < max(0.05, 1 - 2 * step / steps)
        actions = np.where(explore, chance.integers(moves, size=ENVS), Q[obs].argmax(axis=1))
        next_obs, reward, terminated, truncated, info = envs.step(actions)
        ended = terminated | truncated
        last_obs = np.where(ended, info.get("final_obs", next_obs), next_obs).astype(int)
        target = reward + GAMMA * np.where(terminated, 0.0, Q[last_obs].max(axis=1))
        np.add.at(Q, (obs, actions), 0.2 * (target - Q[obs, actions]))
        running += info["extrinsic"]
        returns += running[ended].tolist()
        running[ended] = 0
        obs = next_obs
    late = float(np.mean(returns[-len(returns) // 10 :]))
    print(f"{len(returns)} episodes, extrinsic return of the last tenth: {late:.2f}")
    return late


if __name__ == "__main__":
    main()
