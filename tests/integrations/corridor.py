"""A corridor that is left after a fixed number of steps: what happens in it is known beforehand."""

import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    """Action 1 goes on, action 0 stays; every step pays 1; the episode terminates after `length` steps."""

    observation_space = gym.spaces.Box(0, 1000, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.place, self.steps = self.place + int(action), self.steps + 1
        return np.full(1, self.place, np.float32), 1.0, self.steps == self.length, False, {"bonus": 1.0}
