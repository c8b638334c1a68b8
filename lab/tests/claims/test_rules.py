"""Rules, evidence and what is lacking, on numbers whose verdicts are known."""

import numpy as np
import pytest

from payback_lab.claims.claim import combined, in_range, negated_verdict, not_negative, positive
from payback_lab.claims.decide import Claim, Claims
from payback_lab.claims.evidence import Evidence, Measure, cells, figure, gather, of_figure
from payback_lab.claims.rules import (
    all_of,
    any_of,
    at_most_times,
    between,
    differs_by,
    lower,
    lower_at_level,
    lower_tested,
    negated,
    ratio_at_most,
    undecided_unless_reached,
    within_factor,
)
from payback_lab.claims.wording import format_cells, significance, with_interval
from payback_lab.runs import Result, Run

LOW, HIGH, NEAR = ("", "low"), ("", "high"), ("", "near")
VALUES = {LOW: np.arange(10.0), HIGH: np.arange(10.0) + 50, NEAR: np.arange(10.0) + 1}
EVIDENCE = Evidence({cell: tuple(Result({}, {}, {"x": x}) for x in values) for cell, values in VALUES.items()})
X = Measure("", of_figure("x"))


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (lower(X, [LOW], [HIGH]), "holds"),
        (lower(X, [HIGH], [LOW]), "does not hold"),
        (lower(X, [LOW], [NEAR]), "undecided"),
        (lower(X, [LOW], [HIGH, NEAR]), "undecided"),
        (lower_tested(X, [LOW], [HIGH]), "holds"),
        (lower_tested(X, [HIGH], [LOW]), "does not hold"),
        (lower_at_level(X, LOW, HIGH, 1e-9), "holds"),
        (lower_at_level(X, LOW, HIGH, 1e-30), "undecided"),
        (lower_at_level(X, HIGH, LOW, 0.05), "does not hold"),
        (ratio_at_most(X, [LOW], HIGH, at_most=0.5), "holds"),
        (ratio_at_most(X, [HIGH], LOW, at_most=2), "does not hold"),
        (ratio_at_most(X, [NEAR], LOW, at_most=1.2), "undecided"),
        (at_most_times(X, [LOW], [HIGH, NEAR], 2), "holds"),
        (at_most_times(X, [LOW, HIGH], [LOW], 2), "does not hold"),
        (within_factor(X, LOW, NEAR, 3), "holds"),
        (within_factor(X, LOW, NEAR, 1.2), "undecided"),
        (within_factor(X, HIGH, LOW, 3), "does not hold"),
        (within_factor(X, LOW, HIGH, 3), "does not hold"),
        (differs_by(X, HIGH, LOW, 3), "holds"),
        (differs_by(X, LOW, HIGH, 3), "holds"),
        (differs_by(X, LOW, NEAR, 3), "does not hold"),
        (between(X, [LOW], 0, 20), "holds"),
        (between(X, [LOW], 5, 20), "undecided"),
        (between(X, [HIGH], 0, 20), "does not hold"),
        (all_of(lower(X, [LOW], [HIGH]), lower(X, [HIGH], [LOW])), "does not hold"),
        (any_of(lower(X, [LOW], [HIGH]), lower(X, [HIGH], [LOW])), "holds"),
        (any_of(lower(X, [LOW], [NEAR]), lower(X, [HIGH], [LOW])), "undecided"),
        (negated(lower(X, [LOW], [HIGH])), "does not hold"),
        (negated(lower(X, [LOW], [NEAR])), "undecided"),
    ],
)
def test_rules_on_known_numbers(rule, verdict):
    assert rule(EVIDENCE)[1] == verdict


def test_what_did_not_get_there_decides_nothing():
    never = Measure("", of_figure("x"), never=lambda run: figure(run, "x") == 9)
    rule = lower(never, [LOW], [HIGH])
    assert undecided_unless_reached(never, [HIGH], rule)(EVIDENCE)[1] == "holds"
    assert undecided_unless_reached(never, [LOW], rule)(EVIDENCE)[1] == "undecided"
    assert "low 4.5 [2.7, 6.3] (1 of 10 never)" in rule(EVIDENCE)[0]


def test_intervals_and_verdicts():
    assert combined(["holds", "undecided", "does not hold"]) == "does not hold"
    assert [positive(0, 0), positive(-1, 0), not_negative(0, 0)] == ["does not hold", "undecided", "holds"]
    assert [in_range(1, 2, 1, 2), in_range(1, 2, 1.5, 3), in_range(1, 2, 3, 4)] == [
        "holds",
        "undecided",
        "does not hold",
    ]
    assert [negated_verdict(v) for v in ("holds", "does not hold", "undecided")] == [
        "does not hold",
        "holds",
        "undecided",
    ]


def test_figures_in_words():
    assert format_cells(EVIDENCE, X, [LOW, HIGH, LOW]) == "low 4.5 [2.7, 6.3]; high 54.5 [52.7, 56.3]"
    assert with_interval(np.array([1234.5, 1234.5])) == "1,234 [1,234, 1,234]"
    assert with_interval(np.full(3, -0.0001)) == "0.000 [0.000, 0.000]"  # not −0
    assert with_interval(np.array([4.25])) == "4.2"
    at = Evidence({("s", cell[1]): runs for cell, runs in EVIDENCE.cells.items()}, title=lambda setting: f"({setting})")
    titled = Measure("X", of_figure("x"), digits=2)
    assert (
        format_cells(at, titled, cells("s", ["low", "high"]))
        == "X: (s) low 4.50 [2.70, 6.30], high 54.50 [52.70, 56.30]"
    )
    assert significance(at, titled, {(("s", "low"), ("s", "high")): "holds"}) == "low < high: p < 0.001, P 1.00"


def test_gather_takes_one_group_and_sorts_seeds():
    results = {f"cliff/im/seed{k}": Result({}, {}, {"x": k}) for k in (10, 2)} | {"cliff+wide-rnd/im/seed0": Result({})}
    assert gather(results, "cliff").cells == {("", "im"): (results["cliff/im/seed2"], results["cliff/im/seed10"])}
    assert list(gather(results, "cliff", "wide-rnd").cells) == [("", "im")]


SIZED = "s11-a0.02-g0.995-l0.95"
STUDY = Claims(
    experiment="reach",
    full=100,
    unit="steps",
    trained=lambda run: int(figure(run, "trained_steps")),
    stated=(
        Claim(
            "ours",
            "GRM D = 30 solves more.",
            cells([SIZED], ("grm-30", "none")),
            lower(Measure("unsolved", of_figure("unsolved"), 2), [(SIZED, "grm-30")], [(SIZED, "none")]),
            "Of 1,000 episodes.",
        ),
    ),
    title=lambda setting: setting.partition("-")[0].replace("s", "size "),
)


def reach(seeds: int = 3, steps: int = 100) -> dict[str, Result]:
    """Make up results of an experiment whose settings are sizes, as those of `reach` and `delay` are."""
    return {
        Run("reach", None, SIZED, scheme, seed, None).id: Result({}, {}, {"unsolved": share, "trained_steps": steps})
        for scheme, share in (("none", 0.9), ("grm-30", 0.1))
        for seed in range(seeds)
    }


@pytest.mark.parametrize(
    ("results", "here", "verdict", "note"),
    [
        (reach(), "unsolved: size 11 grm-30 0.10 [0.10, 0.10], none 0.90 [0.90, 0.90]", "holds", "Seeds: 3 per cell."),
        (reach(seeds=2), "unsolved: ", "undecided", "Too few seeds, 3 are needed. Seeds: 2 per cell."),
        (reach(steps=99), "unsolved: ", "undecided", "Cut short: grm-30 at size 11 has 99 of 100 steps. Seeds: 3"),
        ({}, "not run: grm-30, none at size 11", "undecided", "Too few seeds, 3 are needed. Seeds: 0 per cell."),
    ],
)
def test_an_experiment_of_any_settings_can_be_decided(results, here, verdict, note):
    (claim,) = STUDY.decide(results)
    assert claim.here.startswith(here)
    assert (claim.verdict, claim.plain) == (verdict, True)
    assert claim.note.startswith(note)
    assert claim.note.endswith(" Of 1,000 episodes.")


@pytest.mark.parametrize("name", ["cliff/none", "cliff/none/3", "none/seed0", "a/b/c/d/seed0", "cliff//none/seed0"])
def test_what_is_no_run_id_is_refused(name):
    with pytest.raises(ValueError, match="is not the id of a run: write it like cliff/grm-10/seed3"):
        Run.parse(name)
