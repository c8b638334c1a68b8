"""Stable-Baselines3: what changes rewards, ends or γ around the shaping while training runs."""

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.atari_wrappers import ClipRewardEnv, MaxAndSkipEnv
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecFrameStack, VecMonitor, VecNormalize

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward

from .corridor import Corridor

GAMMA = 0.9
GRM = payback.grm(GAMMA, 3)


def shaped(**options):
    return ShapeVectorReward(DummyVecEnv([lambda n=n: Corridor(n) for n in (5, 7)]), "bonus", GRM, **options)


def shaped_alone():
    return ShapeReward(Corridor(6), "bonus", GRM, learner_gamma=GAMMA)


def trained(env, *callbacks, kind=PPO, model=None, **options):
    """Return what was said while a model was trained."""
    sizes = {"n_steps": 16, "batch_size": 16, "n_epochs": 1} if kind is PPO else {"learning_starts": 999}
    sizes.update(model or {})
    model = kind("MlpPolicy", env, gamma=GAMMA, seed=0, device="cpu", policy_kwargs={"net_arch": [2]}, **sizes)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.learn(96, callback=list(callbacks), **options)
    return [str(word.message) for word in said if word.category is ShapingWarning]


class AddOne(BaseCallback):
    """Adds a bonus of its own to the rewards that the learner is about to store."""

    def _on_step(self):
        self.locals["rewards"] += 1.0
        return True


class ChangeGamma(BaseCallback):
    """Anneals γ."""

    def _on_step(self):
        self.model.gamma = 0.5
        return True


class Cut(VecEnvWrapper):
    """Ends the learner's episodes every fourth step, and goes on inside."""

    def reset(self):
        self.steps = 0
        return self.venv.reset()

    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        self.steps += 1
        if self.steps % 4 == 0:
            done = np.ones_like(done)
            for row, info in zip(obs, infos, strict=True):
                info.setdefault("terminal_observation", row)
        return obs, reward, done, infos


@pytest.mark.parametrize(
    ("make", "callback", "words"),
    [
        (shaped, AddOne, "another callback changes rewards"),
        (shaped, ChangeGamma, "the learner discounts with gamma 0.5"),
        (lambda: Cut(shaped()), None, "ends for the learner, not for the shaping: a wrapper outside .Cut."),
    ],
)
def test_what_changes_during_training_is_refused_or_said_once(make, callback, words):
    others = [] if callback is None else [callback()]
    with pytest.raises(ValueError, match=words):
        trained(make(), CheckShaping(), *others)
    said = trained(make(), CheckShaping(strict=False), *([] if callback is None else [callback()]))
    assert len(said) == 1
    assert re.search(words, said[0])


def test_a_replay_buffer_is_looked_at_too():
    with pytest.raises(ValueError, match="another callback changes rewards"):
        trained(shaped(observe_debt=True), CheckShaping(), AddOne(), kind=DQN)


class ChangeBuffer(BaseCallback):
    """Adds to what a rollout collected, in place or by a new array."""

    def __init__(self, column, in_place=True):
        super().__init__()
        self.column, self.in_place = column, in_place

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        buffer = getattr(self.model, "replay_buffer", None) or self.model.rollout_buffer
        values = getattr(buffer, self.column)
        if self.in_place:
            values += 0.1
        else:
            setattr(buffer, self.column, values + np.float32(0.1))


class SignBuffer(RolloutBuffer):
    def add(self, obs, action, reward, *rest):
        super().add(obs, action, np.sign(reward), *rest)


class ClipBuffer(ReplayBuffer):
    def add(self, obs, next_obs, action, reward, *rest):
        super().add(obs, next_obs, action, np.clip(reward, -1, 1), *rest)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("column", ["rewards", "advantages"])
def test_a_callback_that_changes_the_rollout_buffer_is_reported_once(column, first, in_place):
    """What a later callback assigns anew is out of sight: CheckShaping belongs last."""

    def callbacks(**options):
        others = [ChangeBuffer(column, in_place), CheckShaping(**options)]
        return others if first else others[::-1]

    if not first and not in_place:
        assert trained(shaped(), *callbacks()) == []
        return
    with pytest.raises(ValueError, match=f"another callback changes (the )?{column}"):
        trained(shaped(), *callbacks())
    assert len(trained(shaped(), *callbacks(strict=False))) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_callback_that_changes_the_replay_buffer_is_reported(first):
    callbacks = [ChangeBuffer("rewards"), CheckShaping()]
    with pytest.raises(ValueError, match=r"another callback changes (the )?rewards"):
        trained(shaped(observe_debt=True), *(callbacks if first else callbacks[::-1]), kind=DQN)


def test_a_buffer_that_changes_rewards_is_reported():
    with pytest.raises(ValueError, match=r"because the buffer \(SignBuffer\) changes rewards"):
        trained(shaped(), CheckShaping(), model={"rollout_buffer_class": SignBuffer})
    with pytest.raises(ValueError, match=r"because the buffer \(ClipBuffer\) changes rewards"):
        trained(shaped(observe_debt=True), CheckShaping(), kind=DQN, model={"replay_buffer_class": ClipBuffer})


def test_a_replay_buffer_that_wraps_around_is_silent():
    small = {"buffer_size": 22, "train_freq": 16}
    assert trained(shaped(observe_debt=True), CheckShaping(), kind=DQN, model=small) == []


def test_an_n_step_buffer_with_another_gamma_is_refused():
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    if not hasattr(buffers, "NStepReplayBuffer"):
        pytest.skip("Stable-Baselines3 has it since 2.7")
    n_step = {"replay_buffer_class": buffers.NStepReplayBuffer, "replay_buffer_kwargs": {"n_steps": 3, "gamma": 0.5}}
    with pytest.raises(ValueError, match=r"NStepReplayBuffer adds up n steps with gamma 0\.5"):
        trained(shaped(observe_debt=True), CheckShaping(), kind=DQN, model=n_step)


def test_a_carried_debt_needs_a_buffer_that_handles_time_limits():
    def train(on_truncation):
        env = shaped(observe_debt=True, on_truncation=on_truncation)
        model = {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
        return trained(env, CheckShaping(), kind=DQN, model=model)

    with pytest.raises(ValueError, match=r"handle_timeout_termination=False.*never repaid"):
        train("carry")
    assert train("settle") == []


class Truncates(VecEnvWrapper):
    """Sets SB3's mark of a time limit at every end."""

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, reward, done, infos = self.venv.step_wait()
        for info in infos:
            info["TimeLimit.truncated"] = True
        return obs, reward, done, infos


def test_a_wrapper_outside_that_sets_the_time_limit_back_is_reported():
    with pytest.raises(ValueError, match=r"a wrapper outside \(Truncates\) changes TimeLimit\.truncated"):
        trained(Truncates(shaped()), CheckShaping())


def test_an_algorithm_that_hides_its_rewards_is_reported_once():
    contrib = pytest.importorskip("sb3_contrib")
    env = ShapeVectorReward(DummyVecEnv([lambda: Corridor(5)] * 2), "bonus", payback.grm(1.0, 3))
    with pytest.warns(ShapingWarning, match="ARS shows its callbacks no rewards") as said:
        contrib.ARS("LinearPolicy", env, n_delta=2, seed=0).learn(60, callback=CheckShaping())
    assert len(said) == 1


def test_a_new_wrapper_around_episodes_under_way_says_so():
    def shape(venv):
        return ShapeVectorReward(venv, "bonus", payback.match_after(GAMMA, 3), learner_gamma=GAMMA)

    venv = DummyVecEnv([lambda: Corridor(9)] * 2)
    model = PPO("MlpPolicy", shape(venv), gamma=GAMMA, n_steps=16, batch_size=16, device="cpu").learn(32)
    model.set_env(shape(venv), force_reset=False)
    with pytest.raises(RuntimeError, match=r"stepped before its reset.*without force_reset=False"):
        model.learn(32, reset_num_timesteps=False, callback=CheckShaping())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: VecNormalize(shaped(learner_gamma=GAMMA), gamma=GAMMA), "VecNormalize around the shaping changes"),
        (lambda: VecNormalize(DummyVecEnv([shaped_alone]), gamma=GAMMA), "VecNormalize around the shaping changes"),
        (lambda: DummyVecEnv([lambda: ClipRewardEnv(shaped_alone())]), "ClipRewardEnv around the shaping changes"),
        (lambda: DummyVecEnv([lambda: MaxAndSkipEnv(shaped_alone(), 2)]), "MaxAndSkipEnv around the shaping takes sev"),
    ],
)
def test_without_the_callback_known_wrappers_are_said_once(make, words):
    said = trained(make())
    assert len(said) == 1
    assert words in said[0]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: env,
        VecMonitor,
        lambda env: VecFrameStack(env, 2),
        lambda env: VecNormalize(env, norm_reward=False, gamma=GAMMA),
    ],
)
def test_right_stacks_are_silent(wrap):
    assert trained(wrap(shaped()), CheckShaping()) == []
    assert trained(wrap(shaped(learner_gamma=GAMMA))) == []
    assert trained(wrap(DummyVecEnv([shaped_alone]))) == []
    assert trained(wrap(shaped(observe_debt=True)), CheckShaping(), kind=DQN) == []


def test_a_carried_truncation_is_silent(walk):
    env = ShapeVectorReward(DummyVecEnv([lambda: walk(0.02)] * 2), "novelty", GRM, on_truncation="carry")
    assert trained(env, CheckShaping()) == [], "SB3 adds the bootstrapped value to the last reward after the callback"
