"""What environments and bonuses hand in: number flags, bonuses that raise, bonuses that change their arguments."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

GAMMA, B = 0.9, 2
pytestmark = pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")


class NumberFlags(gym.vector.VectorWrapper):
    """Returns ends as numbers of another dtype."""

    def __init__(self, env, dtype, end=1):
        super().__init__(env)
        self.dtype, self.end = dtype, end

    def step(self, actions):
        obs, reward, terminated, truncated, info = self.env.step(actions)
        return obs, reward, (terminated * self.end).astype(self.dtype), truncated.astype(self.dtype), info


def corridors(mode=AutoresetMode.NEXT_STEP):
    return SyncVectorEnv([lambda n=n: Corridor(n) for n in (3, 4)], autoreset_mode=mode)


def ones(obs, action, next_obs, info):
    return np.ones(B)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_number_flags_mean_what_booleans_mean(dtype):
    paid = []
    for envs in (corridors(), NumberFlags(corridors(), dtype)):
        shaped = ShapeVectorReward(envs, ones, payback.match_after(GAMMA, 2))
        shaped.reset(seed=0)
        paid.append([shaped.step(np.ones(B, int))[4]["shaped"] for _ in range(12)])
    np.testing.assert_array_equal(paid[0], paid[1])
    assert paid[0][3][0] == 0, "the autoreset row is not paid"


@pytest.mark.parametrize("end", [0.5, np.nan])
def test_a_flag_that_is_no_answer_is_refused(end):
    shaped = ShapeVectorReward(NumberFlags(corridors(), float, end), ones, payback.match_after(GAMMA, 2))
    shaped.reset(seed=0)
    for _ in range(2):  # nan · 0 is nan: that one is refused at the first step
        if end == 0.5:
            shaped.step(np.ones(B, int))
    with pytest.raises(ValueError, match="neither 0 nor 1; give booleans"):
        shaped.step(np.ones(B, int))


def test_number_flags_in_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

    from payback.integrations.sb3 import ShapeVectorReward

    class Numbers(VecEnvWrapper):
        dtype, end = bool, 1

        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            obs, reward, done, infos = self.venv.step_wait()
            return obs, reward, (done * self.end).astype(self.dtype), infos

    paid = []
    for dtype in (bool, np.uint8, np.float32):
        Numbers.dtype = dtype
        env = ShapeVectorReward(Numbers(DummyVecEnv([lambda: Corridor(3)] * B)), "bonus", payback.match_after(GAMMA, 2))
        env.reset()
        paid.append([env.step(np.ones(B, int))[1].tolist() for _ in range(8)])
    assert paid[0] == paid[1] == paid[2]
    Numbers.end = 0.5
    env.reset()
    for _ in range(2):
        env.step(np.ones(B, int))
    with pytest.raises(ValueError, match="neither 0 nor 1; give booleans"):
        env.step(np.ones(B, int))


class RaisesAtEnds:
    """A bonus of 1 that raises at the first end."""

    def __init__(self, at):
        self.calls, self.at = 0, at

    def __call__(self, obs, action, next_obs, info):
        self.calls += 1
        if self.calls == self.at:
            raise RuntimeError("no memory left")
        return np.ones(len(next_obs))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_bonus_that_raises_at_an_end_leaves_no_debt_to_the_next_episode(mode):
    envs = SyncVectorEnv([lambda: Corridor(3)] * B, autoreset_mode=mode)
    envs = ShapeVectorReward(envs, RaisesAtEnds(3), payback.match_at_end(GAMMA))
    envs.reset(seed=0)
    for _ in range(2):
        envs.step(np.ones(B, int))
    with pytest.raises(RuntimeError, match="no memory left"):
        envs.step(np.ones(B, int))
    assert envs.owed.tolist() == [0, 0]
    assert envs.monitor.drops == B
    if mode is AutoresetMode.DISABLED:
        envs.reset()
    if mode is AutoresetMode.NEXT_STEP:
        assert envs.step(np.ones(B, int))[4]["shaped"].tolist() == [0, 0], "the autoreset row"
    shaped = np.array([envs.step(np.ones(B, int))[4]["shaped"] for _ in range(3)])
    np.testing.assert_allclose(GAMMA ** np.arange(3) @ shaped, 0, atol=1e-12)


def test_a_bonus_that_raises_at_an_end_in_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    env = ShapeVectorReward(DummyVecEnv([lambda: Corridor(3)] * B), RaisesAtEnds(3), payback.match_at_end(GAMMA))
    env.reset()
    for _ in range(2):
        env.step(np.ones(B, int))
    with pytest.raises(RuntimeError, match="no memory left"):
        env.step(np.ones(B, int))
    shaped = [env.step(np.ones(B, int))[3][0]["shaped"] for _ in range(3)]
    assert GAMMA ** np.arange(3) @ shaped == pytest.approx(0, abs=1e-12)


def vandal(obs, action, next_obs, info):
    """Change all that is handed in, and return what the transition was worth before."""
    F = np.asarray(next_obs).reshape(-1).astype(float)
    for array in (obs, action, next_obs):
        array[:] = 77
    for one in info if isinstance(info, list) else [info]:
        for last in [one.get("terminal_observation", np.zeros(1)), *one.get("final_obs", [])]:
            if last is not None:
                last[:] = 77
        one.clear()
    return F


def honest(obs, action, next_obs, info):
    return np.asarray(next_obs).reshape(-1).astype(float)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_bonus_that_changes_its_arguments_changes_nothing_else(mode):
    runs = []
    for bonus in (honest, vandal):
        envs, seen = ShapeVectorReward(corridors(mode), bonus, payback.match_after(GAMMA, 1)), []
        envs.reset(seed=0)
        for _ in range(9):
            actions = np.ones(B, int)
            obs, reward, terminated, _, info = envs.step(actions)
            last = [x for x in info.get("final_obs", []) if x is not None]
            seen.append([*obs.ravel(), *reward, *actions, *info["intrinsic"], *np.ravel(last)])
            if mode is AutoresetMode.DISABLED and terminated.any():
                envs.reset(options={"reset_mask": terminated})
        runs.append(seen)
    assert runs[0] == runs[1]


def test_a_bonus_that_changes_its_arguments_in_a_single_environment():
    runs = []
    for bonus in (honest, vandal):
        env = ShapeReward(Corridor(5), bonus, payback.match_after(GAMMA, 1))
        env.reset(seed=0)
        runs.append([(float(obs[0]), reward) for obs, reward, *_ in (env.step(1) for _ in range(5))])
    assert runs[0] == runs[1]


def test_a_bonus_that_changes_its_arguments_in_sb3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    runs = []
    for bonus in (honest, vandal):
        env, seen = ShapeVectorReward(DummyVecEnv([lambda: Corridor(3)] * B), bonus, payback.match_after(GAMMA, 1)), []
        env.reset()
        for _ in range(8):
            actions = np.ones(B, int)
            obs, reward, _, infos = env.step(actions)
            last = [info["terminal_observation"] for info in infos if "terminal_observation" in info]
            seen.append([*obs.ravel(), *reward, *actions, *np.ravel(last)])
        runs.append(seen)
    assert runs[0] == runs[1]
