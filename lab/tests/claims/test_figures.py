"""The figures that a claim keeps: of which measures, of which cells, and what the paper prints beside."""

import numpy as np

from payback_lab.claims.claim import DecidedClaim, read_claim, stored_claim
from payback_lab.claims.decide import Claim
from payback_lab.claims.evidence import Evidence, Measure, figures_of, of_figure
from payback_lab.claims.rules import all_of, lower, measures_of, measuring, rule
from payback_lab.runs import Result

LENGTH = Measure("length", of_figure("length"), paper=lambda cell: {"im": 60.0}.get(cell[1]))
SPEED = Measure("", of_figure("speed"), never=lambda run: run.summary["speed"] > 8, label="speed")
CELLS = (("high", "im"), ("high", "none"))


def evidence(**lengths: tuple[float, ...]) -> Evidence:
    cells = {
        ("high", scheme): tuple(Result({}, {}, {"length": x, "speed": x / 10}) for x in values)
        for scheme, values in lengths.items()
    }
    return Evidence(cells, title=lambda setting: f"({setting})")


def test_a_rule_knows_its_measures_also_those_of_its_parts() -> None:
    part = lower(LENGTH, CELLS[:1], CELLS[1:])
    assert measures_of(part) == (LENGTH,)
    assert measures_of(all_of(part, lower(SPEED, CELLS[:1], CELLS[1:]), part)) == (LENGTH, SPEED)

    @measuring(SPEED)
    @rule
    def always(evidence: Evidence):
        return "yes", "holds"

    assert measures_of(always()) == (SPEED,)
    assert always()(evidence(im=(1.0,))) == ("yes", "holds")
    assert measures_of(lambda evidence: ("yes", "holds")) == ()


def test_figures_are_means_with_intervals_and_the_papers() -> None:
    im, none = figures_of(evidence(im=(90, 100, 110), none=(50, 50, 50)), (LENGTH,), CELLS)
    assert (im.measure, im.setting, im.scheme, im.mean, im.seeds, im.paper) == ("length", "(high)", "im", 100, 3, 60.0)
    assert 90 <= im.low < 100 < im.high <= 110
    assert (none.mean, none.low, none.high, none.paper, none.never) == (50, 50, 50, None, 0)
    (late,) = figures_of(evidence(im=(90, 100, 50)), (SPEED,), CELLS[:1])
    assert (late.measure, late.never) == ("speed", 2)


def test_what_is_no_number_in_some_seed_is_left_out() -> None:
    assert figures_of(evidence(im=(90, np.nan, 110)), (LENGTH,), CELLS[:1]) == ()


def test_a_claim_keeps_its_figures_and_is_read_back() -> None:
    from payback_lab.claims.decide import Claims

    claims = Claims(
        experiment="x",
        full=0,
        unit="steps",
        trained=lambda run: 1,
        stated=[Claim("", "IM is longer.", CELLS, lower(LENGTH, CELLS[1:], CELLS[:1]))],
    )
    runs = {f"x/high/{s}/seed{i}": Result({}, {}, {"length": x}) for s, x in (("im", 9), ("none", 5)) for i in range(3)}
    (claim,) = claims.decide(runs)
    assert [(f.scheme, f.mean) for f in claim.figures] == [("im", 9), ("none", 5)]
    assert read_claim(stored_claim(claim)) == claim
    (missing,) = claims.decide({})
    assert missing.figures == ()
    assert read_claim({"where": "", "sentence": "", "paper": "", "here": "", "verdict": "holds"}) == DecidedClaim(
        "", "", "", "", "holds"
    )
