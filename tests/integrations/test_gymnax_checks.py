"""JAX environments in gymnax's form: what `check_episodes` finds, the learner's discount, and bad input."""

import warnings

import numpy as np
import pytest

import payback

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

from payback import ShapingWarning
from payback.bonuses import EpisodicCount
from payback.integrations.gymnax import ShapeReward, ShapeVectorReward, check_episodes, check_wiring

from .jax_walk import GAMMA, B, OldWalk, Walk, play
from .own_match import forgets_the_end

pytestmark = [
    pytest.mark.host,
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
    with pytest.warns(ShapingWarning, match="overflows"):
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


class Wrapped:
    """A wrapper in purejaxrl's form: what it does not have is asked of the environment."""

    def __init__(self, env):
        self._env = env

    def __getattr__(self, name):
        return getattr(vars(self)["_env"], name)

    def change(self, reward, terminated):
        return reward, terminated

    def step(self, key, state, action, params=None):
        obs, state, reward, terminated, *rest = self._env.step(key, state, action, params)
        return obs, state, *self.change(reward, terminated), *rest


class Clip(Wrapped):
    def change(self, reward, terminated):
        return jnp.clip(reward, -0.5, 0.5), terminated


class Cut(Wrapped):
    def change(self, reward, terminated):
        return reward, jnp.ones_like(terminated)


class NormalizeVecReward(Wrapped):
    """Divides by a constant, which is enough to be wrong."""

    def change(self, reward, terminated):
        return reward / 2, terminated


class VecEnv(Wrapped):
    def __init__(self, env):
        super().__init__(env)
        self.reset, self.step = (
            jax.vmap(f, in_axes=axes) for f, axes in ((env.reset, (0, None)), (env.step, (0, 0, 0, None)))
        )


class TestCheckWiring:
    def stacks(self, walk=Walk):
        yield shaped(walk(), "novelty", learner_gamma=GAMMA)
        yield VecEnv(ShapeReward(walk(), "novelty", payback.grm(GAMMA, 3), learner_gamma=GAMMA))

    @pytest.mark.parametrize("walk", [Walk, OldWalk])
    def test_right_stacks_pass(self, walk):
        for env in self.stacks(walk):
            assert check_wiring(Wrapped(env), steps=60) > 20
        single = ShapeReward(walk(), "novelty", payback.grm(GAMMA, 3), learner_gamma=GAMMA)
        assert check_wiring(single, num_envs=None, steps=60) > 5

    @pytest.mark.parametrize("outer", [Clip, NormalizeVecReward])
    def test_a_wrapper_that_changes_rewards_is_named(self, outer):
        for env in self.stacks():
            with pytest.raises(payback.InvarianceError, match=f"came out of {outer.__name__}"):
                check_wiring(outer(env), steps=60)

    def test_a_wrapper_that_ends_episodes_is_named(self):
        with pytest.raises(payback.InvarianceError, match="ended outside the shaping, by Cut"):
            check_wiring(Cut(shaped(Walk(), "novelty", learner_gamma=GAMMA)), steps=60)

    def test_without_an_end_or_a_shaping_it_says_so(self):
        with pytest.warns(ShapingWarning, match="has seen no settlement"):
            check_wiring(shaped(Long(99), "novelty", learner_gamma=GAMMA), steps=9)
        with pytest.raises(ValueError, match="found no ShapeReward"):
            check_wiring(Wrapped(Walk()))


def test_a_known_wrapper_outside_is_reported_while_it_is_traced():
    for env in TestCheckWiring().stacks():
        with pytest.warns(ShapingWarning, match="NormalizeVecReward around the shaping changes the rewards"):
            step_by_step(NormalizeVecReward(env))
    for env in TestCheckWiring().stacks():
        step_by_step(Wrapped(env))


def step_by_step(env):
    keys = jax.random.split(jax.random.key(0), B)
    _, state = env.reset(keys, None)
    for _ in range(2):
        _, state, *_ = env.step(keys, state, jnp.zeros(B, int), None)


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
