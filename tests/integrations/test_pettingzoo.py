"""PettingZoo: each agent borrows and repays by itself, ends by itself, and is an invalid row after it has left."""

import warnings

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("pettingzoo", reason="make installs it")
from pettingzoo import ParallelEnv
from pettingzoo.butterfly.knights_archers_zombies import knights_archers_zombies

import payback
from payback import audit_file
from payback.integrations.pettingzoo import ShapeReward
from payback.ledger import make

pytestmark = [
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]
GAMMA, LIMIT = 0.9, 8
AGENTS = ["ant", "bee", "cat"]
GRM, LENT = payback.grm(GAMMA, 2), payback.match_at_end(GAMMA)


class Hunt(ParallelEnv):
    """Agents move at random and die by chance; after eight steps the others are truncated. `late` joins at step 3."""

    metadata = {"name": "hunt"}  # noqa: RUF012
    possible_agents = AGENTS
    spaces = spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(2)

    def __init__(self, hazard=0.15, late=None, leaves=None):
        self.hazard, self.late, self.leaves = hazard, late, leaves
        self.chance = np.random.default_rng(0)

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def _seen(self):
        return {agent: self.chance.normal(size=2).astype(np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        self.chance = np.random.default_rng(seed) if seed is not None else self.chance
        self.agents, self.time = [agent for agent in AGENTS if agent != self.late], 0
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        joins = [self.late] if self.late and self.time == 3 else []
        self.agents = self.agents + joins
        obs = self._seen()
        dead = {agent: agent not in joins and bool(self.chance.random() < self.hazard) for agent in self.agents}
        cut = {agent: self.time >= LIMIT and not dead[agent] for agent in self.agents}
        infos = {agent: {"novelty": float(self.chance.random())} for agent in self.agents}
        rewards = {agent: float(actions.get(agent, 0)) for agent in self.agents}
        gone = [self.leaves] if self.time == 4 else []
        self.agents = [agent for agent in self.agents if not (dead[agent] or cut[agent] or agent in gone)]
        return obs, rewards, dead, cut, infos


def play(env, episodes=40):
    """Yield each step: (what was alive and seen before, the actions, and what `step` returned)."""
    for _ in range(episodes):
        obs, _ = env.reset()
        while env.agents:
            actions = {agent: k % 2 for k, agent in enumerate(env.agents)}
            alive = list(env.agents)
            out = env.step(actions)
            yield alive, obs, actions, *out
            obs = out[0]


def distance(obs, actions, next_obs, infos):
    return np.abs(next_obs - obs).sum(axis=1) + 0.5 * actions


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("bonus", ["novelty", distance])
def test_each_agent_is_paid_what_a_ledger_of_its_own_rows_pays(bonus, on_truncation):
    env = ShapeReward(Hunt(), bonus, GRM, on_truncation=on_truncation, learner_gamma=GAMMA)
    ledger = make(GRM, on_truncation)
    state, counts = ledger.init(np.zeros(3)), np.zeros(3)
    for alive, before, actions, obs, rewards, ends, cuts, infos in play(env):
        rows = [AGENTS.index(agent) for agent in alive]
        F, terminated, truncated, valid = np.zeros(3), *np.zeros((3, 3), bool)
        F[rows] = [infos[agent]["intrinsic"] for agent in alive]
        truncated[rows] = [infos[agent]["truncated"] for agent in alive]
        terminated[rows] = [(ends[agent] or cuts[agent]) and not infos[agent]["truncated"] for agent in alive]
        valid[rows] = True
        state, step = ledger.step(state, F, terminated, truncated, valid)
        for k, agent in zip(rows, alive, strict=True):
            info = infos[agent]
            if callable(bonus):
                assert info["intrinsic"] == pytest.approx(
                    abs(obs[agent] - before[agent]).sum() + 0.5 * actions[agent], rel=1e-6
                )
            else:
                assert info["intrinsic"] == info["novelty"]
            assert (info["shaped"], info["owed"]) == (step.shaped[k], step.owed[k])
            assert rewards[agent] == info["extrinsic"] + info["shaped"]
            assert (ends[agent], cuts[agent]) == (step.terminated[k], step.truncated[k])
            counts += terminated[k], truncated[k], len(alive) < 3
    assert (counts > 20).all()
    assert env.monitor.broken == env.monitor.drops == 0
    assert env.monitor.finished > 50


def test_the_payments_of_every_agents_episode_cancel():
    env = ShapeReward(Hunt(), "novelty", payback.pbim(GAMMA, center=False), learner_gamma=GAMMA)
    finished, paid = 0, {}
    for alive, *_, rewards, ends, _, infos in play(env):
        for agent in alive:
            paid.setdefault(agent, []).append(rewards[agent] - infos[agent]["extrinsic"])
            if ends[agent]:
                assert sum(GAMMA**t * F for t, F in enumerate(paid.pop(agent))) == pytest.approx(0.0, abs=1e-9)
                finished += 1
    assert finished == 120
    assert not paid


def test_the_bonus_sees_who_took_a_step():
    seen = []

    def bonus(obs, actions, next_obs, infos):
        seen.append(infos["valid"])
        assert not obs[~infos["valid"]].any()
        return np.where(infos["valid"], 1.0, np.nan)

    list(play(ShapeReward(Hunt(), bonus, GRM, learner_gamma=GAMMA)))
    assert 0 < np.mean(seen) < 1


def test_the_bonus_is_told_of_each_end_once():
    class Ones:
        ends = np.zeros(3)

        def __call__(self, obs, actions, next_obs, infos):
            return np.ones(3)

        def reset(self, where):
            self.ends = self.ends + where

    bonus = Ones()
    list(play(ShapeReward(Hunt(), bonus, GRM, learner_gamma=GAMMA), 10))
    assert bonus.ends.tolist() == [20, 20, 20]  # ten resets, and ten ends


def test_an_agent_that_joins_late_has_taken_no_step_yet():
    env = ShapeReward(Hunt(0.0, late="cat"), "novelty", GRM, learner_gamma=GAMMA)
    steps = list(play(env, 1))
    assert [len(alive) for alive, *_ in steps] == [2, 2, 2, 3, 3, 3, 3, 3]
    assert steps[2][4]["cat"] == 0.0
    assert "intrinsic" not in steps[2][-1]["cat"]
    assert "intrinsic" in steps[3][-1]["cat"]
    assert env.monitor.finished == 3
    assert env.monitor.broken == env.monitor.drops == 0


def test_the_debt_of_an_agent_that_leaves_without_an_end_is_dropped():
    env = ShapeReward(Hunt(0.0, leaves="bee"), "novelty", GRM, learner_gamma=GAMMA)
    with pytest.warns(payback.ShapingWarning, match="environment 1 was reset in mid-episode"):
        steps = list(play(env, 1))
    assert steps[3][-1]["bee"]["owed"] != 0
    assert env.monitor.drops == 1
    assert env.monitor.finished == 2


def test_a_reset_in_mid_episode_drops_the_debts():
    env = ShapeReward(Hunt(0.0), "novelty", payback.pbim(GAMMA, center=False), learner_gamma=GAMMA)
    env.reset()
    env.step(dict.fromkeys(AGENTS, 0))
    with pytest.warns(payback.ShapingWarning, match="was dropped"):
        env.reset()
    assert env.monitor.drops == 3
    assert not env.owed.any()


def test_the_debt_is_observed():
    env = ShapeReward(Hunt(), "novelty", GRM, on_truncation="carry", observe_debt=True, learner_gamma=GAMMA)
    assert env.observation_space("ant").shape == (3,)
    cuts = 0
    for alive, _, _, obs, _, _, truncated, infos in play(env):
        for agent in alive:
            assert obs[agent][-1] == np.float32(infos[agent]["owed"])
            cuts += truncated[agent] and obs[agent][-1] != 0
    assert cuts > 10


def test_an_event_repays():
    event = lambda obs, actions, next_obs, infos: actions == 1  # noqa: E731
    env = ShapeReward(Hunt(0.0), "novelty", payback.match_when(GAMMA), event=event, learner_gamma=GAMMA)
    for _, _, actions, *_, infos in play(env, 1):
        last = env.time == LIMIT
        for agent, action in actions.items():
            info = infos[agent]
            assert last or (info["shaped"] == info["intrinsic"]) == (action == 0 or env.time == 1)


def test_the_state_is_saved_and_loaded(tmp_path):
    first, second = (ShapeReward(Hunt(0.0), "novelty", GRM, learner_gamma=GAMMA) for _ in range(2))
    for env in (first, second):
        env.reset()
    for _ in range(4):
        first.step(dict.fromkeys(AGENTS, 0))
    first.save(tmp_path / "shaping.npz")
    second.load(tmp_path / "shaping.npz")
    np.testing.assert_array_equal(second.owed, first.owed)
    assert first.owed.any()


@pytest.mark.filterwarnings("always:on_truncation='carry'")
def test_time_limits_are_warned_of_by_default_and_carried_debts_where_nobody_sees_them():
    def said(**options):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            list(play(ShapeReward(Hunt(), "novelty", GRM, learner_gamma=GAMMA, **options), 3))
        return [str(one.message) for one in seen]

    (words,) = said()
    assert "a truncated episode settles its debt" in words
    (words,) = said(on_truncation="carry")
    assert "Pass observe_debt=True" in words
    assert said(on_truncation="settle") == said(on_truncation="carry", observe_debt=True) == []


def test_it_records_what_it_paid(tmp_path):
    pytest.importorskip("pyarrow")
    env = ShapeReward(Hunt(), "novelty", GRM, record=tmp_path / "log", learner_gamma=GAMMA)
    steps = sum(len(alive) for alive, *_ in play(env))
    env.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert len(found.episodes.leak) == 120
    assert steps > 500


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_passes_pettingzoos_own_test(capsys):
    from pettingzoo.test import parallel_api_test

    parallel_api_test(ShapeReward(Hunt(), "novelty", GRM, learner_gamma=GAMMA), num_cycles=50)
    assert "Passed Parallel API test" in capsys.readouterr().out


def test_a_game_of_pettingzoo_in_which_agents_die():
    raw = knights_archers_zombies.parallel_env(max_cycles=600)
    env = ShapeReward(raw, lambda obs, a, n, i: abs(n - obs).mean(axis=(1, 2)), GRM, learner_gamma=GAMMA)
    env.reset(seed=0)
    died = 0
    while env.agents:
        *_, ends, _, infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        died += sum(ends[agent] and not infos[agent]["truncated"] for agent in ends)
    assert died >= 1
    assert env.monitor.finished == len(env.possible_agents)
    assert env.monitor.broken == env.monitor.drops == 0


def test_bad_input_is_one_sentence():
    class Differ(Hunt):
        def action_space(self, agent):
            return spaces.Discrete(2 + (agent == "cat"))

    class Nested(Hunt):
        def observation_space(self, agent):
            return spaces.Dict(place=spaces.Discrete(2))

    class Half(Hunt):
        def step(self, actions):
            obs, rewards, ends, cuts, infos = super().step(actions)
            return obs, rewards, dict.fromkeys(ends, 0.5), cuts, infos

    env = ShapeReward(Half(), "novelty", GRM)
    env.reset()
    with pytest.raises(ValueError, match="an agent's end"):
        env.step(dict.fromkeys(AGENTS, 0))
    for env in (Differ(), Nested()):
        with pytest.raises(ValueError, match="don't fit into one batch"):
            ShapeReward(env, distance, GRM)
        ShapeReward(env, "novelty", GRM)
    with pytest.raises(TypeError, match="needs a parallel environment of PettingZoo"):
        ShapeReward(object(), "novelty", GRM)
    with pytest.raises(RuntimeError, match="call reset before the first step"):
        ShapeReward(Hunt(), "novelty", GRM).step({})
    for bonus, kind, words in (
        ("curiosity", KeyError, "the info of agent 'ant' has no 'curiosity' at step 0"),
        (lambda *t: np.ones(2), ValueError, r"shape \(2,\), not \(3,\)"),
        (lambda *t: np.full(3, np.nan), ValueError, "the intrinsic reward of environment 0 at step 0 is nan"),
    ):
        env = ShapeReward(Hunt(), bonus, GRM, learner_gamma=GAMMA)
        env.reset()
        with pytest.raises(kind, match=words):
            env.step(dict.fromkeys(AGENTS, 0))


def test_an_error_leaves_no_debt_to_the_next_episode():
    failing = []
    env = ShapeReward(Hunt(0.0), lambda *t: np.ones(3) if not failing else 1 / 0, LENT, learner_gamma=GAMMA)
    env.reset()
    while env.time < LIMIT - 1:
        env.step(dict.fromkeys(AGENTS, 0))
    failing.append(True)
    with (
        pytest.raises(RuntimeError, match="ZeroDivisionError"),
        pytest.warns(payback.ShapingWarning, match="was dropped"),
    ):
        env.step(dict.fromkeys(AGENTS, 0))
    assert not env.owed.any()
