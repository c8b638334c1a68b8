"""JAX environments in gymnax's form: what `check_episodes` finds, the learner's discount, and bad input."""

import warnings

import numpy as np
import pytest

import payback

pytest.importorskip("jax")
import jax.numpy as jnp

from payback import ShapingWarning
from payback.bonuses import EpisodicCount
from payback.integrations.gymnax import ShapeVectorReward, check_episodes

from .jax_walk import GAMMA, B, OldWalk, Walk, play
from .own_match import forgets_the_end

pytestmark = [
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]


def test_a_match_that_does_not_settle_is_found():
    right = payback.grm(GAMMA, 3)

    def never_settles(state, reward, done, valid=None, settle=None):
        return right.update(state, reward, jnp.zeros_like(done), valid, settle)

    wrong = payback.Match(right.init, never_settles, gamma=GAMMA, owed=right.owed, drop=right.drop)
    (*_, terminated, _, info), _ = play(ShapeVectorReward(Walk(), "novelty", wrong))
    with pytest.warns(ShapingWarning, match=r"finished episodes did not cancel.*check_transform"):
        broken = check_episodes(info)
    assert 0.9 * terminated.sum() < broken <= terminated.sum()


class Long(Walk):
    """Ends after `limit` steps, and never by chance."""

    hazard = 0.0

    def __init__(self, limit):
        self.limit = limit


@pytest.mark.parametrize(("gamma", "length"), [(0.9, 300), (0.99, 1500), (0.99, 5000)])
def test_a_debt_that_is_left_late_in_a_long_episode_is_not_hidden_by_the_discount(gamma, length):
    """γ^t of the last step is below what float32 can show: the end is judged from the debt before it."""
    right = payback.grm(gamma, 30, center=False)
    for match, broken in ((right, 0), (forgets_the_end(right), 2 * 2)):
        env = ShapeVectorReward(Long(length), lambda *transition: jnp.ones(2), match, learner_gamma=gamma)
        (*_, info), _ = play(env, 2 * length, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapingWarning)
            assert check_episodes(info) == broken


def test_interest_that_float32_cannot_hold_is_found():
    (*_, info), _ = play(ShapeVectorReward(Walk(), lambda *t: jnp.full(B, 3e38), payback.pbim(GAMMA, center=False)))
    with pytest.warns(ShapingWarning, match=r"cannot hold"):
        assert check_episodes(info) > 0


def test_without_a_match_it_warns_and_judges_nothing():
    with pytest.warns(ShapingWarning, match="no match in this transform"):
        env = ShapeVectorReward(Walk(), "novelty", payback.center())
    (*_, info), _ = play(env)
    assert check_episodes(info) == 0
    assert (info["owed"] == 0).all()


def test_the_learners_discount_is_compared():
    with pytest.raises(ValueError, match=r"gamma 0.99, the loans are repaid with gamma 0.9"):
        ShapeVectorReward(Walk(), "novelty", payback.grm(GAMMA, 3), learner_gamma=0.99)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        play(ShapeVectorReward(Walk(), "novelty", payback.grm(GAMMA, 3), learner_gamma=GAMMA), 2)
        play(ShapeVectorReward(Walk(), "novelty", payback.grm(GAMMA, 3)), 2)
    assert [w.category for w in said if "never confirmed" in str(w.message)] == [ShapingWarning]
    assert sum("time limit is now part of the task" in str(w.message) for w in said) == 2


class FourValues(Walk):
    def step(self, key, state, action, params=None):
        return super().step(key, state, action, params)[:4]


class Picture(Walk):
    def reset(self, key, params=None):
        obs, state = super().reset(key, params)
        return obs[:, None], state


def shaped(env, intrinsic, transform=None, **options):
    return ShapeVectorReward(env, intrinsic, transform or payback.grm(GAMMA, 3), **options)


def numpy_bonus(obs, action, next_obs, info):
    return np.asarray(next_obs)[:, 0]


@pytest.mark.parametrize(
    ("error", "sentence", "build"),
    [
        (TypeError, "EpisodicCount cannot be traced", lambda: shaped(Walk(), EpisodicCount())),
        (TypeError, "int cannot be traced", lambda: shaped(Walk(), 3)),
        (ValueError, "refused for this match", lambda: shaped(Walk(), "x", payback.pbim(GAMMA), on_truncation="carry")),
        (ValueError, "step returns six", lambda: play(shaped(OldWalk(), "novelty", on_truncation="carry"))),
        (ValueError, "step returns 4 values", lambda: play(shaped(FourValues(), "novelty"))),
        (ValueError, r"shape \(5, 2\), not \(5,\)", lambda: play(shaped(Walk(), lambda *t: t[2]))),
        (KeyError, "no 'curiosity'; the environment gives discount", lambda: play(shaped(Walk(), "curiosity"))),
        (TypeError, "must be written with jax.numpy", lambda: play(shaped(Walk(), numpy_bonus))),
        (ValueError, "cannot hold the debt", lambda: play(shaped(Picture(), "novelty", observe_debt=True))),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(error, sentence, build):
    with pytest.raises(error, match=sentence):
        build()
