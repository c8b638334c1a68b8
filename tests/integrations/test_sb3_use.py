"""Stable-Baselines3 as people use it: evaluation, checkpoints, loading, logging, training twice, recording."""

import csv
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecNormalize

import payback
from payback import ShapingWarning, audit_file
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward, Unshaped, load_model, save_model

from .corridor import Corridor

GAMMA = 0.9
GRM = payback.grm(GAMMA, 3)
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:a truncated episode", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]


@pytest.fixture
def walks(walk):
    return lambda envs=2: make_vec_env(walk, n_envs=envs, seed=1)


def shaped(venv, **options):
    return ShapeVectorReward(venv, "novelty", GRM, **options)


def ppo(env, **options):
    return PPO("MlpPolicy", env, gamma=GAMMA, n_steps=16, batch_size=16, n_epochs=1, seed=0, **options)


def normalised(venv):
    return VecNormalize(venv, gamma=GAMMA)


def unrewarded(venv):
    return VecNormalize(venv, gamma=GAMMA, norm_reward=False)


STACKS = {
    "inside": (lambda venv, wrap: wrap(normalised(venv))),
    "outside": (lambda venv, wrap: unrewarded(wrap(venv))),
    "none": (lambda venv, wrap: wrap(venv)),
}


class TestEvaluation:
    @pytest.mark.parametrize("observe_debt", [False, True])
    @pytest.mark.parametrize("stack", STACKS)
    def test_an_unshaped_evaluation_environment_works(self, walks, stack, observe_debt, tmp_path):
        env = STACKS[stack](walks(), lambda venv: shaped(venv, observe_debt=observe_debt))
        unshaped = STACKS[stack](walks(), lambda venv: Unshaped(venv, observe_debt=observe_debt))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "a truncated episode")
            evaluate = EvalCallback(unshaped, eval_freq=8, n_eval_episodes=3, log_path=str(tmp_path), verbose=0)
            ppo(env).learn(32, callback=[CheckShaping(), evaluate])
        assert len(evaluate.evaluations_results) == 2
        if stack == "outside":
            np.testing.assert_array_equal(unshaped.obs_rms.mean[:2].shape, (2,))
            assert unshaped.obs_rms.count > 1

    def test_it_pays_the_extrinsic_reward_and_owes_nothing(self, walks):
        ours, plain = Unshaped(walks(), observe_debt=True), walks()
        assert ours.observation_space.shape == (3,)
        np.testing.assert_array_equal(ours.reset()[:, :2], plain.reset())
        for _ in range(20):
            obs, reward, done, infos = ours.step(np.zeros(2, int))
            expected = plain.step(np.zeros(2, int))
            np.testing.assert_array_equal(reward, expected[1])
            assert (obs[:, 2] == 0).all()
            for k in np.flatnonzero(done):
                np.testing.assert_array_equal(
                    infos[k]["terminal_observation"][:2], expected[3][k]["terminal_observation"]
                )
                assert infos[k]["terminal_observation"].shape == (3,)


class TestTheMean:
    def mean(self, env):
        return env.shaping_state.loans[0]

    @pytest.mark.parametrize("envs", [2, 3])
    @pytest.mark.parametrize("way", ["save", "checkpoint", "save_model"])
    def test_it_is_kept(self, walks, way, envs, tmp_path):
        env = shaped(walks())
        model = ppo(env)
        keep = CheckpointCallback(16, str(tmp_path), name_prefix="model")
        model.learn(32, callback=[CheckShaping(), keep])
        path = tmp_path / ("model_32_steps.zip" if way == "checkpoint" else "model.zip")
        if way != "checkpoint":
            (model.save if way == "save" else lambda path: save_model(model, path))(path)
        before = self.mean(env)
        assert before.count == 32
        fresh = shaped(walks(envs))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ShapingWarning)
            warnings.filterwarnings("ignore", "a truncated episode")
            again = load_model(PPO, path, fresh) if way == "save_model" else PPO.load(path, env=fresh)
            again.learn(16 * envs, callback=CheckShaping())
        if way == "checkpoint":  # written in the midst of a rollout: the mean is that of the rollout before
            assert self.mean(fresh).count >= 16 * envs
        else:
            assert self.mean(fresh).count == 32 + 16 * envs
        assert self.mean(fresh).mean != 0

    def test_it_is_said_that_it_starts_anew(self, walks, tmp_path):
        ppo(shaped(walks(), learner_gamma=GAMMA)).learn(32).save(tmp_path / "model.zip")
        again = PPO.load(tmp_path / "model.zip", env=shaped(walks()))
        with pytest.warns(ShapingWarning, match=r"no F̄ that fits .*starts anew at 0"):
            again.learn(32, callback=CheckShaping())

    def test_a_mean_of_another_transform_is_not_taken(self, walks, tmp_path):
        ppo(shaped(walks())).learn(32, callback=CheckShaping()).save(tmp_path / "model.zip")
        other = payback.chain(payback.scale_by_rms(), payback.center(), payback.match_after(GAMMA, 2))
        again = PPO.load(tmp_path / "model.zip", env=ShapeVectorReward(walks(), "novelty", other))
        with pytest.warns(ShapingWarning, match="starts anew"):
            again.learn(32, callback=CheckShaping())
        longer = ShapeVectorReward(walks(), "novelty", payback.grm(GAMMA, 9))
        again = PPO.load(tmp_path / "model.zip", env=longer)
        again.learn(32, callback=CheckShaping())
        assert longer.shaping_state.loans[0].count == 64, "F̄ is the bonus's: another delay keeps it"


def test_the_logger_gets_the_shapings_figures(walks, tmp_path):
    model = ppo(shaped(walks()))
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(64, callback=CheckShaping())
    model.logger.close()
    with open(tmp_path / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    names = {name.removeprefix("shaping/") for name in rows[0] if name.startswith("shaping/")}
    assert names == {"extrinsic", "intrinsic", "shaped", "owed", "mean", "residual", "drops"}
    for row in rows:
        assert float(row["shaping/intrinsic"]) > 0
        assert 0 <= float(row["shaping/residual"]) < 1e-5
        assert float(row["shaping/drops"]) == 0
    env = model.get_env()
    assert float(rows[-1]["shaping/mean"]) == pytest.approx(float(env.shaping_state.loans[0].mean), rel=1e-3)
    assert float(rows[0]["shaping/shaped"]) != float(rows[0]["shaping/intrinsic"])


def test_training_twice_in_a_row(walks, tmp_path):
    pytest.importorskip("pyarrow", reason="pip install payback[audit]")
    env = shaped(walks(), record=tmp_path / "log")
    model, check = ppo(env), CheckShaping()
    with pytest.warns(ShapingWarning, match=r"mid-episode.*a second learn\(\) of SB3 also resets") as said:
        _ = [model.learn(32, callback=check) for _ in range(3)]
    assert len([w for w in said if "mid-episode" in str(w.message)]) == 1
    assert 0 < env.monitor.drops <= 4
    drops = env.monitor.drops
    model.learn(32, callback=check, reset_num_timesteps=False)
    assert env.monitor.drops == drops, "without a reset nothing is dropped"
    assert env.shaping_state.loans[0].count == 128
    env.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 128
    assert env.monitor.finished == len(found.episodes.leak)


class Halve(VecEnvWrapper):
    """Halves rewards in place, as wrappers of users do."""

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        reward /= 2
        return obs, reward, done, infos


class TestWhatIsWrappedAround:
    def test_a_wrapper_that_changes_rewards_in_place_is_found(self, walks):
        with pytest.raises(ValueError, match=r"a wrapper outside \(Halve\) changes rewards"):
            ppo(Halve(shaped(walks()))).learn(32, callback=CheckShaping())

    def test_also_between_two_shapings(self, walks):
        with pytest.raises(ValueError, match=r"a wrapper outside \(Halve\) changes rewards"):
            ppo(shaped(Halve(shaped(walks())))).learn(32, callback=CheckShaping())
        ppo(shaped(shaped(walks()))).learn(32, callback=CheckShaping())

    def test_normalisation_inside_loses_the_shaping_off_policy_and_is_refused(self, walks):
        """SB3 stores what VecNormalize was given: the reward without the shaping."""
        options = {"gamma": GAMMA, "learning_starts": 8, "buffer_size": 64, "train_freq": 4}
        env = shaped(normalised(walks()), observe_debt=True)
        with pytest.raises(ValueError, match=r"VecNormalize is inside the shaping.*without the shaping"):
            DQN("MlpPolicy", env, **options).learn(16, callback=CheckShaping())
        env = unrewarded(shaped(walks(), observe_debt=True))
        model = DQN("MlpPolicy", env, **options)
        model.learn(16, callback=CheckShaping())
        np.testing.assert_allclose(model.replay_buffer.rewards[model.replay_buffer.pos - 1], env.venv.paid, rtol=1e-6)


class Cast(VecEnvWrapper):
    """Pays the same rewards in another dtype."""

    def __init__(self, venv, dtype):
        super().__init__(venv)
        self.dtype = dtype

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        return obs, reward.astype(self.dtype), done, infos


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_what_is_paid_is_the_sum_whatever_the_rewards_dtype(dtype):
    """SubprocVecEnv stacks Python integers to int64, in which loans of 0.3 would be 0."""
    venv = Cast(DummyVecEnv([lambda: Corridor(5)] * 2), dtype)
    env = ShapeVectorReward(venv, lambda *t: np.full(2, 0.3), payback.match_at_end(GAMMA), learner_gamma=GAMMA)
    env.reset()
    rows = [env.step(np.ones(2, int)) for _ in range(5)]
    paid = np.array([row[1] for row in rows])
    assert paid.dtype == (np.float64 if dtype == "float64" else np.float32)
    np.testing.assert_allclose(paid, [[i["extrinsic"] + i["shaped"] for i in row[3]] for row in rows], rtol=1e-6)
    np.testing.assert_allclose(paid[:4], 1.3, rtol=1e-6)
    np.testing.assert_allclose(GAMMA ** np.arange(5) @ (paid - 1), 0, atol=1e-5)


def test_the_learner_is_given_the_sum_of_integer_rewards():
    venv = Cast(DummyVecEnv([lambda: Corridor(4)] * 2), np.int64)
    env = ShapeVectorReward(venv, lambda *t: np.full(2, 0.3), payback.match_at_end(GAMMA))
    model = ppo(env)
    model.learn(model.n_steps * 2, callback=CheckShaping())
    paid = model.rollout_buffer.rewards[:4]
    np.testing.assert_allclose(paid[:3], 1.3, rtol=1e-6)
    np.testing.assert_allclose(GAMMA ** np.arange(4) @ (paid - 1), 0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_bonus_of_half_precision_is_lent_as_the_number_it_holds(dtype):
    bonus = torch.full((2,), 0.1, dtype=dtype, requires_grad=True)
    env = ShapeVectorReward(
        DummyVecEnv([lambda: Corridor(3)] * 2), lambda *t: bonus * 1, payback.match_at_end(GAMMA), learner_gamma=GAMMA
    )
    env.reset()
    shaped = [env.step(np.ones(2, int))[3][0]["shaped"] for _ in range(3)]
    assert shaped[0] == float(bonus[0].detach())
    assert GAMMA ** np.arange(3) @ shaped == pytest.approx(0, abs=1e-12)
