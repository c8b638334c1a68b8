"""What the Gymnasium wrappers say of a wrong bonus, vector, space or transform."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .gymnasium_vectors import GAMMA, RAW, B, wrapped_vector

pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
]


class TestBadInput:
    def step_twice(self, walk, intrinsic, mode=AutoresetMode.SAME_STEP):
        envs = wrapped_vector(lambda: walk(0.0), mode, intrinsic, RAW["grm-1"])
        envs.reset(seed=0)
        for _ in range(2):
            envs.step(np.zeros(B, dtype=int))

    def test_wrong_shape(self, walk):
        with pytest.raises(ValueError, match=r"step 0 has shape \(3, 1\), not \(3,\)"):
            self.step_twice(walk, lambda *transition: np.ones((B, 1)))

    def test_not_numbers(self, walk):
        with pytest.raises(TypeError, match="step 0 is a str, not an array of 3 numbers"):
            self.step_twice(walk, lambda *transition: "much")

    def test_nan(self, walk):
        answers = iter([np.zeros(B), np.array([0, 0, np.nan])])
        with pytest.raises(ValueError, match="environment 2 at step 1 is nan"):
            self.step_twice(walk, lambda *transition: next(answers))

    def test_raises(self, walk):
        with pytest.raises(RuntimeError, match=r"raised ZeroDivisionError at step 0 \(environments 0 to 2\)"):
            self.step_twice(walk, lambda *transition: 1 / 0)

    @pytest.mark.parametrize("bonus", [None, 3.0, payback.grm(GAMMA, 3)])
    def test_no_bonus_at_all(self, walk, bonus):
        with pytest.raises(TypeError, match="bonus must be a callable"):
            self.step_twice(walk, bonus)

    def test_missing_info_key(self, walk):
        with pytest.raises(KeyError, match="no 'curiosity' for environment 0 at step 0"):
            self.step_twice(walk, "curiosity")

    def test_no_vector_metadata(self, walk, distance):
        envs = SyncVectorEnv([walk] * B)
        envs.metadata = {}
        with pytest.raises(ValueError, match=r"does not say how it resets: metadata\['autoreset_mode'\] is None"):
            ShapeVectorReward(envs, distance, RAW["grm-1"])

    def test_no_reset(self, walk, distance):
        envs = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, RAW["grm-1"])
        envs.env.reset(seed=0)
        with pytest.raises(RuntimeError, match="call reset before the first step"):
            envs.step(np.zeros(B, dtype=int))

    def test_space_that_cannot_hold_the_debt(self):
        with pytest.raises(ValueError, match=r"Discrete\(16\) cannot hold the debt"):
            ShapeReward(gym.make("FrozenLake-v1"), "novelty", RAW["grm-1"], observe_debt=True)

    def test_space_that_has_a_debt_already(self, walk):
        env = gym.wrappers.TransformObservation(
            walk(), lambda o: {"debt": o}, gym.spaces.Dict({"debt": walk().observation_space}))  # fmt: skip
        with pytest.raises(ValueError, match="already has a 'debt'"):
            ShapeReward(env, "novelty", RAW["grm-1"], observe_debt=True)

    def test_no_match_is_said(self, walk):
        with pytest.warns(ShapingWarning, match="no match in this transform"):
            env = ShapeReward(walk(0.0), "novelty", payback.scale(0.5))
        env.reset(seed=0)
        _, reward, _, _, info = env.step(0)
        assert reward == pytest.approx(info["extrinsic"] + 0.5 * info["novelty"])
        with pytest.raises(TypeError, match="must be a RewardTransform"):
            ShapeReward(walk(), "novelty", GAMMA)
