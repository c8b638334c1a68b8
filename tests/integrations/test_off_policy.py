"""Learning from a replay buffer, on two small MDPs with known values: what holds, and what does not.

The fork. From the start, action 0 leads to the hall and is paid nothing, action 1 also leads there and is paid a bonus
of 1; the hall's actions 0 and 1 end the episode with 0 and .5. The start's action 0 pays r = .2, action 1 nothing. So
Q*(start) = (.2 + γ·.5, γ·.5), Q*(hall) = (0, .5), and the bonus is repaid in the hall.
"""

import gymnasium as gym
import numpy as np
import pytest

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward

GAMMA = 0.9
MATCHES = {
    "after one": payback.match_after(GAMMA, 1),
    "at end": payback.match_at_end(GAMMA),
    "geometric": payback.match_geometric(GAMMA, 0.5),
}
START = np.array([0.2 + GAMMA * 0.5, GAMMA * 0.5])
HALL = np.array([0.0, 0.5])
pytestmark = [pytest.mark.filterwarnings("ignore::payback.InterestWarning", "ignore::DeprecationWarning")]


class Fork(gym.Env):
    """The fork; observations are one-hot. Continuous actions above 0 count as action 1."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def __init__(self, continuous=False):
        self.continuous = continuous
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32) if continuous else gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.hall = False
        return np.array([1, 0], np.float32), {}

    def step(self, action):
        choice = int(action[0] > 0) if self.continuous else int(action)
        obs, last = np.array([0, 1], np.float32), self.hall
        self.hall = True
        reward = 0.5 * choice if last else 0.2 * (1 - choice)
        return obs, reward, last, False, {"bonus": 0.0 if last else float(choice)}


def replay(match, observe_debt, episodes=40):
    """Transitions (obs, action, reward, next obs, terminated) of random actions, and where each episode begins."""
    env, chance, rows = ShapeReward(Fork(), "bonus", match, observe_debt=observe_debt), np.random.default_rng(0), []
    for _ in range(episodes):
        (obs, _), ended = env.reset(), False
        while not ended:
            action = int(chance.integers(2))
            after, reward, ended, _, _ = env.step(action)
            rows.append((tuple(np.round(obs, 6).tolist()), action, reward, tuple(np.round(after, 6).tolist()), ended))
            obs = after
    return rows


def q_learning(rows, n_steps, seed, sweeps=300):
    """The fixed point of tabular Q-learning from a buffer that is replayed in random order."""
    Q, chance = {row[0]: np.zeros(2) for row in rows}, np.random.default_rng(seed)
    counts = {}
    for sweep in range(sweeps):
        for k in chance.permutation(len(rows)):
            target, weight, last = 0.0, 1.0, k
            for last in range(k, min(k + n_steps, len(rows))):
                target, weight = target + weight * rows[last][2], weight * GAMMA
                if rows[last][4]:
                    break
            if not rows[last][4]:
                target += weight * Q[rows[last][3]].max()
            key = rows[k][:2]
            counts[key] = counts.get(key, 0) + (sweep > sweeps // 2)
            rate = 1 / max(counts[key], 1) if sweep > sweeps // 2 else 0.5
            Q[key[0]][key[1]] += rate * (target - Q[key[0]][key[1]])
    return Q


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", MATCHES)
def test_with_the_debt_in_sight_a_history_is_worth_its_extrinsic_value_less_its_debt(name, seed):
    for obs, values in q_learning(replay(MATCHES[name], observe_debt=True), 1, seed).items():
        extrinsic = START if obs[0] else HALL
        np.testing.assert_allclose(values, extrinsic - obs[2], atol=2e-3)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", MATCHES)
def test_n_step_targets_add_nothing_of_their_own(name, seed):
    """n-step targets follow the behaviour's actions, with a bonus or without: the two differ by the debt alone."""
    shaped = q_learning(replay(MATCHES[name], observe_debt=True), 2, seed)
    bare = q_learning(replay(payback.chain(payback.scale(0.0), MATCHES[name]), observe_debt=True), 2, seed)
    # From the start both targets hold the whole episode, so that the debt, which is 0 there, is all that differs.
    np.testing.assert_allclose(shaped[(1.0, 0.0, 0.0)], bare[(1.0, 0.0, 0.0)], atol=2e-3)
    for obs, values in shaped.items():
        if not obs[0]:
            np.testing.assert_allclose(values, HALL - obs[2], atol=2e-3)


def test_without_the_debt_in_sight_the_greedy_policy_changes():
    """One-step targets: the hall is worth .5 less the debt of an average history, so the bonus looks half free."""
    Q = q_learning(replay(MATCHES["after one"], observe_debt=False), 1, seed=0)
    start, hall = Q[(1.0, 0.0)], Q[(0.0, 1.0)]
    assert START.argmax() == 0
    assert start.argmax() == 1, "the bonus has changed the greedy action"
    assert hall.max() < 0.2, "Q*(hall) = .5, less about half of the debt 1/γ"


def make(observe_debt, continuous=False, envs=4):
    from stable_baselines3.common.vec_env import DummyVecEnv

    from payback.integrations.sb3 import ShapeVectorReward

    return ShapeVectorReward(
        DummyVecEnv([lambda: Fork(continuous)] * envs), "bonus", MATCHES["after one"], observe_debt=observe_debt
    )


@pytest.fixture
def sb3():
    module = pytest.importorskip("stable_baselines3", reason="pip install payback[sb3]")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield module
    torch.set_num_threads(threads)


def returns_of(sb3, n_steps):
    """Return the arguments for n-step returns, which Stable-Baselines3 has since 2.7."""
    if n_steps > 1 and tuple(map(int, sb3.__version__.split(".")[:2])) < (2, 7):
        pytest.skip("needs Stable-Baselines3 2.7")
    return {"n_steps": n_steps} if n_steps > 1 else {}


N_STEPS = [1, pytest.param(2, marks=pytest.mark.slow)]
"""`make test` has tables that learn from n-step targets."""
OPTIONS = {
    "gamma": GAMMA, "seed": 0, "learning_starts": 400, "buffer_size": 4000, "batch_size": 128, "train_freq": 1,
    "learning_rate": 3e-3, "policy_kwargs": {"net_arch": [32]},
}  # fmt: skip
PLACES = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1 / GAMMA]], np.float32)
"""The start; the hall without a debt; the hall with one."""
KNOWN = np.array([START, HALL, HALL - 1 / GAMMA])


@pytest.mark.parametrize("n_steps", N_STEPS)
def test_dqn(sb3, n_steps):
    import torch

    from payback.integrations.sb3 import CheckShaping

    model = sb3.DQN(
        "MlpPolicy", make(True), exploration_initial_eps=1.0, exploration_final_eps=1.0, target_update_interval=200,
        gradient_steps=2, **returns_of(sb3, n_steps), **OPTIONS,
    )  # fmt: skip
    model.learn(8000, callback=CheckShaping())
    with torch.no_grad():
        Q = model.q_net(torch.as_tensor(PLACES)).numpy()
    # With two steps the start's targets hold the hall's random action: .5 · ½ instead of .5.
    known = KNOWN if n_steps == 1 else KNOWN - np.array([[GAMMA * 0.25], [0], [0]])
    np.testing.assert_allclose(Q, known, atol=0.08)
    assert Q[0].argmax() == START.argmax()


def test_dqn_that_does_not_see_the_debt_is_warned_and_prefers_the_bonus(sb3):
    import torch

    from payback.integrations.sb3 import CheckShaping

    model = sb3.DQN(
        "MlpPolicy", make(False), exploration_initial_eps=1.0, exploration_final_eps=1.0, target_update_interval=200,
        gradient_steps=2, **OPTIONS,
    )  # fmt: skip
    with pytest.warns(ShapingWarning, match="does not see the debt"):
        model.learn(6000, callback=CheckShaping())
    with torch.no_grad():
        start = model.q_net(torch.as_tensor(PLACES[:1, :2])).numpy()[0]
    assert start.argmax() != START.argmax()


@pytest.mark.parametrize("n_steps", N_STEPS)
def test_sac(sb3, n_steps):
    """The critics of SAC, at an entropy coefficient of nearly 0, for the actions −.7 and .7 at the three places."""
    import torch

    from payback.integrations.sb3 import CheckShaping

    model = sb3.SAC(
        "MlpPolicy",
        make(True, continuous=True),
        ent_coef=1e-4,
        gradient_steps=1,
        tau=0.02,
        **returns_of(sb3, n_steps),
        **OPTIONS,
    )
    model.learn(6000, callback=CheckShaping())
    with torch.no_grad():
        rows = [
            torch.min(*model.critic(torch.as_tensor(PLACES), torch.full((3, 1), action)))[:, 0]
            for action in (-0.7, 0.7)
        ]
    Q = torch.stack(rows, dim=1).numpy()
    # The greedy action of each place is well learned; the other one is rarely tried.
    greedy = KNOWN.argmax(axis=1)
    np.testing.assert_array_equal(Q.argmax(axis=1), greedy)
    np.testing.assert_allclose(Q[range(3), greedy], KNOWN.max(axis=1), atol=0.12)
