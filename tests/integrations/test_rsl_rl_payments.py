"""rsl_rl: the algorithm pays what the ledger pays, stores it in float32, records it, and saves the mean without debts.

Runs in the hosts' environment (make test-hosts).
"""

from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch

import payback
from payback import audit_file
from payback.ledger import make

from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, Kept, Random, runner, shaped

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]


@pytest.mark.parametrize(("delay", "center", "on_truncation"), [(3, True, "settle"), (3, False, "carry")])
def test_it_pays_what_the_ledger_pays(delay, center, on_truncation):
    transform = payback.grm(GAMMA, delay, center=center)
    trained = runner(Random(4), {**shaped(transform, on_truncation), "class_name": Kept}, 50)
    with redirect_stdout(StringIO()):
        trained.learn(2)
    rows = (np.array(torch.stack(column)) for column in zip(*trained.alg.kept, strict=True))
    reward, dones, limit, F, paid, owed, stored, values = rows
    ledger = make(transform)
    state = ledger.init(np.zeros(4))
    for t in range(len(F)):
        ends, debt = dones[t].astype(bool), state.owed
        state, step = ledger.step(state, F[t].astype(float), ends, np.zeros_like(ends))
        # What rsl_rl's V(s_t) charges again at a carried time-out is given back.
        expected = step.shaped + GAMMA * debt * limit[t] * (on_truncation == "carry")
        np.testing.assert_allclose(paid[t], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(owed[t], state.owed, rtol=1e-5, atol=1e-6)
    assert limit.sum() > 5
    assert (dones.astype(bool) & ~limit).sum() > 10
    assert (F[dones.astype(bool)] == 0).all()
    bootstrap = GAMMA * values * limit * (on_truncation == "carry")
    np.testing.assert_allclose(stored, reward + paid + bootstrap, rtol=1e-4, atol=1e-5)
    assert trained.alg.monitor.broken == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.float64])
def test_what_is_paid_is_the_sum_whatever_the_rewards_dtype(dtype):
    """rsl_rl stores float32; loans of 0.3 in an integer would be 0."""

    class Cast(Random):
        def step(self, actions):
            obs, _, *rest = super().step(actions)
            return obs, torch.ones(self.num_envs, dtype=dtype), *rest

    bonus = {"bonus": lambda obs, a, n, e: torch.full((4,), 0.3)}
    match = payback.match_at_end(GAMMA)
    trained = runner(Cast(4), {**shaped(match), **bonus, "class_name": Kept}, 30)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    paid, stored = (np.array(torch.stack([row[k].double() for row in trained.alg.kept])) for k in (4, 6))
    np.testing.assert_allclose(stored, 1 + paid, rtol=1e-6)
    assert np.isclose(paid, 0.3, rtol=1e-6).sum() > 30
    assert trained.alg.monitor.broken == 0


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_it_records_what_it_paid(tmp_path, on_truncation):
    """A carried time-out is not settled, so that its episode is left unfinished in the log."""
    algorithm = {**shaped(payback.grm(GAMMA, 3), on_truncation), "record": tmp_path / "log"}
    trained = runner(Random(4), algorithm, 50)
    with redirect_stdout(StringIO()):
        trained.learn(2)
    trained.alg.monitor.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 4 * 100
    assert len(found.episodes.leak) > 10


def test_a_checkpoint_keeps_the_mean_and_drops_the_debts(tmp_path):
    algorithm = shaped(payback.grm(GAMMA, 3))
    first, second = (runner(Random(4), algorithm, 25) for _ in range(2))
    with redirect_stdout(StringIO()):
        first.learn(1)
    torch.save({**first.alg.save(), "iter": 1, "infos": None}, tmp_path / "model.pt")
    second.load(str(tmp_path / "model.pt"))
    assert float(second.alg.debts.loans[0].mean) == float(first.alg.debts.loans[0].mean) != 0
    assert second.alg.debts.owed.tolist() == [0.0] * 4
    assert first.alg.debts.owed.abs().sum() > 0
