"""The Stable-Baselines3 wrapper in real training runs: PPO, A2C, recurrent and maskable PPO, DQN."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
import gymnasium as gym
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize

import payback
from payback import ShapingWarning
from payback.integrations import gymnasium
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward, load_model, save_model

GAMMA = 0.99
EMPTY = "MiniGrid-Empty-5x5-v0"
EXAMPLE = Path(__file__).parents[2] / "examples" / "sb3_ppo_minigrid.py"
SIX = {
    "pbim": payback.pbim(GAMMA),
    "pbim-raw": payback.pbim(GAMMA, center=False),
    "grm-1": payback.grm(GAMMA, 1),
    "grm-1-raw": payback.grm(GAMMA, 1, center=False),
    "grm-10": payback.grm(GAMMA, 10),
    "grm-10-raw": payback.grm(GAMMA, 10, center=False),
}
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def example():
    spec = importlib.util.spec_from_file_location("sb3_ppo_minigrid", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Log(BaseCallback):
    """Keeps what the learner's own rollout buffer was given, and the environments' infos beside it."""

    def __init__(self):
        super().__init__()
        self.infos, self.done, self.reward = [], [], []

    def _on_step(self):
        self.infos.append(self.locals["infos"])
        self.done.append(self.locals["dones"])
        return True

    def _on_rollout_end(self):
        self.reward.extend(self.model.rollout_buffer.rewards.copy())

    def column(self, key):
        return np.array([[info[key] for info in infos] for infos in self.infos])

    def episodes(self):
        """Yield (shaped rewards as the learner got them, extrinsic rewards) of each finished episode."""
        shaped, done = np.array(self.reward) - self.column("extrinsic"), np.array(self.done)
        for k in range(done.shape[1]):
            begin = 0
            for end in np.flatnonzero(done[:, k]) + 1:
                yield shaped[begin:end, k], self.column("extrinsic")[begin:end, k]
                begin = end


def assert_law(log, least):
    episodes = [shaped for shaped, _ in log.episodes()]
    assert len(episodes) >= least
    for shaped in episodes:
        weights = GAMMA ** np.arange(len(shaped))
        assert abs(weights @ shaped) <= 1e-5 * (weights @ np.abs(shaped)) + 1e-12
    assert max(np.abs(shaped).max() for shaped in episodes) > 0.01


@pytest.mark.slow
def test_ppo_learns_minigrid_and_keeps_the_law():
    log = Log()
    model = example().train(SIX["grm-10"], 16_000, name=EMPTY, callbacks=(log,))
    assert_law(log, least=300)
    returns = [extrinsic.sum() for _, extrinsic in log.episodes()]
    monitored = [episode["r"] for episode in model.ep_info_buffer]
    assert np.mean(monitored) > 0.9
    by_end = np.sort(returns)[-len(monitored) :]
    assert min(monitored) >= 0
    assert np.mean(monitored) <= by_end.mean() + 1e-6, "Monitor must go on reporting the extrinsic return"


@pytest.mark.parametrize("name", SIX)
def test_every_scheme_keeps_the_law_in_training(name):
    log = Log()
    example().train(SIX[name], 2048, seed=1, name=EMPTY, callbacks=(log,))
    assert_law(log, least=10)
    assert log.column("truncated").any(), "the run must meet the time limit too"


def shaped_walks(walk, distance, transform=None, hazard=0.2, envs=3, **options):
    env = make_vec_env(lambda: walk(hazard), n_envs=envs, seed=5)
    return ShapeVectorReward(env, distance, transform or payback.grm(GAMMA, 3), **options)


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_it_pays_what_the_gymnasium_wrapper_pays(walk, distance, on_truncation):
    options = {"on_truncation": on_truncation, "observe_debt": True}
    ours = shaped_walks(walk, distance, **options)
    theirs = SyncVectorEnv([walk] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    theirs = gymnasium.ShapeVectorReward(theirs, distance, payback.grm(GAMMA, 3), **options)
    np.testing.assert_allclose(ours.reset(), theirs.reset(seed=5)[0])
    chance, cut = np.random.default_rng(0), 0
    for _ in range(100):
        actions = chance.integers(2, size=3)
        obs, reward, done, infos = ours.step(actions)
        expected = theirs.step(actions)
        np.testing.assert_allclose(obs, expected[0], rtol=1e-6)
        np.testing.assert_allclose(reward, expected[1], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(done, expected[2] | expected[3])
        for k, info in enumerate(infos):
            # SB3 does not say that a step was truncated if it was terminated as well.
            assert info["TimeLimit.truncated"] == (expected[3][k] and not expected[2][k])
            assert info["truncated"] <= expected[4]["truncated"][k]
            for key in ("intrinsic", "shaped", "owed"):
                assert info[key] == pytest.approx(expected[4][key][k], abs=1e-5)
            if done[k]:
                np.testing.assert_allclose(info["terminal_observation"], expected[4]["final_obs"][k], rtol=1e-6)
            cut += info["truncated"]
    assert cut > 5


def test_recurrent_ppo(walk, distance):
    env, log = shaped_walks(walk, distance), Log()
    model = RecurrentPPO("MlpLstmPolicy", env, gamma=GAMMA, n_steps=64, batch_size=96, n_epochs=1,
                         policy_kwargs={"lstm_hidden_size": 16})  # fmt: skip
    model.learn(600, callback=[CheckShaping(), log])
    assert_law(log, least=50)


class Masked(gym.Wrapper):
    def action_masks(self):
        return np.array([True, False])


@pytest.mark.parametrize("kind", [A2C, MaskablePPO])
def test_other_learners_of_rollouts(kind, walk, distance):
    env, log = shaped_walks(lambda hazard: Masked(walk(hazard)), distance), Log()
    own = {"batch_size": 96, "n_epochs": 1} if kind is MaskablePPO else {}
    kind("MlpPolicy", env, gamma=GAMMA, n_steps=64, **own).learn(600, callback=[CheckShaping(), log])
    assert_law(log, least=50)


def test_ppo_with_a_carried_debt_in_sight(walk, distance):
    env, log = shaped_walks(walk, distance, hazard=0.0, on_truncation="carry", observe_debt=True), Log()
    PPO("MlpPolicy", env, gamma=GAMMA, n_steps=64, batch_size=96, n_epochs=1).learn(600, [CheckShaping(), log])
    assert env.observation_space.shape == (3,)
    assert log.column("TimeLimit.truncated").sum() > 50


def test_dqn_replays_what_was_paid(walk, distance):
    env = shaped_walks(walk, distance, hazard=0.1, observe_debt=True)
    model = DQN("MlpPolicy", env, gamma=GAMMA, learning_starts=50, buffer_size=400, train_freq=8)
    log = Log()
    log._on_rollout_end = lambda: None
    model.learn(300, callback=[CheckShaping(), log])
    steps, buffer = len(log.infos), model.replay_buffer
    paid = log.column("extrinsic") + log.column("shaped")
    np.testing.assert_allclose(buffer.rewards[:steps], paid, rtol=1e-5, atol=1e-5)
    assert log.column("truncated").any()
    assert not buffer.timeouts.any(), "no bootstrapping past a settled debt"
    np.testing.assert_array_equal(buffer.dones[:steps], np.array(log.done))


class TestCheckShaping:
    def learn(self, env, callback, gamma=GAMMA):
        PPO("MlpPolicy", env, gamma=gamma, n_steps=8, batch_size=24, n_epochs=1).learn(24, callback=callback)

    def test_another_gamma_is_refused(self, walk, distance):
        env = shaped_walks(walk, distance)
        with pytest.raises(ValueError, match=r"gamma 0.95, the loans are repaid with gamma 0.99.*strict=False"):
            self.learn(env, CheckShaping(), gamma=0.95)
        with pytest.warns(ShapingWarning, match="gamma 0.95"):
            self.learn(env, CheckShaping(strict=False), gamma=0.95)

    def test_reward_normalisation_outside_is_refused(self, walk, distance):
        with pytest.raises(ValueError, match="VecNormalize outside the shaping"):
            self.learn(VecNormalize(shaped_walks(walk, distance)), CheckShaping())

    def test_normalisation_of_observations_or_inside_is_fine(self, walk, distance):
        self.learn(VecNormalize(shaped_walks(walk, distance), norm_reward=False), CheckShaping())
        inside = ShapeVectorReward(VecNormalize(make_vec_env(walk, n_envs=3)), distance, SIX["grm-1"])
        self.learn(inside, CheckShaping())
        assert inside.monitor.finished > 0
        assert inside.monitor.broken == 0

    def test_a_wrapper_outside_that_changes_rewards_is_refused(self, walk, distance):
        class Halve(VecEnvWrapper):
            def reset(self):
                return self.venv.reset()

            def step_wait(self):
                obs, reward, done, infos = self.venv.step_wait()
                return obs, reward / 2, done, infos

        env = Halve(shaped_walks(walk, distance))
        with pytest.raises(ValueError, match=r"the learner is given .*a wrapper outside \(Halve\) changes rewards"):
            self.learn(env, CheckShaping())
        with pytest.warns(ShapingWarning, match="a wrapper outside") as said:
            self.learn(Halve(shaped_walks(walk, distance)), CheckShaping(strict=False))
        assert len([w for w in said if "a wrapper outside" in str(w.message)]) == 1

    def test_no_wrapper_is_refused(self, walk):
        with pytest.raises(ValueError, match="no ShapeVectorReward"):
            self.learn(make_vec_env(walk, n_envs=3), CheckShaping())


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_the_shaping_state_travels_with_the_model(walk, distance, tmp_path):
    env = shaped_walks(walk, distance)
    model = PPO("MlpPolicy", env, gamma=GAMMA, n_steps=32, batch_size=96, n_epochs=1).learn(96)
    save_model(model, tmp_path / "model")
    before = env.shaping_state.loans
    fresh = shaped_walks(walk, distance)
    again = load_model(PPO, tmp_path / "model", fresh)
    assert fresh.shaping_state.loans[0] == before[0]
    np.testing.assert_array_equal(fresh.owed, env.owed)
    assert np.any(fresh.owed != 0)
    again.learn(96, reset_num_timesteps=False)
    assert int(fresh.shaping_state.loans[0].count) == 2 * 96
    assert fresh.monitor.drops > 0
    model.save(tmp_path / "plain")
    with pytest.raises(ValueError, match="without a shaping state"):
        load_model(PPO, tmp_path / "plain", shaped_walks(walk, distance))


def test_bad_input_names_environment_and_step(walk):
    for intrinsic, error, words in (
        (lambda *transition: np.ones((3, 1)), ValueError, r"step 0 has shape \(3, 1\)"),
        (lambda *transition: [0.0, np.inf, 0.0], ValueError, "environment 1 at step 0 is inf"),
        (lambda *transition: 1 / 0, RuntimeError, "ZeroDivisionError at step 0"),
        ("curiosity", KeyError, "'curiosity' for environment 0 at step 0"),
    ):
        env = shaped_walks(walk, intrinsic)
        env.reset()
        with pytest.raises(error, match=words):
            env.step(np.zeros(3, dtype=int))
