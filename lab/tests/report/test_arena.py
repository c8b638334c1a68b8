"""The arena's page, figures and story, from made-up runs whose outcome is known, and from none at all."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from payback_lab import experiments
from payback_lab.claims.claim import stored_claim
from payback_lab.experiments.arena.chosen import FIRST, cell_of
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.results import study_results
from payback_lab.experiments.arena.study import DELAYS, PAIRED, RND_METHODS, SWEPT_LIMITS, limited
from payback_lab.report import arena, arena_quotes, which_method
from payback_lab.report.charts.arena import found_points
from payback_lab.report.charts.labels import APART, moved_apart, placed_labels
from payback_lab.report.stories.arena import STORY
from payback_lab.report.summary import Group, Summary
from payback_lab.running.plan import Result

from ..experiments.arena_runs import made, screening, tuned

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


def written(folder: Path, runs: list[dict]) -> Path:
    own = {run["id"]: run for run in runs}
    results = {name: Result({}, {}, {k: v for k, v in run.items() if k != "id"}) for name, run in own.items()}
    (folder / "arena").mkdir()
    stored = {
        "groups": [{"name": "arena", "runs": list(own.values())}],
        "claims": [stored_claim(claim) for claim in EXPERIMENT.claims(results)],
    }
    (folder / "arena/summary.json").write_text(json.dumps(stored))
    return folder


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    folder = written(tmp_path_factory.mktemp("arena"), study(3))
    drawn = arena.figures(folder)
    return arena.page(folder, drawn), drawn


def test_the_page_has_every_part(full) -> None:
    page, drawn = full
    assert "Every method on four tasks | 132 of 132 |" in page
    assert "Two more seeds on the two most telling tasks | 0 of 44 |" in page
    assert "not known yet" not in page
    assert arena.arena_tables.NONE_YET not in page
    for task in TASKS:
        assert f"### {task}\n" in page
    for name in drawn:
        assert page.count(f"(../figures/{name}.svg)") == 1
    assert len(drawn) == 7
    assert "| GRM D = 30 | 0.02 | 3 | 100% [100%, 100%] | yes | 2.50 [2.50, 2.50] | 2.1× [2.0×, 2.2×] |" in page
    assert "The four tasks: DoorKey-11x11, MultiRoom-N4-S5-NoisyTV, DoorKey-13x13, FourRooms." in page
    assert "| **holds** |" in page or "| holds |" in page


def test_which_method_when(full) -> None:
    lines = [line for line in full[0].splitlines() if line[:1].isdigit()]
    assert len(lines) == 10
    assert "**Over all 4 tasks**: GRM D = 30" in lines[0]
    assert "better than every other method" in lines[0]
    assert "FourRooms (GRM D = 30, which is better than phased-in repayment)" in lines[1]
    assert "on none of these tasks" in lines[2]
    assert lines[3] == "4. **Solved without a bonus**: none of 4 tasks."
    assert "DoorKey-11x11 (" in lines[4]
    assert "with counts nothing, because GRM D = 30 has the highest mean of all" in lines[6]
    assert "GRM does not fail at 4,840 steps, where DoorKey-11x11 is solved by GRM D = 30; " in lines[7]
    assert "the highest mean score there has GRM D = 30" in lines[7]
    assert "DoorKey-11x11 (GRM D = 30, which is better than phased-in repayment); " in lines[8]


def test_the_lines_follow_the_runs() -> None:
    results = study_results(study(3, **{"phased": (1.0, 1.2), "none": (1.0, 1.1)}))
    assert "no bonus" in which_method.best_overall(results)
    assert "FourRooms (no bonus, which is better than GRM D = 30)" in which_method.where_grm_is_not(results)
    assert which_method.where_grm_is_best(results).endswith("on none of these tasks.")
    assert "no bonus, which needs none, is better than GRM D = 30" in which_method.guaranteed(results)
    assert "(probability of improvement 1.00 [1.00, 1.00])" in which_method.guaranteed(results)
    fails = [{**run, "sampled_solved": 0.1} if "_t4840" in run["id"] else run for run in study(3)]
    assert "GRM fails at 4,840 steps" in which_method.long_episodes(study_results(fails))


def test_a_task_whose_goal_nobody_finds_has_no_best_method() -> None:
    lost = [{**run, "sampled_solved": 0.2} if "NoisyTV" in run["id"] else run for run in study(3)]
    results = study_results(lost)
    assert "NoisyTV" not in which_method.where_grm_is_best(results)
    assert which_method.where_grm_is_not(results).endswith(": MultiRoom-N4-S5-NoisyTV (no method finds its goal).")
    seen = [run["scheme"] == "none" and "NoisyTV" in run["id"] for run in lost]
    by_one = [{**run, "sampled_solved": 0.6} if sees else run for run, sees in zip(lost, seen, strict=True)]
    assert "NoisyTV (no bonus, which is better than GRM D = 30)" in which_method.where_grm_is_not(study_results(by_one))


def test_what_no_interval_tells_is_said_so() -> None:
    """PIES has the higher mean with one seed far ahead and two behind: the mean alone must not name a winner."""
    runs = study(3, **{"pies": (1.0, 2.05)})
    ahead = [{**r, "sampled_solved_length": r["sampled_solved_length"] / 3} if is_first(r, "pies") else r for r in runs]
    results = study_results(ahead)
    words = "DoorKey-11x11 (PIES (fading), which is told by no interval from GRM"
    assert words in which_method.where_grm_is_not(results)
    assert "has none, is told by no interval from GRM" in which_method.guaranteed(results)
    assert words in which_method.another_bonus(results)


def test_the_quoted_table_has_scores_and_tasks_solved() -> None:
    told = arena_quotes.table(study_results(study(3))).splitlines()
    assert told[0] == "| method | α | score | tasks solved |"
    assert told[2].startswith("| GRM D = 30 | 0.02 | 0.4")
    assert told[2].endswith("| 4 of 4 |")
    assert next(line for line in told if "no bonus" in line).startswith("| no bonus | – | 0.0")
    assert next(line for line in told if "PIES" in line).endswith("| 0 of 4 |")  # 0.9 of its episodes are not enough
    assert arena_quotes.table(study_results(study(2))) == arena_quotes.TOO_FEW


def is_first(run: dict, method: str) -> bool:
    return run["scheme"] == method and run["seed"] == 0


def test_where_nothing_is_found_no_line_names_a_winner() -> None:
    lost = [{**run, "sampled_solved": 0.0, "sampled_solved_length": None} for run in study(3)]
    results = study_results(lost)
    assert which_method.another_bonus(results).count("no method finds its goal") == 2
    assert "not to be judged, because no D solves" in which_method.long_episodes(results)
    late = [{**run, "solved_step": None} if run["seed"] == 1 else run for run in study(3)]
    assert "DoorKey-11x11: raw bonus (3.33 M steps, 1 of 3 seeds never)" in which_method.soonest(study_results(late))


def test_the_tables_of_the_sweep_and_of_rnd_have_each_methods_alpha(full) -> None:
    page = full[0]
    assert "| 1,210 | GRM D = 1 | 0.02 | 3 |" in page
    assert "| DoorKey-11x11 | raw bonus | 0.02 | 3 |" in page
    assert "| MultiRoom-N4-S5-NoisyTV | 0.50, 0.50, 0.50 | 0.50, 0.50, 0.50 |" in page
    assert "| fixed beforehand |" in page


def test_how_often_alike_methods_are_told_apart_is_said(full) -> None:
    found = re.search(r"in about (\d+)% of such studies .* in about (\d+)% on one task", full[0])
    assert found
    assert 5 <= int(found[1]) < int(found[2]) < 30


def test_the_picture_of_the_story_has_each_method_with_its_own_alpha() -> None:
    told = summary_of([run for run in study(3) if run["scheme"] != "im" or "DoorKey-8x8" in run["id"]])
    other = summary_of([made(cell_of(FIRST[0], 0.08), "im", 0), made(cell_of(FIRST[0]), "grm-30", 0)])
    mixed = replace(told, groups=(*told.groups, other.groups[0]))
    picture = STORY.picture(mixed)
    assert picture
    assert "im" not in picture.names  # there is a run of it, but not with its α of 0.02
    assert "grm-30" in picture.names


def test_without_runs_every_part_says_so_in_one_line(tmp_path: Path) -> None:
    drawn = arena.figures(tmp_path)
    page = arena.page(tmp_path, drawn)
    assert drawn == {}
    assert "![" not in page
    assert "**No run is in it yet.**" in page
    assert page.count(arena.arena_tables.NONE_YET) == 7
    assert page.count("not known yet, because") == 10
    assert page.count("| undecided |") == 15


def test_one_seed_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path, study(1))
    drawn = arena.figures(folder)
    page = arena.page(folder, drawn)
    assert "4 tasks, 1 seed of each method." in drawn["arena-found"]
    assert "too few seeds" in page
    assert page.count("| undecided |") == 15
    assert "**Over all tasks**: not known yet" in page
    assert "arena-improvement" not in drawn
    assert "| yes |" not in page.split("## All tasks together")[1].split("## Which tasks")[0]


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


def test_the_story_says_what_is_known() -> None:
    told = summary_of(study(3))
    assert [bool(sentence(told)) for sentence in STORY.sentences] == [True] * 3
    assert "Where GRM, with the better of its two D, has the best mean score" in (STORY.conclusion(told) or "")
    assert STORY.picture(told)
    assert len(STORY.charts(told)) == 2
    assert STORY.sentences[0](told).startswith("270 runs so far, of 314")
    early = summary_of(tuned()[:2])
    assert STORY.conclusion(early) == "Which method when is not known yet: docs/results/arena.md says what is missing."
    assert STORY.picture(early)
    assert STORY.charts(early) == []
    assert STORY.conclusion(summary_of([])) is None
    assert STORY.picture(summary_of([])) is None
