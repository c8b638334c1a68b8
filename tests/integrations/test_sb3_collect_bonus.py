"""The advantage-side form in Stable-Baselines3's own training loops: what is added, what is left alone, bad stacks."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper, VecNormalize

import payback
from payback import ShapingWarning
from payback.bonuses import EpisodicCount
from payback.check.advantage import advantage_by_loops
from payback.integrations.gymnasium import ShapeReward
from payback.integrations.sb3 import CheckShaping, CollectBonus, ShapeVectorReward, Unshaped

GAMMA, LAM, DELAY, N = 0.9, 0.8, 3, 16
ADV = payback.grm_adv(GAMMA, DELAY, LAM)
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Look(BaseCallback):
    """What the buffer holds after CheckShaping, rollout by rollout, with the collected rows."""

    def __init__(self, wrapper=None):
        super().__init__()
        self.wrapper, self.seen = wrapper, []

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        b = self.model.rollout_buffer
        rows = [np.stack(column) for column in zip(*self.wrapper.rows, strict=True)] if self.wrapper else None
        weight = self.model.num_timesteps - self.model.n_steps * self.model.n_envs, self.model._total_timesteps
        self.seen.append(
            (b.advantages - (b.returns - b.values), b.returns.copy(), rows, weight, b.episode_starts.copy())
        )


class Masked(gym.Wrapper):
    def action_masks(self):
        return np.ones(2, dtype=bool)


class InDict(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict({"at": env.observation_space})

    def observation(self, observation):
        return {"at": observation}


def moves(obs, actions, next_obs, infos):
    return np.abs(next_obs - obs).sum(axis=-1)


SMALL = {"gamma": GAMMA, "n_steps": N, "seed": 0}
KINDS = {
    "PPO": (PPO, "MlpPolicy", {"batch_size": 16, "n_epochs": 2}, lambda env: env),
    "A2C": (A2C, "MlpPolicy", {}, lambda env: env),
    "RecurrentPPO": (RecurrentPPO, "MlpLstmPolicy", {"batch_size": 16, "n_epochs": 1}, lambda env: env),
    "MaskablePPO": (MaskablePPO, "MlpPolicy", {"batch_size": 16, "n_epochs": 1}, Masked),
    "PPO, dict": (PPO, "MultiInputPolicy", {"batch_size": 16, "n_epochs": 1}, InDict),
}


def made(kind, walk, bonus="novelty", estimator=ADV, envs=3, collects=True, wrap=lambda env: env, **options):
    algorithm, policy, own, inner = KINDS[kind]
    env = make_vec_env(lambda: inner(walk()), n_envs=envs, seed=1)
    env = CollectBonus(env, bonus, estimator, **options) if collects else env
    return algorithm(policy, wrap(env), **SMALL, **own), env


def learned(model, env, steps=3 * 3 * N, callback=None, **options):
    look = Look(env if isinstance(env, CollectBonus) else None)
    checks = [CheckShaping()] if isinstance(env, CollectBonus) else []
    model.learn(steps, callback=CallbackList([*checks, *([callback] if callback else []), look]), **options)
    return look.seen


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.policy.parameters()])


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_is_what_the_definition_says(kind, on_truncation, walk):
    """Over four rollouts, with episodes over their borders, terminated and cut; the returns are the task's alone."""
    estimator = payback.grm_adv(GAMMA, DELAY, LAM, on_truncation=on_truncation)
    model, env = made(kind, walk, estimator=estimator)
    seen, earlier = learned(model, env, 4 * 3 * N), np.zeros(0)
    assert len(seen) == 4
    for added, _, (F, dones, truncated, _), _, _ in seen:
        options = {"truncated": truncated, "on_truncation": on_truncation, "earlier": earlier}
        expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, **options)
        np.testing.assert_allclose(added, expected, atol=1e-5)
        earlier = np.append(earlier, F)
    cuts = np.concatenate([rows[2] for _, _, rows, _, _ in seen])
    ends = np.concatenate([rows[1] for _, _, rows, _, _ in seen])
    assert cuts.any()
    assert (ends & ~cuts).any()
    assert not all(rows[1][-1].all() for _, _, rows, _, _ in seen)  # some episode goes over a border


@pytest.mark.parametrize("kind", KINDS)
def test_no_bonus_is_the_plain_algorithm_to_the_bit(kind, walk):
    nothing = lambda obs, actions, next_obs, infos: np.zeros(3)  # noqa: E731
    trained = []
    for collects in (False, True):
        model, env = made(kind, walk, bonus=nothing, collects=collects)
        seen = learned(model, env)
        trained.append((parameters(model), np.stack([returns for _, returns, *_ in seen])))
    assert torch.equal(trained[0][0], trained[1][0])
    np.testing.assert_array_equal(trained[0][1], trained[1][1])


def test_a_weight_of_0_is_the_plain_algorithm_and_a_bonus_is_not(walk):
    trained = []
    for options in ({"collects": False}, {"weight": lambda progress: 0.0}, {}):
        model, env = made("PPO", walk, **options)
        learned(model, env)
        trained.append(parameters(model))
    assert torch.equal(trained[0], trained[1])
    assert not torch.equal(trained[0], trained[2])


def test_a_weight_scales_what_is_added(walk):
    model, env = made("PPO", walk, weight=lambda progress: 0.25)
    ((added, _, (F, dones, truncated, _), *_),) = learned(model, env, 3 * N)
    expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, truncated=truncated)
    np.testing.assert_allclose(added, expected / 4, atol=1e-5)


def test_a_run_is_repeatable(walk):
    trained = []
    for _ in range(2):
        model, env = made("PPO", walk)
        learned(model, env)
        trained.append(parameters(model))
    assert torch.equal(*trained)


def test_it_resumes_with_its_mean_and_its_schedule(walk, tmp_path):
    model, env = made("PPO", walk, weight=payback.taken_back)
    earlier = np.concatenate([rows[0].ravel() for _, _, rows, *_ in learned(model, env, 2 * 3 * N)])
    model.save(tmp_path / "model")
    count = int(env.bonus_state.count)
    assert count == 2 * 3 * N
    _, again = made("PPO", walk, weight=payback.taken_back)
    loaded = PPO.load(tmp_path / "model", env=again)
    seen = learned(loaded, again, 2 * 3 * N, reset_num_timesteps=False)
    assert int(again.bonus_state.count) == 2 * count
    assert [done / total for *_, (done, total), _ in seen] == [0.5, 0.75]
    added, _, (F, dones, truncated, _), *_ = seen[0]
    given = {"gamma": GAMMA, "delay": DELAY, "lam": LAM, "truncated": truncated}
    np.testing.assert_allclose(added, advantage_by_loops(F, dones, earlier=earlier, **given)[0], atol=1e-5)
    assert np.abs(added - advantage_by_loops(F, dones, **given)[0]).max() > 0.1


def test_it_is_taken_back_to_exactly_zero(walk):
    model, env = made("PPO", walk, weight=payback.taken_back)
    logger = configure(None, [])
    model.set_logger(logger)
    weights = []

    class Weights(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_end(self):
            weights.append(self.logger.name_to_value["shaping/weight"])

    seen = learned(model, env, 16 * 3 * N, callback=Weights())
    assert weights[:11] == [1.0] * 11
    assert 0 < weights[12] < weights[11] < 1
    assert weights[14:] == [0.0, 0.0]
    np.testing.assert_allclose(seen[-1][0], 0, atol=1e-5)
    assert int(env.bonus_state.count) == 16 * 3 * N


def test_a_bonus_taken_back_stays_at_zero_when_training_goes_on(walk, tmp_path):
    model, env = made("PPO", walk, weight=payback.taken_back)
    learned(model, env, 16 * 3 * N)
    model.save(tmp_path / "model")
    for going_on in (model, PPO.load(tmp_path / "model", env=env)):
        seen = learned(going_on, env, 4 * 3 * N, reset_num_timesteps=False)
        assert max(np.abs(added).max() for added, *_ in seen) < 1e-5
    seen = learned(model, env, 4 * 3 * N)  # a training of its own begins with the bonus
    assert np.abs(seen[0][0]).max() > 0.1


def test_the_rows_agree_with_the_buffer(walk):
    model, env = made("PPO", walk)
    for _, _, (_, dones, _, _), _, starts in learned(model, env):
        np.testing.assert_array_equal(starts[1:], dones[:-1])


def test_several_processes(walk):
    env = CollectBonus(make_vec_env(walk, n_envs=2, vec_env_cls=SubprocVecEnv), "novelty", ADV)
    try:
        seen = learned(PPO("MlpPolicy", env, **SMALL, batch_size=16, n_epochs=1), env, 2 * N)
        expected, _ = advantage_by_loops(*seen[0][2][:2], gamma=GAMMA, delay=DELAY, lam=LAM)
        np.testing.assert_allclose(seen[0][0], expected, atol=1e-5)
    finally:
        env.close()


def test_ppo_normalises_the_sum(walk):
    """Where the task pays nothing and its critic expects nothing, a tenth of the bonus teaches the same."""

    class Unpaid(VecEnvWrapper):
        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            obs, reward, done, infos = self.venv.step_wait()
            return obs, 0 * reward, done, infos

    def after(size, normalize):
        env = CollectBonus(
            Unpaid(make_vec_env(walk, n_envs=3, seed=1)), lambda o, a, n, i: size * moves(o, a, n, i), ADV
        )
        model = PPO("MlpPolicy", env, **SMALL, batch_size=16, n_epochs=1, normalize_advantage=normalize)
        for parameter in model.policy.value_net.parameters():
            parameter.data.zero_()
        learned(model, env, 3 * N)
        return parameters(model)

    with_it, without = ([after(size, normalize) for size in (1.0, 0.1)] for normalize in (True, False))
    torch.testing.assert_close(*with_it, rtol=0, atol=1e-5)
    assert not torch.allclose(*without, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::payback.ShapingWarning")
def test_the_bonus_sees_transitions_and_resets(walk):
    """An episodic count begins anew with each episode, as under ShapeVectorReward."""
    found = []
    for make in (
        lambda env: CollectBonus(env, EpisodicCount(key=lambda obs: np.round(obs).tobytes()), ADV),
        lambda env: ShapeVectorReward(
            env, EpisodicCount(key=lambda obs: np.round(obs).tobytes()), payback.grm(GAMMA, 3), learner_gamma=GAMMA
        ),
    ):
        env = make(make_vec_env(walk, n_envs=2, seed=1))
        env.reset()
        bonuses = []
        for _ in range(40):
            infos = env.step(np.zeros(2, int))[3]
            bonuses.append([(info["extrinsic"], info["intrinsic"]) for info in infos])
        found.append(bonuses)
    assert found[0] == found[1]


def test_the_log_has_figures(walk):
    model, env = made("PPO", walk)
    logged = {}

    class Values(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_end(self):
            logged.update(self.logger.name_to_value)

    learned(model, env, 3 * N, callback=Values())
    F = np.stack([row[0] for row in env.rows])
    assert logged["shaping/intrinsic"] == pytest.approx(F.mean())
    assert logged["shaping/mean"] == pytest.approx(F.mean())
    assert logged["shaping/extrinsic"] == pytest.approx(np.stack([row[3] for row in env.rows]).mean(), rel=1e-6)
    assert logged["shaping/weight"] == 1.0
    assert logged["shaping/bonus_advantage"] > 0
    assert logged["shaping/task_advantage"] > 0


def test_it_evaluates_in_unshaped(walk):
    model, env = made("PPO", walk)
    evaluate = EvalCallback(Unshaped(make_vec_env(walk)), eval_freq=N, verbose=0)
    learned(model, env, 3 * N, callback=evaluate)
    assert np.isfinite(evaluate.last_mean_reward)


# ------------------------------------------------------------------ bad stacks


class LateDone(VecEnvWrapper):
    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        return obs, reward, done & False, infos


class Scaled(LateDone):
    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        return obs, 100 * reward, done, infos


class NoLimit(LateDone):
    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        return obs, reward, done, [{**info, "TimeLimit.truncated": False} for info in infos]


def stack(walk, wrap):
    return wrap(make_vec_env(walk, n_envs=3, seed=1))


REFUSED = {
    "another gamma": (
        lambda venv: CollectBonus(venv, "novelty", payback.grm_adv(0.99, 3, 0.8)),
        "discounts with gamma 0.9, grm_adv with gamma 0.99",
    ),
    "VecNormalize outside": (lambda venv: VecNormalize(CollectBonus(venv, "novelty", ADV)), "VecNormalize outside"),
    "shaped, too": (
        lambda venv: CollectBonus(ShapeVectorReward(venv, "novelty", payback.grm(GAMMA, 3)), "novelty", ADV),
        "ShapeVectorReward and CollectBonus in one stack",
    ),
    "shaped outside": (
        lambda venv: ShapeVectorReward(CollectBonus(venv, "novelty", ADV), "novelty", payback.grm(GAMMA, 3)),
        "ShapeVectorReward and CollectBonus in one stack",
    ),
    "collected twice": (
        lambda venv: CollectBonus(CollectBonus(venv, "novelty", ADV), "novelty", ADV),
        "pay a bonus twice",
    ),
    "ends hidden": (lambda venv: LateDone(CollectBonus(venv, "novelty", ADV)), r"\(LateDone\) changes `done`"),
    "rewards scaled": (lambda venv: Scaled(CollectBonus(venv, "novelty", ADV)), r"\(Scaled\) changes the reward"),
    "limits hidden": (lambda venv: NoLimit(CollectBonus(venv, "novelty", ADV)), r"changes TimeLimit\.truncated"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_what_pays_twice_or_spoils_it(name, walk):
    wrap, words = REFUSED[name]
    model = PPO("MlpPolicy", stack(walk, wrap), **SMALL, batch_size=16, n_epochs=1)
    with pytest.raises(ValueError, match=words):
        model.learn(3 * N, callback=CheckShaping())


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_it_refuses_environments_that_are_shaped_themselves(kind, walk):
    def shaped():
        return gym.Wrapper(ShapeReward(walk(), "novelty", payback.grm(GAMMA, 3), learner_gamma=GAMMA))

    env = CollectBonus(make_vec_env(shaped, n_envs=2, vec_env_cls=kind), "novelty", ADV)
    try:
        with pytest.raises(ValueError, match="ShapeReward and CollectBonus in one stack pay a bonus twice"):
            PPO("MlpPolicy", env, **SMALL, batch_size=16).learn(2 * N, callback=CheckShaping())
    finally:
        env.close()


def test_vecnormalize_of_observations_outside_is_right(walk):
    model, env = made("PPO", walk, wrap=lambda env: VecNormalize(env, norm_reward=False))
    seen = learned(model, env, 3 * N)
    expected, _ = advantage_by_loops(*seen[0][2][:2], gamma=GAMMA, delay=DELAY, lam=LAM)
    np.testing.assert_allclose(seen[0][0], expected, atol=1e-5)


def test_a_gamma_that_changes_while_training_is_refused(walk):
    class Change(BaseCallback):
        def _on_step(self):
            self.model.gamma = 0.5
            return True

    model, env = made("PPO", walk)
    with pytest.raises(ValueError, match=r"gamma 0\.5"):
        learned(model, env, callback=Change())


def test_a_replay_buffer_has_no_advantages(walk):
    env = stack(walk, lambda venv: CollectBonus(venv, "novelty", ADV))
    model = DQN("MlpPolicy", env, gamma=GAMMA, learning_starts=1000)
    with pytest.raises(ValueError, match="DQN has no rollout buffer"):
        model.learn(30, callback=CheckShaping())


def test_wrong_arguments_get_one_sentence(walk):
    venv = make_vec_env(walk)
    with pytest.raises(TypeError, match="needs an estimator"):
        CollectBonus(venv, "novelty", payback.grm(GAMMA, 3))
    with pytest.raises(TypeError, match="weight must be a function"):
        CollectBonus(venv, "novelty", ADV, weight=0.5)
    with pytest.raises(TypeError, match="wraps a VecEnv"):
        CollectBonus(walk(), "novelty", ADV)
    with pytest.raises(KeyError, match="no 'newness' for environment 0 at step 0"):
        made("PPO", walk, bonus="newness")[0].learn(N)


def test_without_the_callback_it_warns_once_and_collects_nothing(walk):
    model, env = made("PPO", walk)
    with pytest.warns(ShapingWarning, match="callback=CheckShaping") as warned:
        model.learn(3 * 3 * N)
    assert len(warned) == 1
    assert env.rows == []


def test_a_second_checkshaping_is_refused(walk):
    model, _ = made("PPO", walk)
    with pytest.raises(ValueError, match="would add the bonus twice"):
        model.learn(3 * N, callback=[CheckShaping(), CheckShaping()])


def test_another_gamma_is_reported_once_where_it_is_not_strict(walk):
    model, _ = made("PPO", walk, estimator=payback.grm_adv(0.99, 3, 0.8))
    with pytest.warns(ShapingWarning, match=r"gamma 0\.9, grm_adv with gamma 0\.99") as warned:
        model.learn(3 * 3 * N, callback=CheckShaping(strict=False))
    assert len(warned) == 1


def test_steps_that_the_learner_did_not_take_are_noticed(walk):
    class Step(BaseCallback):
        def _on_step(self):
            if self.n_calls == 3:
                self.training_env.step(np.zeros(3, int))
            return True

    model, env = made("PPO", walk)
    with pytest.raises(RuntimeError, match="collected 17 steps of 3 environments"):
        learned(model, env, callback=Step())


def test_a_model_of_another_wrapper_warns_that_the_mean_is_new(walk, tmp_path):
    model, _ = made("PPO", walk, collects=False)
    model.learn(3 * N)
    model.save(tmp_path / "plain")
    _, env = made("PPO", walk)
    with pytest.warns(ShapingWarning, match="the mean of the bonus starts anew"):
        PPO.load(tmp_path / "plain", env=env).learn(3 * N, callback=CheckShaping())
