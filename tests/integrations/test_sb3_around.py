"""Stable-Baselines3: what changes rewards, ends or γ around the shaping while training runs."""

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.atari_wrappers import ClipRewardEnv, MaxAndSkipEnv
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


def trained(env, *callbacks, kind=PPO, **options):
    """Return what was said while a model was trained."""
    sizes = {"n_steps": 16, "batch_size": 16, "n_epochs": 1} if kind is PPO else {"learning_starts": 999}
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
        (lambda: Cut(shaped()), None, "ends for the learner, not for the shaping, because a wrapper outside .Cut."),
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
