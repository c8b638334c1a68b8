"""JAX environments in gymnax's form: what the wrappers pay is what the ledger pays, under scan and vmap.

The walk needs JAX alone; test_gymnax_environments.py has gymnax's own environments.
"""

import numpy as np
import pytest

import payback

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

from payback.bonuses.jax import count, episodic_count, rnd
from payback.integrations.gymnax import ShapeReward, ShapeVectorReward, check_episodes
from payback.ledger import make

from .jax_walk import GAMMA, B, OldWalk, T, Walk, play
from .own_match import halves

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]
MATCHES = {
    "pbim": lambda xp: payback.pbim(GAMMA),
    "grm": lambda xp: payback.grm(GAMMA, 3),
    "even": lambda xp: payback.chain(payback.scale_by_rms(), payback.match_evenly(GAMMA, 4)),
    "own": lambda xp: payback.chain(payback.center(), halves(xp, GAMMA)),
}


def distance(obs, action, next_obs, info):
    """A bonus that needs both observations and the action."""
    return jnp.abs(next_obs - obs).sum(axis=-1) + 0.5 * action


class Vmapped:
    """`ShapeReward` under vmap, as users of gymnax vectorise."""

    def __init__(self, env):
        self.reset, self.step = jax.vmap(env.reset), jax.vmap(env.step)


def from_ledger(transform, F, terminated, truncated, on_truncation):
    """What the NumPy adapters pay and are owed for the same F."""
    ledger = make(transform, on_truncation)
    state, rows = ledger.init(np.zeros(F.shape[1])), []
    for transition in zip(F.astype(float), terminated, truncated, strict=True):
        state, step = ledger.step(state, *transition)
        rows.append((step.shaped, step.owed))
    return (np.array(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize(
    ("name", "on_truncation"), [("pbim", "settle"), ("grm", "settle"), ("even", "carry"), ("own", "carry")]
)
def test_it_pays_what_the_ledger_pays(name, on_truncation):
    env = ShapeVectorReward(Walk(), distance, MATCHES[name](jnp), on_truncation=on_truncation)
    (_, _, _, reward, terminated, truncated, info), _ = play(env)
    cut = info["truncated"]
    ended = terminated | truncated
    ends = (ended & ~cut) | (terminated if on_truncation == "carry" else False)
    shaped, owed = from_ledger(MATCHES[name](np), info["intrinsic"], ends, cut, on_truncation)
    np.testing.assert_allclose(info["shaped"], shaped, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(info["owed"], owed, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(reward, info["extrinsic"] + info["shaped"], rtol=1e-5, atol=1e-5)
    assert cut.sum() > 5
    assert (ended & ~cut).sum() > 20
    assert check_episodes(info) == 0


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
    assert info["truncated"].sum() > 5
    assert terminated[info["truncated"]].all()
    assert not truncated.any()
    np.testing.assert_array_equal(info["discount"], 1.0 - terminated)


def test_carried_time_limits_stay_what_they_are():
    env = ShapeVectorReward(
        Walk(), "novelty", payback.grm(GAMMA, 3, center=False), on_truncation="carry", observe_debt=True
    )
    (obs, _, after, _, terminated, truncated, info), _ = play(env)
    np.testing.assert_array_equal(truncated, info["truncated"] & ~terminated)
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
    assert state.ledger.loans[0].mean.shape == (B,)


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
    one_cell = count(1, alpha=1.0, root=False, normalise=False, cell=lambda obs: jnp.zeros(len(obs), int))
    (*_, info), state = play(ShapeVectorReward(Walk(), one_cell, payback.grm(GAMMA, 3)))
    np.testing.assert_allclose(info["intrinsic"], np.repeat(1 / (B * np.arange(1, T + 1)), B).reshape(T, B), rtol=1e-6)
    assert int(state.bonus.table[0]) == B * T


def test_rnd_learns_inside_the_scan():
    env = ShapeVectorReward(Walk(), rnd(width=16, latent=8, learn_every=8), payback.grm(GAMMA, 3))
    (*_, info), state = play(env)
    assert info["intrinsic"][1:].std() > 0
    assert float(state.bonus.scale.seen) == B * T
    assert check_episodes(info) == 0


def test_an_event_repays():
    env = ShapeVectorReward(
        Walk(), "novelty", payback.match_when(GAMMA), event=lambda obs, action, next_obs, info: next_obs[:, 0] > 0
    )
    (*_, terminated, _, info), _ = play(env)
    events = info["final_observation"][..., 0] > 0
    going = ~terminated
    # What was open is repaid; the loan of the step itself is open from now on.
    np.testing.assert_allclose(info["owed"][events & going], info["intrinsic"][events & going] / GAMMA, rtol=1e-5)
    more = info["owed"][~events & going] - info["intrinsic"][~events & going] / GAMMA
    assert (more > 1e-3).mean() > 0.3
