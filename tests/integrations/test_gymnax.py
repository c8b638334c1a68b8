"""JAX environments in gymnax's form: what the wrappers pay is what the ledger pays, under scan and vmap.

The walk needs JAX alone; what is about gymnax itself runs in the hosts' environment.
"""

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import payback

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from payback.bonuses import EpisodicCount  # noqa: E402
from payback.bonuses.jax import count, episodic_count, rnd  # noqa: E402
from payback.integrations.gymnax import ShapeReward, ShapeVectorReward, check_episodes  # noqa: E402
from payback.integrations.ledger import Ledger, ShapingWarning  # noqa: E402

from .jax_walk import OldWalk, Walk  # noqa: E402
from .own_match import forgets_the_end, halves  # noqa: E402

GAMMA, B, T = 0.9, 5, 60
ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.integrations.ledger.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]
MATCHES = {
    "pbim": lambda xp: payback.pbim(GAMMA),
    "grm": lambda xp: payback.grm(GAMMA, 3),
    "even": lambda xp: payback.chain(payback.scale_by_rms(), payback.match_evenly(GAMMA, 4)),
    "own": lambda xp: payback.chain(payback.center(), halves(xp, GAMMA)),
}


def test_what_is_paid_for_integer_rewards_is_the_sum():
    class Cast(Walk):
        def step(self, key, state, action, params=None):
            obs, state, _, *rest = super().step(key, state, action, params)
            return obs, state, jnp.ones((), jnp.int32), *rest

    rows, _ = play(ShapeVectorReward(Cast(), "novelty", payback.grm(GAMMA, 3), learner_gamma=GAMMA))
    total, info = rows[3], rows[-1]
    assert total.dtype == np.float32
    np.testing.assert_allclose(total, 1 + info["shaped"], rtol=1e-6, atol=1e-6)
    assert abs(info["shaped"]).max() > 0.1
    assert check_episodes(info) == 0


def distance(obs, action, next_obs, info):
    """A bonus that needs both observations and the action."""
    return jnp.abs(next_obs - obs).sum(axis=-1) + 0.5 * action


def play(env, steps=T, num_envs=B, seed=0):
    """Scan over random actions; return the outputs of all steps, (T, B) each, with the observations before them."""
    keys = jax.random.split(jax.random.key(seed), num_envs)
    obs, state = env.reset(keys)

    def one(carry, key):
        obs, state = carry
        choose, *move = jax.random.split(key, num_envs + 1)
        action = jax.random.bernoulli(choose, 0.5, (num_envs,)).astype(jnp.int32)
        after, state, *out = env.step(jnp.stack(move), state, action)
        return (after, state), (obs, action, after, *out)

    (_, state), rows = jax.lax.scan(one, (obs, state), jax.random.split(jax.random.key(seed + 1), steps))
    return jax.tree.map(np.asarray, rows), state


class Vmapped:
    """`ShapeReward` under vmap, as users of gymnax vectorise."""

    def __init__(self, env):
        self.reset, self.step = jax.vmap(env.reset), jax.vmap(env.step)


def from_ledger(transform, F, terminated, truncated, on_truncation):
    """What the NumPy adapters pay and are owed for the same F."""
    ledger = Ledger(transform, F.shape[1], on_truncation)
    steps = zip(F.astype(float), terminated, truncated, strict=True)
    rows = [(ledger.step(*step), ledger.ending) for step in steps]
    return (np.array(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize(
    ("name", "on_truncation"), [("pbim", "settle"), ("grm", "settle"), ("even", "carry"), ("own", "carry")]
)
def test_it_pays_what_the_ledger_pays(name, on_truncation):
    env = ShapeVectorReward(Walk(), distance, MATCHES[name](jnp), on_truncation)
    (_, _, _, reward, terminated, truncated, info), _ = play(env)
    cut = info["was_truncated"]
    ended = terminated | truncated
    ends = (ended & ~cut) | (terminated if on_truncation == "carry" else False)
    shaped, owed = from_ledger(MATCHES[name](np), info["intrinsic"], ends, cut, on_truncation)
    np.testing.assert_allclose(info["shaped"], shaped, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(info["owed"], owed, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(reward, info["extrinsic"] + info["shaped"], rtol=1e-5, atol=1e-5)
    assert cut.sum() > 5
    assert (ended & ~cut).sum() > 20
    assert check_episodes(info) == 0


def test_each_episode_cancels_and_its_last_reward_belongs_to_it():
    (_, _, _, reward, terminated, _, info), _ = play(ShapeVectorReward(Walk(), distance, payback.pbim(GAMMA)))
    for k in range(B):
        total, weight, lengths = 0.0, 1.0, []
        for t in range(T):
            total += weight * (float(reward[t, k]) - float(info["extrinsic"][t, k]))
            weight *= GAMMA
            if terminated[t, k]:
                assert abs(total) < 1e-4
                lengths.append(t)
                total, weight = 0.0, 1.0
        assert len(lengths) > 5


def test_the_bonus_sees_the_last_observation_of_an_episode():
    (obs, action, after, _, terminated, _, info), _ = play(ShapeVectorReward(Walk(), distance, payback.grm(GAMMA, 3)))
    last = info["final_observation"]
    np.testing.assert_allclose(info["intrinsic"], np.abs(last - obs).sum(-1) + 0.5 * action, rtol=1e-5)
    wrong = np.abs(after - obs).sum(-1) + 0.5 * action
    assert (np.abs(wrong - info["intrinsic"])[terminated] > 1e-3).mean() > 0.9


def test_settled_time_limits_are_told_as_terminations():
    (*_, terminated, truncated, info), _ = play(ShapeVectorReward(Walk(), "novelty", payback.grm(GAMMA, 3)))
    assert info["was_truncated"].sum() > 5
    assert terminated[info["was_truncated"]].all()
    assert not truncated.any()
    np.testing.assert_array_equal(info["terminated"], terminated)
    assert not info["truncated"].any()
    np.testing.assert_array_equal(info["discount"], 1.0 - terminated)


def test_carried_time_limits_stay_what_they_are():
    env = ShapeVectorReward(Walk(), "novelty", payback.grm(GAMMA, 3, center=False), "carry", observe_debt=True)
    (obs, _, after, _, terminated, truncated, info), _ = play(env)
    np.testing.assert_array_equal(truncated, info["was_truncated"])
    carried = truncated & ~terminated
    assert carried.sum() > 5
    assert (info["owed"][carried] > 0).all()
    # V(s_N) is asked at the last observation, which shows the debt; the next episode begins without one.
    np.testing.assert_allclose(info["final_observation"][..., -1], info["owed"], rtol=1e-6)
    assert (after[truncated | terminated][:, -1] == 0).all()
    np.testing.assert_allclose(obs[1:][..., -1], np.where((truncated | terminated)[:-1], 0, info["owed"][:-1]))
    assert (info["residual"][carried] == 0).all()


@pytest.mark.parametrize("walk", [Walk, OldWalk])
def test_under_vmap_each_environment_is_shaped_alone(walk):
    """Without F̄ the two ways pay the same; with it each environment has its own."""
    for center, same in ((False, True), (True, False)):
        transform = payback.grm(GAMMA, 3, center=center)
        together, _ = play(ShapeVectorReward(walk(), distance, transform))
        apart, state = play(Vmapped(ShapeReward(walk(), distance, transform)))
        a, b = together[-1]["shaped"], apart[-1]["shaped"]
        np.testing.assert_allclose(together[-1]["intrinsic"], apart[-1]["intrinsic"], rtol=1e-6)
        assert np.allclose(a, b, atol=1e-5) is same
        assert check_episodes(apart[-1]) == 0
    assert state.loans[0].mean.shape == (B,)


def test_five_values_stay_five_and_the_last_loan_is_left_out():
    rows, _ = play(ShapeVectorReward(OldWalk(), distance, payback.grm(GAMMA, 3)))
    _, _, _, reward, done, info = rows
    assert done.sum() > 20
    assert (info["intrinsic"][done] == 0).all()
    shaped, _ = from_ledger(payback.grm(GAMMA, 3), info["intrinsic"], done, np.zeros_like(done), "settle")
    np.testing.assert_allclose(info["shaped"], shaped, atol=1e-5)
    np.testing.assert_allclose(reward, info["extrinsic"] + info["shaped"], atol=1e-5)
    assert (info["discount"][done] == 0).all()
    assert check_episodes(info) == 0


def test_an_episodic_bonus_begins_anew_at_every_end_and_nowhere_else():
    """Against counting by hand; the walk's cell is the sign of its place."""

    def cell(obs):
        return (obs[..., 0] > 0) * 2 + (obs[..., 1] > 0)

    env = ShapeVectorReward(Walk(), episodic_count(4, alpha=1.0, cell=cell), payback.grm(GAMMA, 3))
    (obs, _, _, _, terminated, _, info), _ = play(env)
    for k in range(B):
        seen = np.zeros(4)
        for t in range(T):
            if not seen.any():
                seen[int(cell(obs[t, k]))] = 1
            here = int(cell(info["final_observation"][t, k]))
            seen[here] += 1
            assert info["intrinsic"][t, k] == pytest.approx(1 / seen[here])
            if terminated[t, k]:
                seen[:] = 0


def test_a_bonus_for_life_is_shared_and_lives_on():
    one_cell = count(1, alpha=1.0, root=False, cell=lambda obs: jnp.zeros(len(obs), int))
    (*_, info), state = play(ShapeVectorReward(Walk(), one_cell, payback.grm(GAMMA, 3)))
    np.testing.assert_allclose(info["intrinsic"], np.repeat(1 / (B * np.arange(1, T + 1)), B).reshape(T, B), rtol=1e-6)
    assert int(state.bonus[0]) == B * T


def test_rnd_learns_inside_the_scan():
    env = ShapeVectorReward(Walk(), rnd(width=16, latent=8, learn_every=8), payback.grm(GAMMA, 3))
    (*_, info), state = play(env)
    assert info["intrinsic"][1:].std() > 0
    assert float(state.bonus.seen) == B * T
    assert check_episodes(info) == 0


def test_an_event_repays():
    env = ShapeVectorReward(
        Walk(), "novelty", payback.match_when(GAMMA), event=lambda obs, action, next_obs, info: next_obs[:, 0] > 0
    )
    (*_, info), _ = play(env)
    events = info["final_observation"][..., 0] > 0
    going = ~info["terminated"]
    # What was open is repaid; the loan of the step itself is open from now on.
    np.testing.assert_allclose(info["owed"][events & going], info["intrinsic"][events & going] / GAMMA, rtol=1e-5)
    more = info["owed"][~events & going] - info["intrinsic"][~events & going] / GAMMA
    assert (more > 1e-3).mean() > 0.3


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
    with pytest.warns(ShapingWarning, match=r"float32 cannot hold"):
        assert check_episodes(info) > 0


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
        (ValueError, "refused for this match", lambda: ShapeReward(Walk(), "x", payback.pbim(GAMMA), "carry")),
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


def test_without_a_match_it_warns_and_judges_nothing():
    with pytest.warns(ShapingWarning, match="no match in this transform"):
        env = ShapeVectorReward(Walk(), "novelty", payback.center())
    (*_, info), _ = play(env)
    assert check_episodes(info) == 0
    assert (info["owed"] == 0).all()


class TestGymnax:
    """The wrappers around gymnax's own environments and wrappers."""

    @pytest.fixture(autouse=True)
    def gymnax(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip("gymnax.wrappers", reason="make test-hosts", exc_type=ImportError)
            return sys.modules["gymnax"]

    def make(self, gymnax, name="CartPole-v1", limit=20):
        env, params = gymnax.make(name)
        return env, params.replace(max_steps_in_episode=limit)

    def run(self, env, params, steps=100):
        keys = jax.random.split(jax.random.key(0), B)
        _, state = env.reset(keys, params)

        def one(state, key):
            action = jax.random.randint(key, (B,), 0, env.num_actions)
            obs, state, *out = env.step(jax.random.split(key, B), state, action, params)
            return state, (obs, *out)

        return jax.tree.map(np.asarray, jax.lax.scan(one, state, jax.random.split(jax.random.key(1), steps))[1])

    def test_cartpole_with_a_logged_extrinsic_return(self, gymnax):
        env, params = self.make(gymnax)
        transform = payback.grm(0.99, 10)
        env = ShapeVectorReward(gymnax.wrappers.LogWrapper(env), rnd(width=16, latent=8), transform, learner_gamma=0.99)
        _, reward, terminated, truncated, info = self.run(env, params)
        assert terminated.sum() > 15
        assert not truncated.any()
        assert info["was_truncated"].sum() > 3
        assert (info["extrinsic"] == 1).all()
        np.testing.assert_array_equal(info["returned_episode"], terminated)
        # CartPole pays 1 a step: LogWrapper, inside, measures the length of each episode, whatever the bonus.
        np.testing.assert_array_equal(info["returned_episode_returns"], info["returned_episode_lengths"])
        assert np.abs(reward - 1).max() > 0.1
        assert check_episodes(info) == 0

    def test_the_log_wrapper_may_be_outside(self, gymnax):
        env, params = self.make(gymnax)
        shaped = ShapeReward(
            env, lambda o, a, n, i: jnp.abs(n[:, 0]), payback.pbim(1.0, center=False), learner_gamma=1.0
        )
        logged = gymnax.wrappers.LogWrapper(shaped)
        _, state = logged.reset(jax.random.key(0), params)
        for t in range(30):
            _, state, *_, info = logged.step(jax.random.key(t), state, 0, params)
            if info["returned_episode"]:
                break
        # With γ = 1 loans and repayments add up to nothing: the shaped return is the extrinsic one.
        assert float(info["returned_episode_returns"]) == pytest.approx(t + 1, abs=1e-4)

    def test_the_legacy_step_has_five_values(self, gymnax):
        env, params = self.make(gymnax)
        old = gymnax.wrappers.LegacyStepAPIWrapper(env)
        shaped = ShapeVectorReward(old, lambda o, a, n, i: jnp.abs(n[:, 0]), payback.grm(0.99, 3), learner_gamma=0.99)
        _, _, done, info = self.run(shaped, params)
        assert done.sum() > 15
        # Its info tells time limits apart all the same, and has the last observation.
        assert info["was_truncated"].sum() > 3
        assert not info["truncated"].any()
        np.testing.assert_allclose(info["intrinsic"], np.abs(info["final_observation"][..., 0]))
        assert check_episodes(info) == 0

    def test_the_space_has_room_for_the_debt(self, gymnax):
        env, params = self.make(gymnax)
        shaped = ShapeVectorReward(env, "discount", payback.grm(0.99, 3), observe_debt=True, learner_gamma=0.99)
        space = shaped.observation_space(params)
        assert space.shape == (5,)
        obs, *_ = self.run(shaped, params, 20)
        assert obs.shape[-1] == 5
        assert shaped.num_actions == 2

    def test_the_example_learns(self, gymnax):
        spec = importlib.util.spec_from_file_location("purejaxrl_style", ROOT / "examples" / "purejaxrl_style.py")
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        early, late = example.main()
        assert early < 200
        assert late > 400
