"""The examples run, and learn what they set out to learn."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("minigrid")
EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [
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
