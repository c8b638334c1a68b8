"""The law in what the Gymnasium wrappers pay: by every match, on events, and for rewards of every dtype."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback import theory
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor
from .gymnasium_vectors import GAMMA, MODES, RAW, B, drive, wrapped_vector

pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
]
CARRIED = [name for name in RAW if name != "pbim"]
CASES = [(name, "settle", "distance") for name in RAW] + [(name, "carry", "novelty") for name in CARRIED]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "on_truncation", "source"), CASES)
def test_every_episode_keeps_the_law_and_the_drawer(walk, distance, mode, name, on_truncation, source):
    """Σγ^t F'_t = 0 at an end that settles, γ^N·debt where the debt is carried; F' as the naive (drawer) has it."""
    intrinsic = distance if source == "distance" else source
    envs = wrapped_vector(walk, mode, intrinsic, RAW[name], on_truncation=on_truncation)
    episodes, lent, paid = [], [[] for _ in range(B)], [[] for _ in range(B)]
    for step in drive(envs, mode):
        for k in np.flatnonzero(~step["reset_row"]):
            lent[k].append(step["info"]["intrinsic"][k])
            paid[k].append(step["info"]["shaped"][k])
            np.testing.assert_allclose(step["reward"][k], step["info"]["extrinsic"][k] + paid[k][-1])
            if step["terminated"][k] or step["truncated"][k]:
                episodes.append((lent[k], paid[k], step["info"]["owed"][k], step["terminated"][k]))
                lent[k], paid[k] = [], []
    for F, shaped, debt, terminated in episodes:
        N = len(shaped)
        assert GAMMA ** np.arange(N) @ shaped == pytest.approx(GAMMA**N * debt, abs=1e-9)
        assert bool(debt) != bool(terminated)
        if name in ("grm-1", "grm-3") and terminated:
            D = int(name[-1])
            naive = theory.match_episode(F, lambda t, i, N: float(t == min(i + D, N - 1)), GAMMA)  # noqa: B023
            np.testing.assert_allclose(shaped, naive, atol=1e-9)
    assert {bool(end) for *_, end in episodes} == ({True} if on_truncation == "settle" else {True, False})


def test_match_when_repays_on_events(walk, distance):
    def event(obs, action, next_obs, info):
        return np.asarray(action) == 1

    env = ShapeReward(walk(0.0), distance, payback.match_when(GAMMA), event=event)
    env.reset(seed=0)
    first = env.step(0)[4]
    assert first["shaped"] == pytest.approx(first["intrinsic"])
    second = env.step(1)[4]
    assert second["shaped"] == pytest.approx(second["intrinsic"] - first["intrinsic"] / GAMMA)
    assert second["owed"] == pytest.approx(second["intrinsic"] / GAMMA)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_what_is_paid_is_the_sum_whatever_the_rewards_dtype(dtype):
    class Cast(gym.vector.VectorWrapper):
        def step(self, actions):
            obs, reward, *rest = self.env.step(actions)
            return obs, reward.astype(dtype), *rest

    one = gym.wrappers.TransformReward(Corridor(4), lambda reward: np.dtype(dtype).type(reward))
    single = ShapeReward(one, lambda *t: np.full(1, 0.3), payback.match_at_end(GAMMA))
    vector = SyncVectorEnv([lambda: Corridor(4)] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    vector = ShapeVectorReward(Cast(vector), lambda *t: np.full(2, 0.3), payback.match_at_end(GAMMA))
    for env, actions in ((single, 1), (vector, np.ones(2, int))):
        env.reset()
        paid = np.array([env.step(actions)[1] for _ in range(4)])
        np.testing.assert_allclose(paid[:3], 1.3)
        np.testing.assert_allclose(GAMMA ** np.arange(4) @ (paid - 1), 0, atol=1e-12)
