"""skrl: PPO is paid what the ledger pays, its returns lose nothing to the bonus, and no debt crosses an episode's end.

Runs in the hosts' environment (make test-hosts).
"""

import warnings

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skrl.agents.torch.ppo", reason="make test-hosts", exc_type=ImportError)

import torch
from skrl.envs.wrappers.torch import wrap_env

import payback
from payback import audit_file
from payback.integrations.gymnasium import ShapeReward
from payback.integrations.gymnasium import ShapeVectorReward as ShapeGymnasium
from payback.integrations.skrl import ShapeVectorReward, check_agent
from payback.ledger import make

from .skrl_lanes import GAMMA, LIMIT, B, Lanes, agent_for, column, train, wrapped

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
GRM = payback.grm(GAMMA, 3)


def second_number(obs, actions, next_obs, infos):
    return next_obs[:, 1] + obs[:, 1]


def shaped(bonus="novelty", transform=GRM, **options):
    return ShapeVectorReward(wrapped(), bonus, transform, learner_gamma=GAMMA, **options)


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("bonus", ["novelty", second_number])
def test_ppo_is_paid_what_the_ledger_pays(tmp_path, bonus, on_truncation):
    env = shaped(bonus, on_truncation=on_truncation)
    agent = agent_for(env, tmp_path, time_limit_bootstrap=on_truncation == "carry")
    check_agent(agent, env)
    rows = train(env, agent)
    names = "extrinsic", "intrinsic", "shaped", "owed", "truncated"
    extrinsic, F, paid, owed, cut = (column(rows, "infos", name) for name in names)
    reward, terminated, truncated, stored = (column(rows, k) for k in ("rewards", "terminated", "truncated", "stored"))
    ledger = make(GRM)
    state = ledger.init(np.zeros(B))
    for t in range(len(F)):
        ended = terminated[t] | truncated[t]
        state, step = ledger.step(state, F[t], ended, np.zeros(B, bool))
        np.testing.assert_allclose(paid[t], step.shaped, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(owed[t], step.owed, rtol=1e-6, atol=1e-9)
        assert not owed[t][ended].any()
    np.testing.assert_allclose(reward, extrinsic + paid, rtol=1e-5, atol=1e-6)
    assert cut.sum() > 10
    assert (terminated & ~cut).sum() > 10
    if on_truncation == "settle":
        assert terminated[cut].all()
        assert not truncated.any()
        np.testing.assert_array_equal(stored, reward)
    else:
        np.testing.assert_array_equal(truncated, cut)
        assert not terminated[cut].any()
        assert (stored != reward)[cut].mean() > 0.9  # skrl has added γV(s′)
    if callable(bonus):
        assert not F[terminated | truncated].any()
    assert env.monitor.broken == env.monitor.drops == 0
    assert env.monitor.finished == (terminated | truncated).sum()


def first_returns(env, agent, rows):
    """The returns that skrl computed for the first episode of each environment, and those of the task alone."""
    found, own = [], []
    extrinsic = column(rows, "infos", "extrinsic")
    ended = column(rows, "infos", "ended")
    for k in range(B):
        last = int(np.flatnonzero(ended[:, k])[0])
        found.append(float(agent.returns[0, k]))
        own.append(sum(GAMMA**t * extrinsic[t, k] for t in range(last + 1)))
    return np.array(found), np.array(own)


class Ended(ShapeVectorReward):
    """Says in `infos` which episodes ended; may leave the truncations that it settled."""

    def __init__(self, *args, naive=False, **options):
        super().__init__(*args, **options)
        self.naive = naive

    def step(self, actions):
        obs, reward, terminated, truncated, infos = super().step(actions)
        infos["ended"] = terminated | truncated
        if self.naive:
            terminated, truncated = terminated & ~infos["truncated"][:, None], infos["truncated"][:, None]
        return obs, reward, terminated, truncated, infos


def test_the_returns_of_ppo_are_those_of_the_task(tmp_path):
    """With λ = 1 the return of an episode's first step is its own: payments cancel and nothing is bootstrapped."""
    gaps = {}
    for naive in (False, True):
        env = Ended(wrapped(hazard=0.0), "novelty", GRM, learner_gamma=GAMMA, naive=naive)
        agent = agent_for(env, tmp_path, gae_lambda=1.0, learning_rate=0.0, value_clip=0.0)
        found, own = first_returns(env, agent, train(env, agent, 50))
        gaps[naive] = abs(found - own).max()
    assert gaps[False] < 1e-4
    assert gaps[True] > 0.5  # skrl's default runs on over a truncation into the next episode


def test_a_second_training_goes_on_with_the_debts(tmp_path):
    """skrl resets such environments once; their debts must not be dropped with the episodes still open."""
    env = shaped()
    agent = agent_for(env, tmp_path)
    train(env, agent, 52)
    owed = env.owed.clone()
    train(env, agent, 50)
    assert owed.abs().sum() > 0
    assert env._env._env.resets == 1
    assert env.monitor.drops == env.monitor.broken == 0


def test_only_the_default_warns_of_a_time_limit():
    for on_truncation, count in (("carry", 0), ("settle", 0), (None, 1)):
        env = shaped(on_truncation=on_truncation)
        env.reset()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2 * LIMIT):
                env.step(torch.zeros(B, 1))
        assert sum("a truncated episode settles" in str(one.message) for one in seen) == count
        assert len(seen) == count


def test_the_state_is_saved_and_loaded(tmp_path):
    first, second = shaped(), shaped()
    for env in (first, second):
        env.reset()
    for _ in range(10):
        first.step(torch.zeros(B, 1))
    first.save(tmp_path / "shaping.npz")
    second.load(tmp_path / "shaping.npz")
    assert torch.equal(second.owed, first.owed)
    assert first.owed.abs().sum() > 0
    assert second.owed.device == first.owed.device


def test_it_records_what_it_paid(tmp_path):
    env = shaped(record=tmp_path / "log")
    train(env, agent_for(env, tmp_path), 100)
    env.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 100 * B


def test_an_event_repays(tmp_path):
    env = ShapeVectorReward(
        wrapped(), "novelty", payback.match_when(GAMMA), event=lambda o, a, n, i: o[:, 0] == 2, learner_gamma=GAMMA
    )
    rows = train(env, agent_for(env, tmp_path), 50)
    at, owed = column([{"time": row["observations"][:, 0] == 2} for row in rows], "time"), column(rows, "infos", "owed")
    assert at.sum() > 10
    F, paid = column(rows, "infos", "intrinsic"), column(rows, "infos", "shaped")
    ended = column(rows, "terminated")
    np.testing.assert_allclose(owed[at & ~ended], F[at & ~ended] / GAMMA, rtol=1e-6)  # all but the step's own loan
    assert (paid[at] < F[at]).all()
    np.testing.assert_array_equal(paid[~at & ~ended], F[~at & ~ended])


@pytest.mark.parametrize("vector", [False, True])
def test_gymnasium_is_shaped_inside(tmp_path, walk, vector):
    """wrap_env shows its agents Gymnasium's own shaping, and `check_agent` finds it there."""
    if vector:
        inner = ShapeGymnasium(gym.vector.SyncVectorEnv([walk] * B), lambda o, a, n, i: abs(n[:, 0]), GRM)
    else:
        inner = ShapeReward(walk(), "novelty", GRM)
    env = wrap_env(inner, verbose=False)
    agent = agent_for(env, tmp_path)
    check_agent(agent, env)
    rows = train(env, agent, 60)
    assert not column(rows, "truncated").any()
    assert env.monitor.finished > 5
    assert env.monitor.broken == env.monitor.drops == 0
    with pytest.raises(TypeError, match="before wrap_env"):
        ShapeVectorReward(wrap_env(gym.vector.SyncVectorEnv([walk]), verbose=False), "novelty", GRM)


def test_an_agent_that_undoes_the_guarantee_is_refused(tmp_path):
    env = shaped(on_truncation="carry")
    right = {"time_limit_bootstrap": True}
    check_agent(agent_for(env, tmp_path, **right, rewards_shaper=lambda r, *_: 0.1 * r), env)
    with pytest.raises(ValueError, match=r"discounts with gamma 0\.95, the loans are repaid with gamma 0\.9,"):
        check_agent(agent_for(env, tmp_path, **right, discount_factor=0.95), env)
    with pytest.raises(ValueError, match="set time_limit_bootstrap=True"):
        check_agent(agent_for(env, tmp_path), env)
    with pytest.raises(ValueError, match="rewards_shaper may only multiply"):
        check_agent(agent_for(env, tmp_path, **right, rewards_shaper=lambda r, *_: r.clip(-1, 1)), env)


def test_numbers_are_flags_only_where_they_are_0_and_1():
    class Numbers(Lanes):
        def step(self, actions):
            obs, reward, terminated, truncated, infos = super().step(actions)
            return obs, reward, terminated * self.one, truncated.long(), infos

    env = ShapeVectorReward(
        wrap_env(Numbers(), wrapper="isaaclab-single-agent", verbose=False), "novelty", GRM, learner_gamma=GAMMA
    )
    env.reset()
    Numbers.one = 1.0
    for _ in range(2 * LIMIT):
        terminated = env.step(torch.zeros(B, 1))[2]
    assert terminated.dtype == torch.bool
    assert env.monitor.finished > B
    Numbers.one, env._env._env.hazard = 0.5, 1.0
    with pytest.raises(ValueError, match="terminated"):
        env.step(torch.zeros(B, 1))


def test_bad_input_is_one_sentence():
    with pytest.raises(TypeError, match="what skrl's wrap_env returns"):
        ShapeVectorReward(Lanes(), "novelty", GRM)
    for bonus, kind, words in (
        ("curiosity", KeyError, "infos has no 'curiosity' at step 0"),
        (lambda *t: torch.ones(B, 1), ValueError, r"shape \(4, 1\), not \(4,\)"),
        (lambda *t: torch.full((B,), torch.nan), ValueError, "nan|finite"),
        (lambda *t: 1 / 0, RuntimeError, "the intrinsic reward raised ZeroDivisionError at step 0"),
    ):
        env = shaped(bonus)
        env.reset()
        with pytest.raises(kind, match=words):
            env.step(torch.zeros(B, 1))
