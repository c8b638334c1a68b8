"""What the RLlib callback pays in real training runs, reports and records, in an environment of its own.

RLlib pins Gymnasium 1.2.2: make test-hosts.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)

import payback
from payback.integrations.rllib import centers_of

from .own_match import halves
from .rllib_walk import GAMMA, Log, configuration, finished

EXAMPLE = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def config(walk):
    return configuration(walk)


@pytest.mark.parametrize(
    ("transform", "on_truncation"),
    [
        (payback.pbim(GAMMA), "settle"),
        (payback.grm(GAMMA, 3), "settle"),
        (payback.chain(payback.center(), halves(np, GAMMA)), "settle"),
        (payback.grm(GAMMA, 3, center=False), "carry"),
    ],
)
def test_debts_survive_the_cutting_of_episodes(config, transform, on_truncation):
    algorithm = config(transform, on_truncation=on_truncation).build_algo()
    for _ in range(4):
        algorithm.train()
    cut = limits = 0
    for chunks, infos, rewards in finished():
        shaped = rewards - [info["extrinsic"] for info in infos]
        weights = GAMMA ** np.arange(len(shaped) + 1)
        debt = infos[-1]["owed"]
        assert abs(weights[:-1] @ shaped - weights[-1] * debt) <= 1e-5 * (weights[:-1] @ np.abs(shaped) + 1)
        assert (chunks[-1].is_truncated and not chunks[-1].is_terminated) == (debt != 0)
        assert not (on_truncation == "settle" and chunks[-1].is_truncated)
        np.testing.assert_allclose([info["intrinsic"] for info in infos], [info["novelty"] for info in infos])
        cut += len(chunks) > 1
        limits += infos[-1]["truncated"]
    assert cut > 5
    assert limits > 3
    count = sum(len(chunk) for chunks in Log.chunks.values() for chunk in chunks)
    for center in centers_of(algorithm.env_runner.shaping.shaping_state.loans):
        assert int(center.count) == count
    assert algorithm.env_runner.shaping.monitor.drops == 0
    algorithm.stop()


def test_the_extrinsic_return_is_reported(config):
    """With γ = 1 loans and repayments of an episode add up to 0: RLlib's own metric is then the extrinsic one."""
    algorithm = config(payback.pbim(1.0, center=False), gamma=1.0).build_algo()
    for _ in range(3):
        metrics = algorithm.train()["env_runners"]
        assert metrics["extrinsic_return_mean"] == pytest.approx(metrics["episode_return_mean"])
    shaped = [info["shaped"] for _, infos, _ in finished() for info in infos]
    assert np.abs(shaped).max() > 0.1
    algorithm.stop()


def test_evaluation_is_not_shaped(config):
    algorithm = config(payback.grm(GAMMA, 3)).evaluation(evaluation_interval=1, evaluation_duration=4).build_algo()
    algorithm.train()
    assert len(Log.evaluated) >= 4
    for chunk in Log.evaluated:
        assert not any("shaped" in info for info in chunk.get_infos())
        np.testing.assert_allclose(chunk.get_rewards(), [obs[0] for obs in chunk.get_observations()[1:]], rtol=1e-5)
    algorithm.stop()


@pytest.mark.parametrize("runners", [0, 2])
def test_it_records_what_it_paid(config, runners, tmp_path):
    from payback import audit_file
    from payback.auditing.read import parts_of

    folder = tmp_path / "log"
    algorithm = config(payback.grm(GAMMA, 3), runners=runners, log=(), record=str(folder)).build_algo()
    for _ in range(3):
        algorithm.train()
    sampled = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    algorithm.stop()
    found = audit_file(folder)
    assert found.ok
    assert found.rows == sampled
    assert len(found.episodes.leak) > 10
    assert len({part.parent for part in parts_of(folder)}) == max(runners, 1)


def test_the_example_learns():
    spec = importlib.util.spec_from_file_location("rllib_ppo", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    returns = example.main(iterations=4, runners=0)
    assert returns[-1] > 1.5 * returns[0]
