"""Stable-Baselines3: a VecEnv wrapper that adds a shaped intrinsic reward, and a callback that checks the rest.

    env = ShapeVectorReward(make_vec_env("CartPole-v1", 8), novelty, payback.grm(0.99, delay=30))
    PPO("MlpPolicy", env, gamma=0.99).learn(100_000, callback=CheckShaping())

`Monitor`, which make_vec_env puts inside, goes on reporting the extrinsic return. Each step's info has extrinsic,
intrinsic, shaped, owed and the original truncated. An evaluation environment is wrapped in `Unshaped`. With a replay
buffer use observe_debt=True: a Q-function that does not see the debt averages over those of other histories.
"""

from importlib import import_module

from payback.integrations.host import host

with host("Stable-Baselines3", "pip install 'payback[sb3]'"):
    import_module("stable_baselines3")  # before Gymnasium, which comes with it and would otherwise be named

from payback.integrations.sb3.check_shaping import CheckShaping
from payback.integrations.sb3.collect_bonus import CollectBonus
from payback.integrations.sb3.saved_model import load_model, save_model
from payback.integrations.sb3.shape_vector_reward import ShapeVectorReward, ShapeVectorWithPotential, Source, Unshaped

__all__ = ["CheckShaping", "CollectBonus", "ShapeVectorReward", "ShapeVectorWithPotential", "Source", "Unshaped"]
__all__ += ["load_model", "save_model"]
