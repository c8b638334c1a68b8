"""Every adapter tells an episodic bonus that an episode is over: what it pays equals a plain loop's."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback.bonuses import EpisodicCount
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

B, STEPS = 2, 60
pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning"),
]


def by_hand(actions, lengths):
    """F of one environment's valid transitions, with a dictionary of visits that is emptied at each end."""
    rewards, place, seen, t = [], 0, {0: 1}, 0
    for action in actions:
        place, t = place + action, t + 1
        seen[place] = seen.get(place, 0) + 1
        rewards.append(1 / seen[place])
        if t == lengths:
            place, seen, t = 0, {0: 1}, 0
    return rewards


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_gymnasium_vector(mode):
    lengths, chance = (3, 5), np.random.default_rng(0)
    envs = SyncVectorEnv([lambda n=n: Corridor(n) for n in lengths], autoreset_mode=mode)
    envs = ShapeVectorReward(envs, EpisodicCount(alpha=1.0), payback.grm(0.9, 1))
    envs.reset(seed=0)
    took, paid, valid = [[] for _ in range(B)], [[] for _ in range(B)], np.ones(B, bool)
    for _ in range(STEPS):
        actions = chance.integers(2, size=B)
        _, _, terminated, truncated, info = envs.step(actions)
        for k in np.flatnonzero(valid):
            took[k].append(actions[k])
            paid[k].append(info["intrinsic"][k])
        ended = terminated | truncated
        valid = ~ended if mode is AutoresetMode.NEXT_STEP else np.ones(B, bool)
        if mode is AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    for k in range(B):
        assert paid[k] == by_hand(took[k], lengths[k])


def test_gymnasium_single_and_a_reset_in_mid_episode():
    env = ShapeReward(Corridor(4), EpisodicCount(alpha=1.0), payback.grm(0.9, 1))
    for _ in range(2):
        env.reset(seed=0)
        assert [env.step(0)[4]["intrinsic"] for _ in range(2)] == [1 / 2, 1 / 3]
    assert [env.step(0)[4]["intrinsic"] for _ in range(2)] == [1 / 4, 1 / 5]
    env.reset()
    assert env.step(0)[4]["intrinsic"] == 1 / 2


def test_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    lengths, chance = (3, 5), np.random.default_rng(0)
    env = DummyVecEnv([lambda n=n: Corridor(n) for n in lengths])
    env = ShapeVectorReward(env, EpisodicCount(alpha=1.0), payback.grm(0.9, 1))
    for _ in range(2):
        env.reset()
        actions = chance.integers(2, size=(STEPS, B))
        paid = np.array([[info["intrinsic"] for info in env.step(row)[3]] for row in actions])
        for k in range(B):
            assert paid[:, k].tolist() == by_hand(actions[:, k], lengths[k])
        env.step(actions[0])


@pytest.mark.host
def test_rllib():
    """Three environments in one runner, whose steps come one by one."""
    pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)
    from types import SimpleNamespace

    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    from payback.integrations.rllib import ShapeReward as Callback

    shaping = Callback(EpisodicCount(alpha=1.0), payback.grm(0.9, 1))
    runner = SimpleNamespace(config=SimpleNamespace(in_evaluation=False), num_envs=3, worker_index=0, env=None)
    chance, lengths = np.random.default_rng(0), (3, 4, 5)
    envs, episodes = [Corridor(n) for n in lengths], [None] * 3
    took, paid = [[] for _ in range(3)], [[] for _ in range(3)]
    for _ in range(STEPS):
        for k in range(3):
            if episodes[k] is None or episodes[k].is_done:
                episodes[k] = SingleAgentEpisode()
                episodes[k].add_env_reset(*envs[k].reset())
                shaping.on_episode_start(episode=episodes[k], env_runner=runner, env_index=k)
            action = int(chance.integers(2))
            obs, reward, terminated, truncated, info = envs[k].step(action)
            episodes[k].add_env_step(obs, action, reward, info, terminated=terminated, truncated=truncated)
            shaping.on_episode_step(episode=episodes[k], env_runner=runner, env_index=k)
            took[k].append(action)
            paid[k].append(info["intrinsic"])
    for k in range(3):
        assert paid[k] == by_hand(took[k], lengths[k])
