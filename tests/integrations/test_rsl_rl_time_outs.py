"""rsl_rl: preferences are kept at time-outs, which its own order of bonus and bootstrap turns around.

Runs in the hosts' environment (make test-hosts).
"""

import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch

import payback

from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, LIMIT, B, example, runner, shaped

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]
MATCHES = {"pbim": payback.pbim(GAMMA, center=False), "grm-1": payback.grm(GAMMA, 1, center=False)}


class Table(torch.nn.Module):
    """A critic that is a table over lane and time: one that can be exact."""

    def __init__(self):
        super().__init__()
        self.values = torch.zeros(2 * LIMIT)

    def forward(self, obs):
        return obs["policy"] @ self.values[:, None]

    def get_hidden_state(self):
        return None

    def reset(self, dones=None, hidden_state=None):
        pass


def start_value(env, algorithm, right, sweeps=400):
    """The value of an episode's start under the policy that always goes right, or always left, at convergence.

    Whole episodes are played through `process_env_step`, their λ = 1 returns taken from `compute_returns` and written
    into the table, until it stands still.
    """
    alg = runner(env, {**algorithm, "lam": 1.0}, LIMIT).alg
    alg.critic = table = Table()
    seen = torch.zeros(2 * LIMIT)
    with torch.inference_mode():
        for _ in range(sweeps):
            obs, rows = env.get_observations(), []
            for _ in range(LIMIT):
                alg.act(obs)
                rows.append(obs["policy"][0].argmax())
                obs, reward, dones, extras = env.step(torch.full((B, 1), 1.0 if right else -1.0))
                alg.process_env_step(obs, reward, dones, extras)
            alg.compute_returns(obs)
            for row, value in zip(rows, alg.storage.returns[:, 0, 0], strict=True):
                table.values[row] = value
            alg.storage.clear()
            if torch.allclose(seen, table.values, atol=1e-5):
                break
            seen = table.values.clone()
    return float(table.values[0])


@pytest.mark.parametrize("name", MATCHES)
def test_the_naive_order_turns_the_preference_around(name):
    """Settled in the environment and then bootstrapped, the better lane looks worse: what ShapedPPO is there for."""
    match = MATCHES[name]
    right = start_value(example.Lanes(B, match), {"class_name": "PPO"}, True)
    left = start_value(example.Lanes(B, match), {"class_name": "PPO"}, False)
    assert right < left - 0.5


@pytest.mark.parametrize("name", MATCHES)
def test_settled_time_outs_keep_every_value(name):
    """The time limit is part of the task: Σ γ^t 0.05 over ten steps, with the bonus as without."""
    right = start_value(example.Lanes(B), shaped(MATCHES[name]), True)
    left = start_value(example.Lanes(B), shaped(MATCHES[name]), False)
    assert right == pytest.approx(0.05 * (1 - GAMMA**LIMIT) / (1 - GAMMA), abs=1e-4)
    assert left == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("delay", [1, 4])
def test_carried_time_outs_keep_every_value(delay):
    """The time limit is not part of the task: 0.05 / (1 − γ), as rsl_rl's own PPO values it without a bonus."""
    match = payback.grm(GAMMA, delay, center=False)
    assert start_value(example.Lanes(B), shaped(match, "carry"), True) == pytest.approx(0.05 / (1 - GAMMA), rel=1e-3)


def test_the_example_goes_right_where_the_naive_order_goes_left():
    shares = example.main(40)
    assert shares["no bonus"] > 0.9
    assert shares["ShapedPPO"] > 0.9
    assert shares["bonus settled, then bootstrapped"] < 0.5
