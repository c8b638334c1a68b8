"""What the page of the curiosity experiment says, from made-up runs whose outcome is known."""

import json
from pathlib import Path

import numpy as np
import pytest

from payback_lab.experiments.curiosity.comparison import compare, share, steps_until
from payback_lab.experiments.curiosity.config import BONUSES, PAIRED, SCHEMES
from payback_lab.experiments.curiosity.predicted import predictions
from payback_lab.report.charts.curiosity import seed_rows
from payback_lab.report.curiosity import page


def runs(scheme: str, steps: list[float | None], lengths: list[float] | None = None) -> list[dict]:
    lengths = lengths or [20.0 + i for i in range(len(steps))]
    found = zip(range(len(steps)), steps, lengths, strict=True)
    told = {"scheme": scheme, "trained_steps": 300_032}
    return [{**told, "seed": seed, "solved_step": step, "sampled_length": n} for seed, step, n in found]


def written(folder: Path, cells: dict[tuple[str, str], list[dict]]) -> Path:
    groups = [
        {"name": f"curiosity/{bonus}", "runs": [run for (b, _), own in cells.items() if b == bonus for run in own]}
        for bonus in dict.fromkeys(bonus for bonus, _ in cells)
    ]
    (folder / "curiosity").mkdir()
    (folder / "curiosity/summary.json").write_text(json.dumps({"groups": groups, "notes": ["A note."]}))
    return folder


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


def test_the_page_says_that_nothing_is_gained(tmp_path: Path) -> None:
    text = page(written(tmp_path, ALL))
    assert "All 94 runs are in it." in text
    assert text.count("`grm-30` gains nothing that these seeds decide**") == 2
    assert "| RND | seeds |" in text
    assert text.count("| `e3b` |") == 2
    assert "Over 9 together" in text
    assert text.endswith("- A note.\n")


def test_the_page_says_what_is_gained_and_lost(tmp_path: Path) -> None:
    cells = ALL | {
        ("rnd", "grm-30"): runs("grm-30", FAST),
        ("rnd", "none"): runs("none", SLOW, [10.0] * 8),
    }
    text = page(written(tmp_path, cells))
    assert "**Compared with the raw bonus, `grm-30` gains something**: the steps until then." in text
    assert (
        "**Compared with no bonus, `grm-30` gains nothing that these seeds decide**, and loses: the final length."
        in text
    )


def test_few_seeds_decide_nothing(tmp_path: Path) -> None:
    cells = {
        ("rnd", "im"): runs("im", SLOW[:2]),
        ("rnd", "grm-30"): runs("grm-30", FAST[:2]),
        ("e3b", "im"): runs("im", SLOW[:1]),
    }
    text = page(written(tmp_path, cells))
    assert "**5 of the 94 planned runs are in it so far**" in text
    assert text.count("cannot be said of fewer than 3 seeds each") == 2
    assert "gains something**" not in text
    assert {found.verdict for found in predictions(cells)} == {"not run yet"}


def test_predictions_are_held_against_the_runs() -> None:
    assert [found.verdict for found in predictions(ALL)] == ["yes", "yes", "yes", "no", "no", "no", "no"]
    cells = ALL | {("rnd", "pbim"): runs("pbim", [None] * 8)}
    cells |= {("e3b", "im"): runs("im", SLOW[:3], [300.0] * 3), ("ride", "im"): runs("im", SLOW[:3], [90.0] * 3)}
    assert [found.verdict for found in predictions(cells)] == ["no", "yes", "yes", "no", "yes", "yes", "yes"]


@pytest.mark.parametrize("measure", ["steps", "length"])
def test_the_figure_shows_every_seed(measure: str) -> None:
    rows = seed_rows({"im": runs("im", [None, 1000.0, 2000.0])}, measure)
    assert [row["mark"] for row in rows] == ["not solved", "solved", "solved"]
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    np.testing.assert_allclose(
        [row["value"] for row in rows], [300_032, 1000, 2000] if measure == "steps" else [20, 21, 22]
    )
