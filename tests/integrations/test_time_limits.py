"""What is said of time limits: once by default, never where `on_truncation` was given, and of a carried debt unseen."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward
from payback.ledger import make
from payback.monitor import Monitor

from .corridor import Corridor

GAMMA = 0.9
GRM = payback.grm(GAMMA, 3)
NO, YES = np.zeros(1, bool), np.ones(1, bool)


def said(play):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        play()
    return [str(w.message) for w in heard if w.category is ShapingWarning]


def limited(steps=4):
    return gym.wrappers.TimeLimit(Corridor(99), steps)


def played(transform=GRM, **options):
    """Return the last step of an episode that a time limit ends."""
    env = ShapeReward(limited(), "bonus", transform, learner_gamma=GAMMA, **options)
    env.reset()
    return [env.step(1) for _ in range(4)][-1]


def test_only_the_default_warns():
    (words,) = said(lambda: played())
    assert "Pass on_truncation='settle' to accept" in words
    assert said(lambda: played(on_truncation="settle")) == []
    assert said(lambda: played(on_truncation="carry", observe_debt=True)) == []
    with pytest.warns(ShapingWarning, match="a truncated"):
        default = played()
    assert default[1:4] == played(on_truncation="settle")[1:4]


def test_in_a_plain_loop_too():
    def loop(on_truncation):
        monitor = Monitor(make(GRM, on_truncation), learner_gamma=GAMMA)
        state = monitor.ledger.init(np.zeros(1))
        state, _ = monitor.step(state, np.ones(1), NO, NO)
        monitor.step(state, np.ones(1), NO, YES)

    assert len(said(lambda: loop(None))) == 1
    assert said(lambda: loop("settle")) == said(lambda: loop("carry")) == []


@pytest.mark.parametrize("on_truncation", [None, "settle", "carry"])
def test_a_transform_without_a_match_owes_nothing(on_truncation):
    def play():
        *_, terminated, truncated, info = played(payback.scale(0.5), on_truncation=on_truncation)
        assert (terminated, truncated, info["truncated"]) == (False, True, True)
        assert info["shaped"] == 0.5

    (words,) = said(play)
    assert "there is no match" in words


def test_without_a_match_an_episode_ends_at_its_time_limit_all_the_same():
    """The running return that `scale_by_return_std` divides by begins anew."""
    states = []
    for ends in ((YES, NO), (NO, YES)):
        ledger = make(payback.scale_by_return_std(GAMMA))
        state, _ = ledger.step(ledger.init(np.zeros(1)), np.ones(1), *ends)
        states.append(ledger.step(state, np.ones(1), NO, NO)[1].shaped)
    assert states[0] == states[1]


@pytest.mark.filterwarnings("always:on_truncation='carry'")
def test_a_carried_debt_that_nobody_sees_is_said():
    match = "on_truncation='carry' is not exact.*Pass observe_debt=True"
    with pytest.warns(ShapingWarning, match=match):
        ShapeReward(limited(), "bonus", GRM, on_truncation="carry")
    with pytest.warns(ShapingWarning, match=match):
        ShapeVectorReward(SyncVectorEnv([limited]), "bonus", GRM, on_truncation="carry")
    assert said(lambda: ShapeReward(limited(), "bonus", GRM, on_truncation="carry", observe_debt=True)) == []


@pytest.mark.filterwarnings("always:on_truncation='carry'")
def test_a_carried_debt_that_nobody_sees_is_said_in_sb3():
    sb3 = pytest.importorskip("payback.integrations.sb3", exc_type=ImportError)
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make_env(**options):
        return lambda: sb3.ShapeVectorReward(DummyVecEnv([limited]), "bonus", GRM, on_truncation="carry", **options)

    assert len(said(make_env())) == 1
    assert said(make_env(observe_debt=True)) == []


@pytest.mark.filterwarnings("always:on_truncation='carry'")
def test_jax_says_both_while_it_is_traced():
    pytest.importorskip("jax")
    from payback.integrations import gymnax

    from .jax_walk import Walk, play

    def train(**options):
        return lambda: play(gymnax.ShapeVectorReward(Walk(), "novelty", GRM, learner_gamma=GAMMA, **options), 2)

    assert "a truncated episode" in said(train())[0]
    assert said(train(on_truncation="settle")) == []
    assert "not exact" in said(train(on_truncation="carry"))[0]
    assert said(train(on_truncation="carry", observe_debt=True)) == []


def test_a_delay_of_0_is_said():
    with pytest.warns(ShapingWarning, match="delay=0 repays each bonus at the step that pays it"):
        ShapeReward(limited(), "bonus", payback.grm(GAMMA, 0))
