"""The examples run, and learn what they set out to learn."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("minigrid")
EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gymnasium_q_learning_learns_the_lake():
    assert load("gymnasium_q_learning").main() > 0.8


def test_ppo_rnd_minigrid_learns():
    assert load("ppo_rnd_minigrid").main(["--steps", "20000"]) > 0.85


def test_ppo_rnd_minigrid_pays_the_same_in_both_forms():
    """Step by step and rollout by rollout, over rollout boundaries; the learners differ by rounding only."""
    kept = {"step": [], "rollout": []}
    for form, rewards in kept.items():
        line = ["--form", form, "--steps", "1024", "--rollout", "64", "--envs", "4"]
        load("ppo_rnd_minigrid").main(line, keep=lambda r, d, rewards=rewards: rewards.append((r.numpy(), d.numpy())))
    (a, ends), (b, other_ends) = (map(np.concatenate, zip(*rows, strict=True)) for rows in kept.values())
    np.testing.assert_array_equal(ends, other_ends)
    np.testing.assert_allclose(a, b, atol=1e-4)
    assert ends.sum() > 4
    assert np.abs(a).max() > 0.001


@pytest.mark.parametrize("method", ["none", "raw", "grm-adv"])
def test_ppo_rnd_minigrid_learns_with_every_method(method):
    assert load("ppo_rnd_minigrid").main(["--steps", "20000", "--method", method]) > 0.85


def test_grm_adv_leaves_the_rewards_to_the_task():
    kept = []
    line = ["--method", "grm-adv", "--novelty", "count", "--steps", "1024", "--envs", "4", "--rollout", "64"]
    load("ppo_rnd_minigrid").main(line, keep=lambda rewards, dones: kept.append((rewards.numpy(), dones.numpy())))
    rewards, dones = map(np.concatenate, zip(*kept, strict=True))
    assert dones.any()
    assert not rewards[~dones].any()


def test_the_curves_are_drawn(tmp_path):
    pytest.importorskip("altair")
    example = load("ppo_rnd_minigrid")
    example.compare(example.arguments(["--steps", "4096"]), tmp_path / "curves.svg", least=0)
    drawn = (tmp_path / "curves.svg").read_text()
    assert all(name in drawn for name in ("none", "raw, α = 0.02", "grm, α = 0.1", "grm-adv, α = 0.1"))
