"""SB3 and TorchRL pay float32: a settlement that does not fit raises, with the episode's length and what to do."""

import numpy as np
import pytest

import payback

from .corridor import Corridor

MATCH = payback.match_at_end(0.5)
WORDS = r"environment 0 is to be paid -\S+ at step 140 of its episode.*float32 cannot hold.*repay sooner"
pytestmark = [
    pytest.mark.filterwarnings("ignore::payback.InterestWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:environment . was reset in mid-episode"),
]


def test_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVecReward

    env = ShapeVecReward(DummyVecEnv([lambda: Corridor(140)] * 2), "bonus", MATCH)
    env.reset()
    for _ in range(139):
        env.step(np.ones(2, int))
    with pytest.raises(OverflowError, match=WORDS):
        env.step(np.ones(2, int))
    assert env.ledger.owed.tolist() == [0, 0], "a caller that goes on starts without debts"


def test_torchrl():
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import Compose, GymWrapper, SerialEnv, TransformedEnv
    from torchrl.envs.transforms import Transform

    from payback.integrations.torchrl import ShapeReward

    class One(Transform):
        def _step(self, tensordict, next_tensordict):
            return next_tensordict.set("intrinsic_reward", torch.ones_like(next_tensordict["reward"]))

    base = SerialEnv(2, lambda: GymWrapper(Corridor(140)))
    env = TransformedEnv(base, Compose(One(), ShapeReward(MATCH)))
    env.rollout(5)
    with pytest.raises(OverflowError, match=WORDS):
        env.rollout(150)
