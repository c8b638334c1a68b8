"""A corridor with a goal at its end, and a television at its start that always shows something new."""

import gymnasium as gym
import numpy as np

CELLS, PIXELS, LIMIT = 8, 16, 40


class NoisyTV(gym.Env):
    """Actions: 0 walks back, 1 walks on, 2 switches the channel. The goal pays 1 and ends the episode."""

    observation_space = gym.spaces.Box(0.0, 1.0, (CELLS + PIXELS,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        """Begin at the television."""
        super().reset(seed=seed)
        self.place = 0
        return self.observe(watching=False), {}

    def step(self, action):
        """Walk or watch."""
        self.place = int(np.clip(self.place + {0: -1, 1: 1, 2: 0}[int(action)], 0, CELLS - 1))
        arrived = self.place == CELLS - 1
        return self.observe(watching=action == 2), float(arrived), arrived, False, {}

    def observe(self, watching):
        """Return where the agent is and, if it watches, what is on."""
        picture = self.np_random.integers(0, 2, PIXELS) if watching else np.zeros(PIXELS)
        return np.concatenate((np.eye(CELLS)[self.place], picture)).astype(np.float32)


def make():
    """Return the corridor with its time limit."""
    return gym.wrappers.TimeLimit(NoisyTV(), LIMIT)
