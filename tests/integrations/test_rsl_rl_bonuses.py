"""rsl_rl: its own RND is shaped, every ready bonus reads its observations, and an episodic one is told of every end.

Runs in the hosts' environment (make test-hosts).
"""

import re
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch
from rsl_rl.runners import OnPolicyRunner

import payback
from payback.bonuses import Count, EpisodicCount, Recency, SimHash
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD

from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, Kept, Random, example, runner, shaped

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]


def test_its_own_rnd_is_shaped_and_logged_as_it_was():
    rnd = {"num_outputs": 4, "predictor_hidden_dims": [8], "target_hidden_dims": [8], "weight": 1.0}
    algorithm = {"class_name": Kept, "transform": payback.grm(GAMMA, 3), "rnd_cfg": rnd}
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfg = {**example.config(algorithm), "num_steps_per_env": 30}
        cfg["obs_groups"] = {**cfg["obs_groups"], "rnd_state": ["policy"]}
        trained = OnPolicyRunner(Random(4), cfg)
        trained.learn(2)
    alg = trained.alg
    assert alg.rnd is not None
    reward, F, paid, stored = (torch.stack([row[k] for row in alg.kept]) for k in (0, 3, 4, 6))
    torch.testing.assert_close(stored, reward + paid)  # once
    assert F.std() > 0
    assert (paid - F).abs().max() > 0.01
    assert alg.monitor.broken == 0


def test_the_page_trains():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "rsl_rl.md").read_text()
    shown: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S).group(1), shown)
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfg = example.config(shown["algorithm"])
        cfg["obs_groups"] = {**cfg["obs_groups"], "rnd_state": ["policy"]}
        trained = OnPolicyRunner(Random(4), cfg)
        trained.learn(1)
    assert trained.alg.shaped_rewards.shape == (4,)


def test_an_episodic_bonus_is_told_of_every_end():
    class Told(EpisodicCount):
        def __init__(self):
            super().__init__()
            self.ends, self.valid = [], []

        def __call__(self, obs, action, next_obs, extras):
            self.valid.append(extras["valid"])
            return super().__call__(obs["policy"].numpy(), action, next_obs["policy"].numpy(), extras)

        def reset(self, where):
            self.ends.append(where.copy())
            super().reset(where)

    trained = runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "class_name": Kept, "bonus": Told()}, 30)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    bonus = trained.alg.bonus
    dones = np.stack([np.array(row[1]) for row in trained.alg.kept]).astype(bool)
    np.testing.assert_array_equal(np.stack(bonus.ends), dones[dones.any(axis=1)])
    np.testing.assert_array_equal(np.stack(bonus.valid), ~dones)


class Actions:
    """A space of one number, as rsl_rl's environments take it here; rsl_rl itself has no spaces."""

    shape = (1,)


READY = {make.__name__: make for make in (Count, EpisodicCount, Recency, SimHash)}
READY |= {make.__name__: lambda make=make: make(warmup=30) for make in (RND, NovelD)}
READY |= {make.__name__: lambda make=make: make(Actions(), warmup=30) for make in (ICM, RIDE, E3B, Disagreement)}


@pytest.mark.parametrize("name", READY)
def test_every_ready_bonus_reads_its_tensordicts(name):
    """Without view=, and past call 32, at which networks learn, although rsl_rl collects in inference mode."""
    bonus = READY[name]()
    trained = runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "class_name": Kept, "bonus": bonus}, 40)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    F = torch.stack([row[3] for row in trained.alg.kept])
    assert F.std() > 0
    assert trained.alg.monitor.broken == 0


@pytest.mark.filterwarnings("ignore:.*truncated episode:payback.ShapingWarning")
def test_a_key_of_extras_is_a_bonus():
    paid = []
    for bonus in ("novelty", lambda obs, actions, next_obs, extras: extras["novelty"]):
        trained = runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "class_name": Kept, "bonus": bonus}, 30)
        with redirect_stdout(StringIO()):
            trained.learn(1)
        assert trained.alg.monitor.broken == 0
        paid.append(torch.stack([row[3] for row in trained.alg.kept]))
    ended = torch.stack([row[1] for row in trained.alg.kept]).bool()
    torch.testing.assert_close(torch.where(ended, 0.0, paid[0]), paid[1])
    assert (paid[0][ended] > 0).all(), "the environment knows its bonus of an episode's last step"
    with (
        pytest.raises(KeyError, match="extras has no 'nowhere'; the environment gives novelty, "),
        redirect_stdout(StringIO()),
    ):
        runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "bonus": "nowhere"}, 30).learn(1)
