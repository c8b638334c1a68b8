"""The subclass that docs/howto/advantage-side.md shows for rsl_rl, in its runner, against the definition.

Runs in the hosts' environment (make test-hosts).
"""

from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch
from rsl_rl.algorithms import PPO

import payback
from payback.check.advantage import advantage_by_loops

from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, Random, runner

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]
DELAY, LAM, B = 3, 0.9, 4


class BonusPPO(PPO):
    size = 1.0

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.estimator = payback.grm_adv(GAMMA, DELAY, LAM)
        self.state, self.collected, self.seen = self.estimator.init(torch.zeros(B)), [], []

    def process_env_step(self, obs, rewards, dones, extras):
        self.collected.append((self.size * extras["novelty"], dones.bool()))
        super().process_env_step(obs, rewards, dones, extras)

    def compute_returns(self, obs):
        super().compute_returns(obs)
        F, dones = (torch.stack(column) for column in zip(*self.collected, strict=True))
        self.state, advantage, _ = self.estimator.estimate(self.state, F, dones)
        self.storage.advantages += advantage.unsqueeze(-1)
        self.seen.append((F, dones, self.storage.advantages - (self.storage.returns - self.storage.values)))
        self.collected.clear()


class NoBonusPPO(BonusPPO):
    size = 0.0


def trained(kind):
    torch.manual_seed(0)
    made = runner(Random(B), {"class_name": kind, "normalize_advantage_per_mini_batch": True}, 30)
    with redirect_stdout(StringIO()):
        made.learn(3)
    return made.alg


def test_it_adds_what_the_definition_says():
    earlier = np.zeros(0)
    for F, dones, added in trained(BonusPPO).seen:
        expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, earlier=earlier)
        np.testing.assert_allclose(added.squeeze(-1).cpu().numpy(), expected, atol=1e-5)
        earlier = np.append(earlier, F.numpy())
        assert dones.any()
        assert not dones[-1].all()


def test_no_bonus_is_the_plain_algorithm_to_the_bit():
    plain, none = (
        torch.cat([p.detach().flatten() for p in trained(kind).actor.parameters()]) for kind in (PPO, NoBonusPPO)
    )
    assert torch.equal(plain, none)
