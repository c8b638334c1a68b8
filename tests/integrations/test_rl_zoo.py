"""RL Zoo: the YAML of examples/rl_zoo_ppo.yml trains, and its callback refuses what breaks the law.

Runs in the hosts' environment (make test-hosts).
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("rl_zoo3", reason="make test-hosts", exc_type=ImportError)
    from rl_zoo3.train import train

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "examples" / "rl_zoo_ppo.yml"
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """Runs `python -m rl_zoo3.train` in this process, and returns the folder of the run."""
    monkeypatch.syspath_prepend(str(CONFIG.parent))

    def zoo(*more, config=CONFIG):
        line = ["--algo", "ppo", "--env", "CartPole-v1", "--conf-file", str(config), "-n", "1024", "--verbose", "0"]
        places = ["-f", str(tmp_path), "--seed", "1", "--device", "cpu", "--num-threads", "1"]
        monkeypatch.setattr(sys, "argv", ["train.py", *line, *places, *more])
        train()
        return tmp_path / "ppo" / "CartPole-v1_1"

    return zoo


def test_the_yaml_trains_and_reports_extrinsic_returns(zoo):
    folder = zoo("--eval-freq", "512", "--n-eval-envs", "1", "--eval-episodes", "3")
    assert (folder / "CartPole-v1.zip").exists()
    # CartPole pays 1 a step: the extrinsic return is the length, whatever the bonus.
    rows = [line.split(",") for line in (folder / "0.monitor.csv").read_text().splitlines()[2:]]
    assert len(rows) > 2
    assert all(float(reward) == float(length) for reward, length, _ in rows)
    evaluated = np.load(folder / "evaluations.npz")
    np.testing.assert_array_equal(evaluated["results"], evaluated["ep_lengths"])


def test_another_gamma_is_refused(zoo):
    with pytest.raises(ValueError, match=r"learner discounts with gamma 0.9, the loans are repaid with gamma 0.98"):
        zoo("--hyperparams", "gamma:0.9")


def test_normalised_rewards_outside_the_shaping_are_refused(zoo):
    """RL Zoo puts VecNormalize outside what `vec_env_wrapper` names."""
    with pytest.raises(ValueError, match="VecNormalize outside the shaping"):
        zoo("--hyperparams", "normalize:True")


def test_the_page_shows_the_files_as_they_are():
    page = (ROOT / "docs" / "howto" / "rl_zoo.md").read_text()
    yaml, code = (re.search(rf"```{kind}\n(.*?)```", page, re.S).group(1) for kind in ("yaml", "python"))
    assert yaml == CONFIG.read_text()
    assert code == (CONFIG.parent / "rl_zoo_shaping.py").read_text()
