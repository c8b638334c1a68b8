"""The tables of the curiosity experiment, from made-up runs whose outcome is known."""

import numpy as np
import pytest

from payback_lab.experiments.curiosity.comparison import compare, predictions, share, steps_until
from payback_lab.experiments.curiosity.experiment import BONUSES, PAIRED, SCHEMES
from payback_lab.report.curiosity import curiosity_rows, others_table, others_together, rnd_comparisons, rnd_table


def runs(scheme: str, steps: list[float | None], lengths: list[float] | None = None) -> list[dict]:
    lengths = lengths or [20.0 + i for i in range(len(steps))]
    found = zip(range(len(steps)), steps, lengths, strict=True)
    told = {"scheme": scheme, "trained_steps": 300_032}
    return [{**told, "seed": seed, "solved_step": step, "sampled_length": n} for seed, step, n in found]


SLOW, FAST = [200_000.0 + 1000 * i for i in range(8)], [50_000.0 + 1000 * i for i in range(8)]
ALL = {("rnd", scheme): runs(scheme, SLOW) for scheme in SCHEMES} | {
    (bonus, scheme): runs(scheme, SLOW[:3]) for bonus in BONUSES[1:] for scheme in PAIRED
}


def test_a_seed_that_does_not_solve_counts_with_all_its_steps() -> None:
    assert steps_until(runs("im", [None, 1000.0])).tolist() == [300_032, 1000]
    part = share(runs("im", [None, 1000.0]))
    assert (part.value, round(part.low, 3), round(part.high, 3)) == (0.5, 0.013, 0.987)


def test_better_worse_and_open() -> None:
    assert compare(runs("a", FAST), runs("b", SLOW)).each == ("open", "better", "open")
    assert compare(runs("a", FAST), runs("b", [None] * 8)).each == ("better", "better", "open")
    longer = compare(runs("a", FAST, [100.0] * 8), runs("b", SLOW))
    assert longer.each == ("open", "better", "worse")
    assert not longer.gains
    assert not compare(runs("a", SLOW), runs("b", SLOW)).gains


def test_the_tables_have_every_scheme_and_bonus() -> None:
    assert rnd_table(ALL).startswith("| RND | seeds |")
    assert rnd_table(ALL).count("| 8 of 8 ") == len(SCHEMES)
    assert others_table(ALL).count("| `e3b` |") == 2
    steps, final = others_together(ALL)
    assert (steps.value, final.value) == (0.0, 0.0)


def test_the_comparisons_name_what_is_better() -> None:
    cells = ALL | {("rnd", "grm-30"): runs("grm-30", FAST), ("rnd", "none"): runs("none", SLOW, [10.0] * 8)}
    better = [line.rpartition("| ")[2] for line in rnd_comparisons(cells).splitlines()[2:]]
    assert better == ["yes |", "no |", "no |", "no |", "no |"]  # sooner than no bonus, but with longer episodes


def test_few_seeds_decide_nothing() -> None:
    cells = {("rnd", "im"): runs("im", SLOW[:2]), ("rnd", "grm-30"): runs("grm-30", FAST[:2])}
    assert len(rnd_comparisons(cells).splitlines()) == 2
    assert {found.verdict for found in predictions(cells)} == {"not run yet"}


def test_predictions_are_held_against_the_runs() -> None:
    assert [found.verdict for found in predictions(ALL)] == ["yes", "yes", "yes", "no", "no", "no", "no"]
    cells = ALL | {("rnd", "pbim"): runs("pbim", [None] * 8)}
    cells |= {("e3b", "im"): runs("im", SLOW[:3], [300.0] * 3), ("ride", "im"): runs("im", SLOW[:3], [90.0] * 3)}
    assert [found.verdict for found in predictions(cells)] == ["no", "yes", "yes", "no", "yes", "yes", "yes"]


@pytest.mark.parametrize("measure", ["steps", "length"])
def test_the_figure_shows_every_seed(measure: str) -> None:
    rows = curiosity_rows({"im": runs("im", [None, 1000.0, 2000.0])}, measure)
    assert [row["mark"] for row in rows] == ["not solved", "solved", "solved"]
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    np.testing.assert_allclose(
        [row["value"] for row in rows], [300_032, 1000, 2000] if measure == "steps" else [20, 21, 22]
    )
