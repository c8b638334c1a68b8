"""What the adapters' tests share: a small environment with every kind of ending, a bonus, and Torch on one thread."""

import gymnasium as gym
import numpy as np
import pytest


class Walk(gym.Env):
    """A random walk on the plane that terminates by chance; `info["novelty"]` is a bonus, absent from resets."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, hazard: float = 0.2):
        self.hazard = hazard

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2).astype(np.float32)
        return self.place, {}

    def step(self, action):
        self.place = self.place + self.np_random.normal(size=2).astype(np.float32) + np.float32(action)
        ends = bool(self.np_random.random() < self.hazard)
        return self.place, float(self.place[0]), ends, False, {"novelty": float(abs(self.place[1]))}


@pytest.fixture(scope="session")
def walk():
    """Makes a walk that is cut after seven steps."""
    return lambda hazard=0.2: gym.wrappers.TimeLimit(Walk(hazard), 7)


@pytest.fixture(scope="session")
def distance():
    """An intrinsic reward on batches that needs both observations and the action of a transition."""

    def distance(obs, action, next_obs, info):
        return np.abs(next_obs - obs).sum(axis=-1) + 0.5 * np.asarray(action)

    return distance


@pytest.fixture(scope="module")
def one_thread():
    """Keeps Torch on one thread, because small networks are slower on several."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
