"""Potential-based shaping: γΦ(s′) − Φ(s) in Gymnasium and SB3 leaves the optimal policies of random MDPs alone."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

pytest.importorskip("stable_baselines3")
from stable_baselines3.common.vec_env import DummyVecEnv

import payback.integrations.potential
from payback.integrations import sb3
from payback.integrations.gymnasium import ShapeVectorWithPotential, ShapeWithPotential
from payback.mdp import MDP, Shaping, compare, ended, solve
from payback.theory import shape_by_potential

from .gymnasium_vectors import B, drive

GAMMA, HORIZON, STATES = 0.9, 3, 5


def random_mdp(rng):
    """Three states, two ends and two actions with random odds and rewards."""
    transitions = {
        s: {
            a: tuple(
                (p, int(to), float(rng.normal()))
                for p, to in zip(rng.dirichlet([1, 1]), rng.choice(STATES, 2, replace=False), strict=True)
            )
            for a in range(2)
        }
        for s in range(3)
    }
    return MDP(transitions, start=0, horizon=HORIZON)


class Replay(gym.Env):
    """Walks through a history of an MDP: its states are the observations; time is up in one of two ways."""

    observation_space = gym.spaces.Box(0, STATES, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, mdp, history, truncates):
        self.mdp, self.history, self.truncates = mdp, history, truncates

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.array([self.history[0]], float), {}

    def step(self, action):
        self.t += 1
        state = self.history[2 * self.t]
        late = self.t == self.mdp.horizon and state in self.mdp.transitions
        over = ended(self.mdp, self.history[: 2 * self.t + 1])
        return np.array([state], float), 0.0, over and not (late and self.truncates), late and self.truncates, {}


def gymnasium_one(make, potential):
    env = ShapeWithPotential(make(), potential, gamma=GAMMA)
    env.reset()
    return lambda a: env.step(a)[1]


def gymnasium_vector(make, potential):
    env = ShapeVectorWithPotential(SyncVectorEnv([make]), potential, gamma=GAMMA)
    env.reset()
    return lambda a: env.step(np.array([a]))[1][0]


def sb3_vector(make, potential):
    env = sb3.ShapeVectorWithPotential(DummyVecEnv([make]), potential, gamma=GAMMA)
    env.reset()
    return lambda a: env.step(np.array([a]))[1][0]


HOSTS = [gymnasium_one, gymnasium_vector, sb3_vector]


def bonus_of(host, mdp, phi, truncates=False):
    """F of a history's last transition, as the wrapper pays it."""

    def bonus(history, is_last):
        step = host(lambda: Replay(mdp, history, truncates), lambda obs: phi[obs[:, 0].astype(int)])
        return [float(step(a)) for a in history[1::2]][-1]

    return bonus


def verdicts(host, count=12):
    rng = np.random.default_rng(0)
    for _ in range(count):
        mdp, phi = random_mdp(rng), 3 * rng.normal(size=STATES)
        yield compare(mdp, GAMMA, Shaping(bonus_of(host, mdp, phi)), tolerance=1e-5)


@pytest.mark.parametrize("host", HOSTS)
def test_optimal_policies_are_those_of_the_task(host):
    found = list(verdicts(host))
    assert all(verdict.preserved for verdict in found), found
    assert sum(verdict.histories for verdict in found) > 100


@pytest.mark.parametrize("host", HOSTS)
def test_a_potential_kept_at_an_end_is_caught(host, monkeypatch):
    wrong = lambda phi, after, done, gamma: shape_by_potential(phi, after, gamma)  # noqa: E731
    monkeypatch.setattr(payback.integrations.potential, "shape_episodic", wrong)
    assert sum(not verdict.preserved for verdict in verdicts(host)) > 3


@pytest.mark.parametrize("host", HOSTS)
def test_a_truncated_episode_keeps_the_potential_that_the_bootstrapped_value_repays(host):
    """The learner adds γV(s_N), and its V is the task's less Φ; with Φ = 0 there it would be paid twice."""
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(8):
        mdp, phi, V = random_mdp(rng), 3 * rng.normal(size=STATES), rng.normal(size=STATES)
        F = bonus_of(host, mdp, phi, truncates=True)

        def bootstrap(history, values, mdp=mdp):
            cut = history[-1] in mdp.transitions and len(history) // 2 == mdp.horizon
            return GAMMA * values[history[-1]] * cut

        plain = solve(mdp, GAMMA, Shaping(lambda h, _, V=V: bootstrap(h, V)))
        right = solve(mdp, GAMMA, Shaping(lambda h, is_last, V=V, F=F, v=V - phi: F(h, is_last) + bootstrap(h, v)))
        wrong = solve(mdp, GAMMA, Shaping(lambda h, is_last, V=V, F=F: F(h, is_last) + bootstrap(h, V)))
        for history in plain.q:
            best = plain.optimal(history, 1e-5)
            assert right.optimal(history, 1e-5) == best
            broken += wrong.optimal(history, 1e-5) != best
    assert broken > 3


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_row_of_a_vector_pays_the_difference(walk, mode):
    envs = ShapeVectorWithPotential(SyncVectorEnv([walk] * B, autoreset_mode=mode), lambda obs: obs[:, 0], gamma=GAMMA)
    counts = np.zeros(3)
    for row in drive(envs, mode):
        last, ends, info = row["next_obs"].copy(), row["terminated"], row["info"]
        over = ends | row["truncated"]
        if mode is AutoresetMode.SAME_STEP:
            for k in np.flatnonzero(over):
                last[k] = info["final_obs"][k]
        after = last[:, 0].astype(float)
        expected = np.where(row["reset_row"], 0.0, GAMMA * after * ~ends - row["obs"][:, 0])
        np.testing.assert_allclose(info["shaped"], expected, atol=1e-6)
        np.testing.assert_allclose(row["reward"], info["extrinsic"] + info["shaped"], atol=1e-6)
        np.testing.assert_allclose(info["owed"], np.where(row["reset_row"] | ends, 0, after), atol=1e-6)
        np.testing.assert_allclose(info["intrinsic"], np.where(row["reset_row"], 0, after), atol=1e-6)
        np.testing.assert_array_equal(info["truncated"], row["truncated"])
        counts += ends.sum(), (row["truncated"] & ~ends).sum(), row["reset_row"].sum()
    assert (counts[:2] > 5).all()
    assert (counts[2] > 5) is np.bool_(mode is AutoresetMode.NEXT_STEP)


def test_an_episode_that_is_reset_by_hand_has_no_reset_row(walk):
    mode = AutoresetMode.NEXT_STEP
    envs = ShapeVectorWithPotential(SyncVectorEnv([walk] * B, autoreset_mode=mode), lambda obs: obs[:, 0], gamma=GAMMA)
    envs.reset(seed=0)
    ended = np.zeros(B, bool)
    while not ended.any():
        *_, terminated, truncated, _ = envs.step(np.ones(B, int))
        ended = terminated | truncated
    before, _ = envs.reset(options={"reset_mask": ended})
    before = before.copy()
    after, _, terminated, _, info = envs.step(np.ones(B, int))
    np.testing.assert_allclose(info["shaped"], GAMMA * after[:, 0] * ~terminated - before[:, 0], atol=1e-6)


def test_sb3_shows_each_payment_in_float32_and_keeps_its_truncations(walk):
    env = sb3.ShapeVectorWithPotential(DummyVecEnv([walk] * B), lambda obs: obs[:, 0], gamma=GAMMA)
    env.seed(0)
    obs, cuts = env.reset(), 0
    for _ in range(60):
        before, (obs, reward, done, infos) = obs.copy(), env.step(np.ones(B, int))
        for k, info in enumerate(infos):
            cut = done[k] and info["TimeLimit.truncated"]
            last = info["terminal_observation"] if done[k] else obs[k]
            paid = GAMMA * last[0] * (not done[k] or cut) - before[k, 0]
            assert info["shaped"] == pytest.approx(paid, abs=1e-6)
            assert reward[k] == pytest.approx(info["extrinsic"] + paid, rel=1e-5, abs=1e-5)
            assert info["truncated"] == cut
            cuts += cut
    assert reward.dtype == np.float32
    assert cuts > 5


BAD = {
    "a scalar": (lambda obs: 1.0, ValueError, r"the potential at step 0 has shape \(\), not \(3,\)"),
    "a column": (lambda obs: obs[:, :1], ValueError, r"shape \(3, 1\), not \(3,\)"),
    "NaN": (lambda obs: np.array([0.0, np.nan, 0.0]), ValueError, "the potential of environment 1 at step 0 is nan"),
    "text": (lambda obs: "high", TypeError, "the potential at step 0 is a str, not an array of 3 numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_potential_is_one_sentence(walk, name):
    potential, kind, words = BAD[name]
    for env in (
        ShapeVectorWithPotential(SyncVectorEnv([walk] * B), potential, gamma=GAMMA),
        sb3.ShapeVectorWithPotential(DummyVecEnv([walk] * B), potential, gamma=GAMMA),
    ):
        with pytest.raises(kind, match=words):
            env.reset()


@pytest.mark.parametrize("gamma", [0.0, 1.5, np.nan])
def test_a_gamma_out_of_range_is_refused(walk, gamma):
    with pytest.raises(ValueError, match="gamma"):
        ShapeWithPotential(walk(), lambda obs: obs[:, 0], gamma=gamma)


def test_what_is_no_environment_or_no_function_is_refused(walk):
    vector = SyncVectorEnv([walk])
    with pytest.raises(TypeError, match="use ShapeVectorWithPotential"):
        ShapeWithPotential(vector, lambda obs: obs[:, 0], gamma=GAMMA)
    with pytest.raises(TypeError, match="use ShapeWithPotential"):
        ShapeVectorWithPotential(walk(), lambda obs: obs[:, 0], gamma=GAMMA)
    with pytest.raises(TypeError, match="use make_vec_env"):
        sb3.ShapeVectorWithPotential(vector, lambda obs: obs[:, 0], gamma=GAMMA)
    with pytest.raises(TypeError, match="potential must be a function"):
        ShapeWithPotential(walk(), "distance", gamma=GAMMA)
