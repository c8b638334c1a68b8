"""How many seeds would decide a claim: held against the textbook's number, and against what cannot be decided."""

import numpy as np
import pytest

from payback_lab.claims.claim import DecidedClaim, Needed, read_claim, stored_claim
from payback_lab.claims.decide import NUMBERS, Claim, Claims, format_needed, seeds_needed
from payback_lab.claims.evidence import Evidence, Measure, of_figure
from payback_lab.claims.rules import lower
from payback_lab.report.claims import note
from payback_lab.runs import Result

ONE, OTHER = ("", "grm-10"), ("", "im")
LENGTH = Measure("", of_figure("length"))
RULE = lower(LENGTH, [ONE], [OTHER])


def cell(mean: float, seeds: int = 3) -> tuple[Result, ...]:
    """Seeds of a variance of 1 around a mean."""
    spread = np.linspace(-1, 1, seeds)
    spread /= spread.std(ddof=1)
    return tuple(Result({}, summary={"length": float(x), "steps": 9}) for x in mean + spread)


def evidence(gap: float, seeds: int = 3) -> Evidence:
    return Evidence({ONE: cell(10.0, seeds), OTHER: cell(10.0 + gap, seeds)})


@pytest.mark.parametrize(("gap", "textbook"), [(2.0, 4), (1.0, 16), (0.7, 33)])
def test_the_number_is_near_that_of_the_textbook(gap: float, textbook: int):
    """(z.975 + z.80)² · 2/gap² seeds of a variance of 1 distinguish two means with a power of 80 %."""
    needed = seeds_needed(RULE, evidence(gap), [ONE, OTHER])
    assert needed != "more"
    place = NUMBERS.index(needed)
    near = min(range(len(NUMBERS)), key=lambda k: abs(np.log(NUMBERS[k] / textbook)))
    assert abs(place - near) <= 1, needed


def test_seeds_that_scatter_more_need_more_of_them():
    few = seeds_needed(RULE, Evidence({ONE: cell(10.0), OTHER: cell(12.0)}), [ONE, OTHER])
    wide = {at: tuple(Result({}, summary={"length": 3 * r.summary["length"]}) for r in cell(10 / 3)) for at in (ONE,)}
    many = seeds_needed(RULE, Evidence({**wide, OTHER: cell(12.0)}), [ONE, OTHER])
    assert few != "more"
    assert many == "more" or many > few


def test_cells_that_do_not_differ_are_never_distinguished():
    assert seeds_needed(RULE, evidence(0.0), [ONE, OTHER]) == "more"


def test_a_claim_says_it_only_when_asked_and_only_of_what_seeds_leave_open():
    def decided(gap: float, forecast: bool, seeds: int = 3) -> DecidedClaim:
        results = {
            f"x/{scheme}/seed{k}": run
            for (_, scheme), runs in evidence(gap, seeds).cells.items()
            for k, run in enumerate(runs)
        }
        claim = Claim("", "GRM is shorter.", (ONE, OTHER), RULE, "A note.")
        claims = Claims(experiment="x", full=1, unit="steps", trained=lambda run: 9, stated=(claim,), forecast=forecast)
        return claims.decide(results)[0]

    assert decided(0.0, True).needed == "more"
    assert decided(1.0, True).needed in NUMBERS
    assert decided(0.0, False).needed is None
    assert decided(9.0, True).needed is None
    assert decided(0.0, True, seeds=2).needed is None
    assert note(decided(0.0, True)).startswith(format_needed("more"))


@pytest.mark.parametrize("needed", [20, "more", None])
def test_what_is_needed_is_kept_beside_the_rule(needed: Needed | None):
    claim = DecidedClaim("", "GRM is shorter.", "", "", "undecided", "By its length.", needed=needed)
    assert read_claim(stored_claim(claim)) == claim
    assert note(claim) == " ".join(filter(None, (format_needed(needed) if needed else "", "By its length.")))
