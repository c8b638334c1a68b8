"""The delay study: its figures are the committed ones, and its rules decide made-up results as they must."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from payback_lab.claims.claim import DecidedClaim
from payback_lab.claims.evidence import Cell
from payback_lab.experiments.delay.experiment import ALL, CELL_BY_CELL, CLAIMS, HIGH, LOW, MIDDLE, ONE, ORDERINGS
from payback_lab.experiments.delay.felt import NAMES, felt, repayment_noise, shares
from payback_lab.experiments.delay.ordering import correlation, felt_by_cell, middle
from payback_lab.runs import Result

PREDICTIONS = Path(__file__).parents[3] / "docs" / "predictions.md"


def test_the_figures_are_those_committed_before_the_runs():
    found = re.findall(r"^\| ([\d.]+) \| `(\S+)` \| ([\d. |]+) \|$", PREDICTIONS.read_text(), re.MULTILINE)
    assert len(found) == len(ALL) == 26
    for lam, scheme, figures in found:
        assert figures.split(" | ") == [f"{x:.3f}" for x in felt(scheme, 0.995, float(lam))], (lam, scheme)


def test_the_felt_share_and_the_noise_are_those_of_simulated_advantages():
    """Loans of variance 1, a critic that is 0: Â = Σ c^k F'_{t+k}, regressed on the loan of its own step."""
    gamma, lam, scheme = 0.9, 0.8, "grm-4"
    c, steps = gamma * lam, 400_000
    loans, repaid = np.random.default_rng(0).normal(size=steps), shares(scheme, gamma)
    paid = loans - sum(m * gamma**-k * np.roll(loans, k) for k, m in enumerate(repaid[:50]) if m)
    advantage = sum(c**k * np.roll(paid, -k) for k in range(60))
    own = felt(scheme, gamma, lam)
    assert np.mean(advantage * loans) == pytest.approx(own.share, abs=0.01)
    noise = repayment_noise(repaid, gamma, c)
    assert own.beside_repayments == pytest.approx(own.share / noise)
    assert np.var(advantage) == pytest.approx(own.share**2 / (1 - c**2) + noise**2, rel=0.02)


def test_a_scheme_that_repays_nothing_has_no_shares():
    with pytest.raises(ValueError, match="repays nothing"):
        shares("im", 0.9)


def told(by: str | Mapping[Cell, float | None], seeds: int = 3, spread: float = 0.001) -> list[DecidedClaim]:
    """Decide all sentences where cells learn in the order of a figure, or at these million steps."""
    if isinstance(by, str):
        known = felt_by_cell(ALL)
        values = {cell: getattr(known[cell], by) for cell in ALL}
        by = {cell: None if value < 1e-9 else 2.5 - 2 * value / max(values.values()) for cell, value in values.items()}
    results = {}
    for (setting, scheme), at in by.items():
        for seed in range(seeds):
            steps = None if at is None else int(1e6 * (at + spread * seed))
            results[f"delay/{setting}/{scheme}/seed{seed}"] = Result(
                {}, summary={"trained_steps": 3_000_320, "settled_step": steps}
            )
    return CLAIMS.decide(results)


def verdict(claims: list[DecidedClaim], sentence: str) -> str:
    (found,) = [claim for claim in claims if claim.statement == sentence]
    return found.verdict


@pytest.mark.parametrize("name", NAMES)
def test_cells_that_learn_in_the_order_of_a_figure_are_ordered_by_it(name: str):
    claims = told(name)
    assert len(claims) == len(CELL_BY_CELL) + len(ORDERINGS)
    assert verdict(claims, f"{NAMES[name]} orders the cells across λ.") == "holds"
    assert verdict(claims, f"{NAMES[name]} orders the cells within each λ.") == "holds"
    assert verdict(claims, "Nothing tried here predicts across λ.") == "does not hold"


def test_the_order_of_eta_is_not_that_of_its_rivals():
    claims = told("share")
    for other in ("η/σ", "c⁵η/σ", "R"):
        assert verdict(claims, f"{other} orders the cells across λ.") == "does not hold"
        assert verdict(claims, f"{other} orders the cells better than η.") == "does not hold"
    assert verdict(told("beside_all_noise"), "R orders the cells better than η.") == "holds"


def test_cells_that_learn_in_no_order_are_predicted_by_nothing():
    rng = np.random.default_rng(0)
    claims = told({cell: 0.5 + 2 * rng.random() for cell in ALL})
    assert verdict(claims, "Nothing tried here predicts across λ.") == "holds"
    assert all(verdict(claims, f"{name} orders the cells within each λ.") == "does not hold" for name in NAMES.values())


def test_a_wide_spread_over_seeds_leaves_no_order_across():
    by = {cell: 0.3 if cell[1] == "grm-30" else 0.29 for cell in ALL}
    assert verdict(told(by, spread=1.0), "η orders the cells across λ.") == "does not hold"


def test_while_cells_are_missing_or_seeds_are_few_nothing_is_decided():
    whole = dict.fromkeys(ALL, 1.0)
    few = told({cell: at for cell, at in whole.items() if cell != (ONE, "grm-3")})
    assert verdict(few, "η orders the cells across λ.") == "undecided"
    assert [claim.here for claim in few if claim.statement == "η orders the cells across λ."] == [
        "not run: grm-3 at λ = 1"
    ]
    assert verdict(few, "At λ = 0.99 no cell learns within 3 million steps, except perhaps D = 100.") == "does not hold"
    assert {claim.verdict for claim in told(whole, seeds=2)} == {"undecided"}


def cells_told(**at: float | None) -> list[DecidedClaim]:
    """Decide with each scheme of every λ learning at these million steps, the others at 1."""
    named = {name.replace("_", "-").replace("geometric", "geometric-0.9"): value for name, value in at.items()}
    return told({cell: named.get(cell[1], 1.0) for cell in ALL})


BETWEEN = "λ = {} the geometric matching learns between D = 10 and D = 3"


@pytest.mark.parametrize(
    ("at", "sentence", "expected"),
    [
        ({"grm_30": 0.5, "geometric": 0.7, "grm_10": 0.9}, "between D = 30 and D = 10", "holds"),
        ({"grm_30": 0.5, "geometric": 0.95, "grm_10": 0.9}, "between D = 30 and D = 10", "does not hold"),
        ({"grm_30": 0.8, "geometric": 0.7, "grm_10": 0.9}, "between D = 30 and D = 10", "does not hold"),
        (
            {"grm_10": 0.5, "geometric": 0.7, "grm_3": None},
            "λ = 0.95 the geometric matching learns between D = 10",
            "holds",
        ),
        (
            {"grm_10": 0.9, "geometric": 0.7, "grm_3": None},
            "λ = 0.8 the geometric matching learns between",
            "does not hold",
        ),
        ({"geometric": 0.7}, "before every delay", "holds"),
        ({"geometric": 0.7, "grm_10": 0.6}, "before every delay", "does not hold"),
        ({"grm_300": 2.0, "grm_600": None}, "D = 300 and D = 600 learn later", "holds"),
        ({"grm_300": 2.0, "grm_600": None, "grm_3": None}, "D = 300 and D = 600 learn later", "does not hold"),
        ({"grm_300": None, "grm_600": None, "grm_3": None}, "D = 300 and D = 600 learn later", "undecided"),
        ({"grm_100": 1.0, "grm_10": None}, "do not differ as η_T says", "does not hold"),
        ({"grm_100": None, "grm_10": None}, "do not differ as η_T says", "holds"),
        ({"grm_100": 1.0, "grm_10": 1.0}, "do not differ as η_T says", "holds"),
        ({"none": None, "grm_3": None, "grm_10": None, "grm_30": None, "geometric": None}, "λ = 0.99 no cell", "holds"),
    ],
)
def test_the_predictions_cell_by_cell(at, sentence: str, expected: str):
    (found,) = [claim for claim in cells_told(**at) if sentence in claim.statement]
    assert found.verdict == expected, found.here


def test_the_correlation_is_spearman_s_with_ties_and_never():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    for _ in range(20):
        figure, steps = rng.integers(0, 6, 26) / 5, rng.integers(1, 9, 26) * 1e5
        never = rng.random(26) < 0.3
        known = spearmanr(figure, -np.where(never, 1e9, steps)).statistic
        assert correlation(figure, np.where(never, np.inf, steps)) == pytest.approx(known)
    assert correlation([0.0] * 4, np.array([1.0, 2.0, 3.0, 4.0])) == 0
    assert correlation([1.0, 2.0], np.array([np.inf, np.inf])) == 0


def test_the_median_of_an_even_number_is_the_later_of_the_middle_two():
    assert middle(np.array([1.0, 2.0, 3.0, np.inf])) == 3.0
    assert middle(np.array([1.0, np.inf])) == np.inf


def test_the_settings_are_those_of_the_study():
    assert {setting for setting, _ in ALL} == {LOW, MIDDLE, HIGH, ONE}
