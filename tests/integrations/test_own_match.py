"""A user's own match in the Gymnasium and SB3 adapters: it pays what ours pays, through resets, saves and loads.

TorchRL's, RLlib's and rllte's tests have it among their transforms.
"""

import gymnasium as gym
import numpy as np
import pytest

import payback

from .own_match import Halves, halves

GAMMA = 0.9
pytestmark = pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning")


def own() -> payback.Match:
    shaping = payback.chain(payback.center(), halves(np, GAMMA))
    assert isinstance(shaping, payback.Match)
    return shaping


def ours() -> payback.Match:
    shaping = payback.chain(payback.center(), payback.match_evenly(GAMMA, 2))
    assert isinstance(shaping, payback.Match)
    return shaping


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_gymnasium_vector(walk, mode):
    from payback.integrations.gymnasium import ShapeVectorReward

    paid = []
    for transform in (own(), ours()):
        envs = gym.vector.SyncVectorEnv([walk] * 3, autoreset_mode=mode)
        envs = ShapeVectorReward(envs, "novelty", transform)
        envs.reset(seed=1)
        rows = []
        for _ in range(40):
            _, _, terminated, truncated, info = envs.step(np.zeros(3, int))
            rows.append(info["shaped"])
            if mode is gym.vector.AutoresetMode.DISABLED and (terminated | truncated).any():
                envs.reset(options={"reset_mask": terminated | truncated})
        paid.append(np.array(rows))
    np.testing.assert_allclose(paid[0], paid[1], atol=1e-12)
    assert paid[0].any()


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_gymnasium_reset_save_and_load(walk, tmp_path):
    from payback.integrations.gymnasium import ShapeReward

    env = ShapeReward(walk(0.0), "novelty", own())
    env.reset(seed=1)
    for _ in range(3):
        env.step(0)
    env.save(tmp_path / "state.npz")
    owed = env.owed.copy()
    assert owed.all()
    env.reset()
    assert (env.monitor.drops, env.owed.tolist()) == (1, [0.0])
    env.load(tmp_path / "state.npz")
    assert type(env.shaping_state.loans[1]) is Halves
    np.testing.assert_array_equal(env.owed, owed)


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_sb3(walk):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    paid = []
    for transform in (own(), ours()):
        env = ShapeVectorReward(DummyVecEnv([walk] * 3), "novelty", transform)
        env.seed(1)
        env.reset()
        paid.append(np.array([[i["shaped"] for i in env.step(np.zeros(3, int))[3]] for _ in range(40)]))
        env.reset()
        assert not env.owed.any()
    np.testing.assert_allclose(paid[0], paid[1], atol=1e-12)
