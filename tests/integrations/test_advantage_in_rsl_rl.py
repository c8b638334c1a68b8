"""The subclass that docs/howto/advantage-side.md shows for rsl_rl, in its runner, against the definition.

Runs in the hosts' environment (make test-hosts).
"""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch
from rsl_rl.algorithms import PPO

from payback.check.advantage import advantage_by_loops

from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, Random, runner

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]
DELAY, LAM, B = 30, 0.95, 4
PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "advantage-side.md").read_text()
(BLOCK,) = re.findall(r"^```\{code-block\} python\n(.*?)^```", PAGE.split("## rsl_rl")[1], re.MULTILINE | re.DOTALL)
SHOWN = {"__name__": "shown"}
exec(BLOCK, SHOWN)


class BonusPPO(SHOWN["BonusPPO"]):
    """The page's, which keeps what it added."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.seen = []

    def compute_returns(self, obs):
        F, dones = (torch.stack(column) for column in zip(*self.collected, strict=True))
        super().compute_returns(obs)
        self.seen.append((F, dones, self.storage.advantages - (self.storage.returns - self.storage.values)))
        assert not self.collected


def trained(kind, iterations=3, file=None):
    torch.manual_seed(0)
    made = runner(Random(B), {"class_name": kind, "normalize_advantage_per_mini_batch": True}, 30)
    if file is not None:
        made.load(str(file))
    with redirect_stdout(StringIO()):
        made.learn(iterations)
    return made.alg


def varied(obs):
    return obs["policy"] @ torch.linspace(0, 1, obs["policy"].shape[-1])


@pytest.mark.parametrize("bonus", [SHOWN["your_bonus"], varied])
def test_it_adds_what_the_definition_says(monkeypatch, bonus):
    earlier = np.zeros(0)
    monkeypatch.setitem(SHOWN, "your_bonus", bonus)
    for F, dones, added in trained(BonusPPO).seen:
        expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, earlier=earlier)
        np.testing.assert_allclose(added.squeeze(-1).cpu().numpy(), expected, atol=1e-5)
        earlier = np.append(earlier, F.numpy())
        assert dones.any()
        assert not dones[-1].all()


def test_a_checkpoint_keeps_the_mean(monkeypatch, tmp_path):
    monkeypatch.setitem(SHOWN, "your_bonus", varied)
    first = trained(BonusPPO, 2)
    torch.save({**first.save(), "iter": 2, "infos": None}, tmp_path / "model.pt")
    later = trained(BonusPPO, 1, tmp_path / "model.pt")
    ((F, dones, added),), earlier = later.seen, np.concatenate([F.numpy().ravel() for F, *_ in first.seen])
    expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, earlier=earlier)
    np.testing.assert_allclose(added.squeeze(-1).cpu().numpy(), expected, atol=1e-5)
    anew, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM)
    assert np.abs(anew - expected).max() > 0.1


def test_no_bonus_is_the_plain_algorithm_to_the_bit(monkeypatch):
    monkeypatch.setitem(SHOWN, "your_bonus", lambda obs: torch.zeros(B))
    plain, none = (
        torch.cat([p.detach().flatten() for p in trained(kind).actor.parameters()]) for kind in (PPO, BonusPPO)
    )
    assert torch.equal(plain, none)
