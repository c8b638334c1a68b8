"""The learner's discount: another one than the transform's is refused, one that nobody confirmed is said once."""

import warnings

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

MATCH = payback.match_after(0.9, 2)
OTHER = r"gamma 0\.99.*gamma 0\.9"


def single(**options):
    return ShapeReward(Corridor(3), "bonus", MATCH, **options)


def vector(**options):
    return ShapeVectorReward(SyncVectorEnv([lambda: Corridor(3)] * 2), "bonus", MATCH, **options)


def sb3(**options):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    return ShapeVectorReward(DummyVecEnv([lambda: Corridor(3)] * 2), "bonus", MATCH, **options)


def torchrl(**options):
    pytest.importorskip("torchrl")
    from payback.integrations.torchrl import ShapeReward as Shape

    return Shape(MATCH, **options)


@pytest.mark.parametrize("wrap", [single, vector, sb3, torchrl])
def test_another_gamma_is_refused(wrap):
    with pytest.raises(ValueError, match=OTHER):
        wrap(learner_gamma=0.99)


def play(env):
    env.reset()
    for t in range(1, 10):
        env.step(1 if isinstance(env, ShapeReward) else np.ones(2, int))
        if t % 3 == 0 and isinstance(env, ShapeReward):
            env.reset()


@pytest.mark.parametrize("wrap", [single, vector, sb3])
def test_a_gamma_that_nobody_confirmed_is_said_once(wrap):
    with pytest.warns(ShapingWarning, match=r"never confirmed: loans are repaid with gamma 0\.9") as said:
        play(wrap())
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(wrap(learner_gamma=0.9))


def test_sb3s_callback_confirms_every_shaping_in_the_stack():
    env = sb3()
    from stable_baselines3 import PPO

    from payback.integrations.sb3 import CheckShaping, ShapeVectorReward

    with warnings.catch_warnings():
        warnings.simplefilter("error", ShapingWarning)
        PPO("MlpPolicy", env, gamma=0.9, n_steps=8, batch_size=16, n_epochs=1).learn(16, callback=CheckShaping())
    stacked = ShapeVectorReward(sb3(), "bonus", payback.match_after(0.99, 2))
    learner = PPO("MlpPolicy", stacked, gamma=0.99, n_steps=8, batch_size=16, n_epochs=1)
    with pytest.raises(ValueError, match=OTHER):
        learner.learn(16, callback=CheckShaping())
