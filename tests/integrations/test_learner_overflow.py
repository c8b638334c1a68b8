"""SB3 and TorchRL pay float32: a settlement that does not fit raises, with the episode's length and what to do."""

import numpy as np
import pytest

import payback

from .corridor import Corridor
from .own_match import halves

MATCH = payback.match_at_end(0.5)
EVERY = {
    "match_at_end": lambda xp: payback.match_at_end(0.5),
    "match_after": lambda xp: payback.match_after(0.5, 3),
    "match_evenly": lambda xp: payback.match_evenly(0.5, 4),
    "match_geometric": lambda xp: payback.match_geometric(0.5, 0.4),
    "match_from_ages": lambda xp: payback.match_from_ages(0.5, [0.2, 0.3, 0.5]),
    "match_when": lambda xp: payback.match_when(0.5),
    "grm": lambda xp: payback.grm(0.5, 3),
    "a user's own": lambda xp: halves(xp, 0.5),
}
HUGE = 3e38
"""Fits float32, whose largest number is 3.4e38; twice as much does not."""
WORDS = r"environment 0 is -\S+ at step 140 of its episode.*float32 cannot hold.*[Rr]epay sooner"
pytestmark = [
    pytest.mark.filterwarnings("ignore::payback.InterestWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:environment . was reset in mid-episode"),
]


def test_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    env = ShapeVectorReward(DummyVecEnv([lambda: Corridor(140)] * 2), "bonus", MATCH)
    env.reset()
    for _ in range(139):
        env.step(np.ones(2, int))
    with pytest.raises(OverflowError, match=WORDS):
        env.step(np.ones(2, int))
    assert env.owed.tolist() == [0, 0], "a caller that goes on starts without debts"


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


@pytest.mark.parametrize("name", EVERY)
def test_every_matching_in_sb3(name):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    env = ShapeVectorReward(DummyVecEnv([lambda: Corridor(6)] * 2), lambda *t: np.full(2, HUGE), EVERY[name](np))
    env.reset()

    def play():
        for _ in range(6):
            assert np.isfinite(env.step(np.ones(2, int))[1]).all()

    with pytest.raises(OverflowError, match=r"at step \d of its episode.*float32 cannot hold.*[Rr]epay sooner"):
        play()


@pytest.mark.parametrize("name", EVERY)
def test_every_matching_in_torchrl(name):
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import Compose, GymWrapper, SerialEnv, TransformedEnv
    from torchrl.envs.transforms import Transform

    from payback.integrations.torchrl import ShapeReward

    class Huge(Transform):
        def _step(self, tensordict, next_tensordict):
            return next_tensordict.set("intrinsic_reward", torch.full_like(next_tensordict["reward"], HUGE))

    base = SerialEnv(2, lambda: GymWrapper(Corridor(6)))
    env = TransformedEnv(base, Compose(Huge(), ShapeReward(EVERY[name](torch), learner_gamma=0.5)))
    with pytest.raises(OverflowError, match=r"at step \d of its episode.*float32 cannot hold.*[Rr]epay sooner"):
        env.rollout(8)
