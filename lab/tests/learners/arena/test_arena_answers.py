"""The methods on a problem with a known answer (tabular.py): leave at once, though staying pays a bonus."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from payback_lab.learners.arena.named import method_of

pytestmark = pytest.mark.slow

TABULAR = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "tabular.py")))
CONFIG = TABULAR.CONFIG


def leaves(name: str, policy: int = 0, **changes: float) -> float:
    """Return how likely a method's agent is to leave at once after training."""
    tables, _ = TABULAR.trained(method_of(name, replace(CONFIG, **changes)))
    return TABULAR.leaves(tables, policy)


def test_the_raw_bonus_keeps_the_agent_from_leaving() -> None:
    assert leaves("im") < 0.05


def test_repayment_that_is_phased_in_ends_in_the_optimum() -> None:
    assert CONFIG.fade_end == 0
    assert leaves("phased") > 0.95


def test_adops_ends_in_the_optimum() -> None:
    """ε is above the weight of the entropy (0.003): see the next test."""
    assert leaves("adops", adops_epsilon=0.02) > 0.95


def test_with_a_tiny_epsilon_adops_only_keeps_the_bonus_from_deciding() -> None:
    """With the notes' ε = 1e-7 both actions are worth the same to it here, so that the entropy decides: near 1/2."""
    assert CONFIG.adops_epsilon == 1e-7
    assert 0.4 < leaves("adops") < 0.8


def test_eipo_leaves_and_its_multiplier_moves() -> None:
    tables, run = TABULAR.trained(method_of("eipo", CONFIG))
    assert run.state.multiplier != pytest.approx(CONFIG.eipo_multiplier, abs=1e-4)
    assert min(TABULAR.leaves(tables, policy) for policy in (0, 1)) > 0.9


def test_two_critics_stay_for_the_bonus_and_leave_once_it_is_taken_back() -> None:
    """The last eighth of training, in which a method that is taken back is paid nothing for staying."""
    method = method_of("two-critics-0.99-back", CONFIG)
    assert leaves("two-critics-0.99") < 0.05
    tables, _ = TABULAR.trained(method, begin=CONFIG.total_steps // CONFIG.samples * 7 // 8)
    assert TABULAR.leaves(tables) > 0.95
