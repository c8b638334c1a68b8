"""What rl_zoo_ppo.yml names: a function that RL Zoo calls with the vector environment and the YAML's arguments."""

from stable_baselines3.common.vec_env import VecEnv

import payback
from payback.bonuses import SimHash
from payback.integrations.sb3 import ShapeVectorReward


def shape(venv: VecEnv, gamma: float, delay: int = 10, alpha: float = 0.1) -> ShapeVectorReward:
    """Pay for rarely seen states, by hashing, and take each bonus back `delay` steps later."""
    return ShapeVectorReward(venv, SimHash(alpha=alpha, seed=0), payback.grm(gamma, delay))
