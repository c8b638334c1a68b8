"""A time limit outside the shaping drops debts: the first drop is said, with numbers, and where the limit belongs."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

GAMMA = 0.5
DROPPED = r"environment 0 was reset in mid-episode, after step 3, and its debt of 14 was dropped.*inside the shaping"


def said(warned):
    return [w for w in warned if "mid-episode" in str(w.message)]


def play(env, steps=9):
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            env.reset()


def reset_every_third_step(envs):
    for _ in range(3):
        envs.reset()
        for _ in range(3):
            envs.step(np.ones(2, int))


def test_gymnasium_single():
    inner = ShapeReward(Corridor(50), "bonus", payback.match_at_end(GAMMA))
    with pytest.warns(ShapingWarning, match=DROPPED) as warned:
        play(gym.wrappers.TimeLimit(inner, 3))
    assert len(said(warned)) == 1
    assert inner.monitor.drops == 3


def test_gymnasium_vector():
    envs = SyncVectorEnv([lambda: Corridor(50)] * 2, autoreset_mode=AutoresetMode.DISABLED)
    envs = ShapeVectorReward(envs, "bonus", payback.match_at_end(GAMMA))
    with pytest.warns(ShapingWarning, match=DROPPED) as warned:
        reset_every_third_step(envs)
    assert len(said(warned)) == 1


def test_nothing_is_said_of_a_first_reset_of_a_reset_after_an_end_nor_of_close():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShapingWarning)
        env = ShapeReward(Corridor(3), "bonus", payback.match_at_end(GAMMA), learner_gamma=GAMMA)
        play(env, steps=10)
        env.close()


def test_sb3_that_resets():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    env = ShapeVectorReward(DummyVecEnv([lambda: Corridor(50)] * 2), "bonus", payback.match_at_end(GAMMA))
    with pytest.warns(ShapingWarning, match=DROPPED) as warned:
        reset_every_third_step(env)
    assert len(said(warned)) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torchrl_with_a_step_counter_after_the_shaping():
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import Compose, GymWrapper, SerialEnv, StepCounter, TransformedEnv
    from torchrl.envs.transforms import Transform

    from payback.integrations.torchrl import ShapeReward as Shape

    class One(Transform):
        def _step(self, tensordict, next_tensordict):
            return next_tensordict.set("intrinsic_reward", torch.ones_like(next_tensordict["reward"]))

    base = SerialEnv(2, lambda: GymWrapper(Corridor(50)))
    outside = TransformedEnv(base, Compose(One(), Shape(payback.match_at_end(GAMMA)), StepCounter(3)))
    with pytest.warns(ShapingWarning, match=DROPPED) as warned:
        outside.rollout(9, break_when_any_done=False)
    assert len(said(warned)) == 1
    assert outside.transform[1].drops > 1
    inside = TransformedEnv(
        SerialEnv(2, lambda: GymWrapper(Corridor(50))),
        Compose(StepCounter(3), One(), Shape(payback.match_at_end(GAMMA))),
    )
    with pytest.warns(ShapingWarning, match="time limit is now part") as warned:
        inside.rollout(9, break_when_any_done=False)
    assert not said(warned)
