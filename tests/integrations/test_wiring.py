"""check_wiring: what is wrapped around the shaping and breaks the law is found and named."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeReward, OrderEnforcing, TimeLimit, TransformReward

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward, check_wiring

from .corridor import Corridor

MATCH = payback.match_after(0.9, 4)


def shaped(length=6):
    return ShapeReward(Corridor(length), "bonus", MATCH)


class SkipFrames(gym.Wrapper):
    """Repeats each action and adds the rewards up."""

    def step(self, action):
        total = 0.0
        for _ in range(2):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += reward
        return obs, total, terminated, truncated, info


def quiet(env):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShapingWarning)
        return check_wiring(env, episodes=4)


def test_right_stacks_pass_and_are_left_as_they_were():
    env = OrderEnforcing(shaped())
    assert quiet(env) == 4
    assert (env.env.monitor.drops, env.env.monitor.steps, env.env.owed.tolist()) == (0, 0, [0.0])
    for mode in AutoresetMode:
        envs = SyncVectorEnv([lambda n=n: TimeLimit(Corridor(n), 5) for n in (3, 9)], autoreset_mode=mode)
        assert quiet(ShapeVectorReward(envs, "bonus", MATCH)) >= 4


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda env: TransformReward(env, lambda r: float(np.clip(r, -1, 1))), "came out of TransformReward"),
        (NormalizeReward, "came out of NormalizeReward"),
        (SkipFrames, r"came out of SkipFrames.*frame skip"),
        (lambda env: TimeLimit(env, 4), "ended outside the shaping, by TimeLimit; put the time limit inside"),
    ],
)
def test_what_breaks_the_law_outside_is_named(wrap, words):
    with pytest.raises(payback.InvarianceError, match=words):
        check_wiring(wrap(shaped()))


def test_what_may_break_the_law_is_said():
    with pytest.warns(ShapingWarning, match="TransformReward outside the shaping can change rewards"):
        check_wiring(TransformReward(shaped(), lambda r: min(r, 1e9)))
    with pytest.warns(ShapingWarning, match=r"2 shapings are stacked \(gamma 0\.99, 0\.9"):
        two = ShapeReward(OrderEnforcing(shaped()), "bonus", payback.match_after(0.99, 4))
    with pytest.warns(ShapingWarning, match=r"2 shapings are stacked \(gamma 0\.99, 0\.9"):
        check_wiring(two)
    with pytest.warns(ShapingWarning, match=r"2 shapings are stacked \(gamma 0\.99, 0\.9"):
        ShapeVectorReward(
            ShapeVectorReward(SyncVectorEnv([lambda: Corridor(3)]), "bonus", MATCH), "bonus", payback.grm(0.99, 2)
        )


def test_no_shaping_is_refused():
    with pytest.raises(ValueError, match="found no ShapeReward"):
        check_wiring(Corridor(3))
