"""The arena's tables, figures and card, from made-up runs whose outcome is known, and from none at all."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from payback_lab import experiments
from payback_lab.experiments.arena.chosen import FIRST, cell_of
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.results import StudyResults, study_results
from payback_lab.experiments.arena.study import DELAYS, PAIRED, RND_METHODS, SWEPT_LIMITS, limited
from payback_lab.report import arena_tables
from payback_lab.report.cards import CARDS
from payback_lab.report.charts.arena import APART, found_points, moved_apart, placed_labels
from payback_lab.report.summary import Group, Summary

from ..experiments.arena_runs import made, screening, tuned

pytestmark = pytest.mark.slow

EXPERIMENT = experiments.load("arena")
TASKS = (*FIRST, "DoorKey-13x13", "FourRooms")
OUTCOME = {"none": (0.1, 2.0), "im": (0.97, 20.0), "grm-30": (1.0, 2.0), "phased": (1.0, 2.5), "pbim": (0.2, 9.0)}
"""Method → share solved, and times the fewest steps; (0.9, 4) for all others."""


def study(seeds: int, **other: tuple[float, float]) -> list[dict]:
    outcome = {**OUTCOME, **other}

    def one(setting: str, method: str, seed: int) -> dict:
        share, times = outcome.get(method, (0.9, 4.0))
        tells = {"final_training_solved": 0.8, "final_training_length": 1000.0} if "FourRooms" in setting else {}
        return made(setting, method, seed, share=share, times=times + seed / 10, **tells)

    runs = []
    for seed in range(seeds):
        runs += [one(cell_of(task), method, seed) for task in TASKS for method in METHODS]
        runs += [one(limited(0.02, limit), delay, seed) for limit in SWEPT_LIMITS for delay in DELAYS]
        runs += [one(cell_of(task, bonus="rnd"), method, seed) for task in FIRST for method in RND_METHODS]
        runs += [one(cell_of("MultiRoom-N4-S5"), method, seed) for method in PAIRED]
    return [*tuned(), *screening(), *runs]


@pytest.fixture(scope="module")
def full() -> tuple[StudyResults, dict[str, str]]:
    results = study_results(study(3))
    return results, arena_tables.figures(results)


def test_every_table_is_filled(full) -> None:
    results, drawn = full
    assert "| Every method on four tasks | 132 of 132 |" in arena_tables.made(results)
    assert "| Two more seeds on the two most telling tasks | 0 of 44 |" in arena_tables.made(results)
    line = "| GRM D = 30 | 0.02 | 3 | 100% [100%, 100%] | yes | 2.50 [2.50, 2.50] | 2.1× [2.0×, 2.2×] |"
    for task in TASKS:
        assert line in arena_tables.task_table(results, task)
    assert "| fixed beforehand |" in arena_tables.screening(results)
    assert len(drawn) == 7


def test_the_quoted_table_has_scores_and_tasks_solved(full) -> None:
    lines = arena_tables.overall_table(full[0]).splitlines()
    assert lines[0] == "| method | α | score | tasks solved |"
    assert lines[2].startswith("| GRM D = 30 | 0.02 | 0.4")
    assert lines[2].endswith("| 4 of 4 |")
    assert next(line for line in lines if "no bonus" in line).startswith("| no bonus | – | 0.0")
    assert next(line for line in lines if "PIES" in line).endswith("| 0 of 4 |")  # 0.9 of its episodes are not enough


def test_the_pairs_say_which_difference_is_significant() -> None:
    table = arena_tables.pairs(study_results(study(3, **{"phased": (1.0, 2.0)})))
    assert "| GRM D = 30 | raw bonus | 1.00 [1.00, 1.00] | yes |" in table
    assert re.search(r"(phased-in repayment|GRM D = 30) \| (phased|GRM).* \| not significant \|", table)


def test_the_tables_of_the_sweep_and_of_rnd_have_each_methods_alpha(full) -> None:
    results = full[0]
    assert "| 1,210 | GRM D = 1 | 0.02 | 3 |" in arena_tables.limit_table(results)
    assert "| DoorKey-11x11 | raw bonus | 0.02 | 3 |" in arena_tables.rnd_table(results)
    row = "| MultiRoom-N4-S5-NoisyTV | 0.50, 0.50, 0.50 | 0.50, 0.50, 0.50 |"
    assert row in arena_tables.multipliers(results)


def test_how_often_equal_methods_would_be_distinguished(full) -> None:
    together, alone = arena_tables.error_rates(full[0])
    assert 0.05 <= together < alone < 0.3


def test_the_picture_of_the_card_has_each_method_with_its_own_alpha() -> None:
    full = summary_of([run for run in study(3) if run["scheme"] != "im" or "DoorKey-8x8" in run["id"]])
    other = summary_of([made(cell_of(FIRST[0], 0.08), "im", 0), made(cell_of(FIRST[0]), "grm-30", 0)])
    mixed = replace(full, groups=(*full.groups, other.groups[0]))
    picture = CARDS["arena"].picture(mixed)
    assert picture
    assert "im" not in picture.names  # there is a run of it, but not with its α of 0.02
    assert "grm-30" in picture.names


def test_without_runs_every_table_says_so() -> None:
    none = study_results([])
    tables = (arena_tables.alphas, arena_tables.screening, arena_tables.limit_table, arena_tables.rnd_table)
    assert {table(none) for table in (*tables, arena_tables.multipliers)} == {arena_tables.NONE_YET}
    assert arena_tables.task_table(none, TASKS[0]) == arena_tables.NONE_YET


def test_one_seed_is_shown_and_decides_nothing() -> None:
    results = study_results(study(1))
    table = arena_tables.task_table(results, TASKS[0])
    assert "too few seeds" in table
    assert "| yes |" not in table


def test_a_task_without_all_methods_is_not_in_the_comparison(tmp_path: Path) -> None:
    runs = [run for run in study(1) if not ("DoorKey-13x13" in run["id"] and run["scheme"] == "hepo")]
    results = study_results(runs)
    assert results.compared == (*FIRST, "FourRooms")
    assert len(results.scores("hepo")) == 3


def test_the_figures_are_named_and_narrow(full) -> None:
    for name, svg in full[1].items():
        root = ET.fromstring(svg)
        assert float(root.attrib["width"]) <= 520, name  # a phone shows it without shrinking its words much
        assert 'fill="white"' in svg, name
    words = full[1]["arena-found"]
    for name in ("no bonus", "raw bonus", "GRM D = 30", "EIPO", "HEPO", "ADOPS", "phased-in", "PIES"):
        assert f">{name}</text>" in words


def test_the_one_picture_is_of_the_shares_and_lengths() -> None:
    points = {point["scheme"]: point for point in found_points(study_results(study(1)))}
    assert points["im"]["found"] == pytest.approx(0.97)
    assert points["grm-30"]["times"] == pytest.approx(2.0)
    each = [0.1 * 2 + 0.9 * LIMITS[task] / FEWEST[task] for task in TASKS]
    assert points["none"]["times"] == pytest.approx(np.prod(each) ** (1 / 4))


def test_names_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    points = [{"found": 0.98, "times": float(t), "name": str(n)} for n, t in enumerate(rng.uniform(1, 1.2, 11))]
    heights = sorted(300 * np.log(p["label_y"]) / np.log(20.0) for p in placed_labels(points, 300, 20.0))
    assert np.diff(heights).min() >= APART - 1e-6
    assert heights[0] >= 0
    assert heights[-1] <= 300
    assert moved_apart([50.0, 150.0], 300) == [50.0, 150.0]
    assert moved_apart([299.0, 300.0], 300, apart=20) == [280.0, 300.0]


def test_names_hide_no_point() -> None:
    points = [{"found": found, "times": 5.0, "name": str(found)} for found in (0.1, 0.4, 0.45, 1.0)]
    assert all(point["label_x"] > 1 for point in placed_labels(points, 300, 20.0))


def summary_of(runs: list[dict]) -> Summary:
    groups = []
    for setting in dict.fromkeys(run["id"].split("/")[1] for run in runs):
        own = [run for run in runs if run["id"].split("/")[1] == setting]
        curve = {scheme: {"length": np.ones((1, 3), np.float32)} for scheme in {run["scheme"] for run in own}}
        groups.append(Group(f"arena/{setting}", {}, {}, own, "step", np.arange(1.0, 4.0), curve, {}))
    return Summary("arena", "", (), {}, {}, {}, (), tuple(groups))


def test_the_card_shows_what_is_known() -> None:
    card, full = CARDS["arena"], summary_of(study(3))
    assert card.numbers(full).rows[0][0] == "GRM D = 30"
    assert card.numbers(full).caption == "the best five; 270 runs"
    assert len(card.charts(full)) == 2
    early = summary_of(tuned()[:2])
    assert card.numbers(early).rows == ()
    assert card.picture(early)
    assert card.charts(early) == []
    assert card.picture(summary_of([])) is None
