"""The studies' pages and figures, from made-up results whose outcome is known: complete, one seed, and none."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from payback_lab.experiments import load
from payback_lab.experiments.arena.chosen import FIRST, cell_of
from payback_lab.experiments.arena.config import ADDED, METHODS
from payback_lab.experiments.arena.fewest import FEWEST
from payback_lab.experiments.arena.results import study_results
from payback_lab.experiments.arena.study import LAVA
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.analysis import reached, safe_ranges
from payback_lab.experiments.studies.arena_verdicts import of_arena
from payback_lab.report import studies
from payback_lab.report.charts.studies import STATES, grid_rows
from payback_lab.report.markdown import placed
from payback_lab.report.study_results import NONE_YET, SIZES, Results

from ..experiments.arena_runs import made, screening, tuned
from ..experiments.study_runs import of_alpha, of_bonus, of_task, run_of, write_runs, write_study

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


class Folder(NamedTuple):
    folder: Path


def filled(folder: Path) -> dict[str, str]:
    found = {}
    for name, marks in studies.PAGES.items():
        page = (ROOT / name).read_text()
        for mark, make in marks.items():
            page = placed(page, mark, make(Folder(folder)))
        found[Path(name).stem] = page
    return found


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    made = [write_study(folder, "safe-range", of_alpha), write_study(folder, "depth", of_task)]
    made += [write_study(folder, "learned", of_bonus) for _ in range(2)]  # the tuning runs choose each α
    assert made == [SIZES["safe-range"], SIZES["depth"], 54, SIZES["learned"]]
    return folder


@pytest.fixture(scope="module")
def pages(full: Path) -> dict[str, str]:
    return filled(full)


def rows_of(page: str, place: str) -> list[list[str]]:
    table = page.split(f"<!-- {place} -->")[1].split("<!-- end of")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return lines[2:]


def test_safe_range_says_who_needs_tuning(pages):
    found = {row[0]: row[1:] for row in rows_of(pages["safe-range"], "summary of safe-range")}
    assert found["raw bonus"][:2] == ["0.00125, 0.005", "needs tuning"]
    assert found["GRM-adv"][:2] == ["0.005, 0.02, 0.08", "some tuning"]
    assert found["GRM-adv, taken back"][1] == "no tuning needed"
    assert found["GRM D = 10"][3:] == ["0 of 30", "0.08"]
    table = rows_of(pages["safe-range"], "table of safe-range")
    assert len(table) == 45
    assert pages["safe-range"].count("<details>") == 2
    assert all(row[2] == "3" and "[" in row[3] for row in table)


def test_a_collapse_is_counted(tmp_path):
    lost = {"two-critics-0.99-back": (0.0, 0.95)}
    write_study(tmp_path, "safe-range", lambda setting, method, seed: lost.get(method, (1.0, 1.0)))
    found = {row[0]: row for row in rows_of(filled(tmp_path)["safe-range"], "summary of safe-range")}
    assert found["two critics, taken back"][4] == "30 of 30"
    assert found["GRM-adv, taken back"][4] == "0 of 30"


def test_depth_shows_what_was_found_and_lost(pages, full):
    found = {row[0]: row[1:] for row in rows_of(pages["depth"], "summary of depth")}
    assert found["GRM-adv"][1:] == ["6 of 9", "6 of 9", "0 of 27"]
    assert found["GRM-adv, taken back"][1:] == ["5 of 9", "6 of 9", "3 of 27"]
    assert found["raw bonus"][1] == "1 of 9"
    assert len(rows_of(pages["depth"], "table of depth")) == 63
    lengths = [row[:3] for row in rows_of(pages["depth"], "rollouts of depth")]
    assert [row[1] for row in lengths] == ["64", "128", "256", "512"] * 2
    words = studies.figures(full)["depth"]
    assert "counts of the simulator's state" in words or "counts of the simulator&#39;s state" in words
    assert ">3 of 3 lost</text>" in words


def test_every_prediction_is_decided_by_three_seeds(pages):
    verdicts = {name: [row[0] for row in rows_of(page, f"verdicts of {name}")] for name, page in pages.items()}
    assert {name: len(own) for name, own in verdicts.items()} == {"safe-range": 13, "depth": 8, "learned": 5}
    assert "undecided" not in verdicts["safe-range"]
    by_text = {row[1]: row[0] for row in rows_of(pages["depth"], "verdicts of depth")}
    assert by_text["Taking back loses at least one cell that is found."] == "**holds**"
    assert by_text["One of them at least solves KeyCorridorS5R3."] == "**holds**"
    assert by_text["A rollout of 256 steps is not worse than 128."] == "**holds**"
    noisy = {row[1]: row[0] for row in rows_of(pages["learned"], "verdicts of learned")}
    assert set(noisy.values()) == {"**holds**"}


def test_a_prediction_can_fail(tmp_path):
    write_study(tmp_path, "safe-range", lambda setting, method, seed: (1.0, 1.0))
    found = {row[1]: row[0] for row in rows_of(filled(tmp_path)["safe-range"], "verdicts of safe-range")}
    assert found["The raw bonus is safe at 0.00125 and 0.005 at most."] == "**does not hold**"
    assert found["Taken back, both are safe at 0.32 too."] == "**holds**"
    assert found["grm-adv is not better than centred two critics."] == "**holds**"
    assert found["GRM-30 is better than the centred raw bonus."] == "**does not hold**"


def test_grm_is_found_better_than_what_is_only_centred(tmp_path):
    worse = dict.fromkeys(safe_range.CENTRED, (0.4, 0.4))
    write_study(tmp_path, "safe-range", lambda setting, method, seed: worse.get(method, (1.0, 1.0)))
    page = filled(tmp_path)["safe-range"]
    found = {row[1]: row[0] for row in rows_of(page, "verdicts of safe-range")}
    assert found["grm-adv is not better than centred two critics."] == "**does not hold**"
    assert found["grm-adv is not better than centred two critics, both taken back."] == "**does not hold**"
    assert found["GRM-30 is better than the centred raw bonus."] == "**holds**"
    assert found["Centred two critics, taken back or not, are safe at 0.02 and 0.08."] == "**does not hold**"
    assert len(rows_of(page, "centred of safe-range")) == 30


def test_one_seed_is_shown_and_decides_nothing(tmp_path):
    write_study(tmp_path, "safe-range", of_alpha, seeds=1)
    write_study(tmp_path, "depth", of_task, seeds=1, every=3)
    made = filled(tmp_path)
    assert "136 of 408 runs are in" in made["safe-range"]
    assert "23 of 207 runs are in" in made["depth"]
    for name, page in made.items():
        verdicts = {row[0] for row in rows_of(page, f"verdicts of {name}")}
        assert verdicts == {"undecided"}, name
    assert "too few seeds" in made["depth"]
    drawn = studies.figures(tmp_path)
    assert "136 of 408 runs, 1 seed of each cell shown." in drawn["safe-range"]
    assert "23 of 207 runs, 1 seed" in drawn["depth"]


def test_a_cell_with_one_task_has_no_score(tmp_path):
    study = load("safe-range")
    cells = [cell for cell in study.cells if cell.method == "im" and "KeyCorridor" in cell.setting]
    write_runs(tmp_path, "safe-range", [run_of("safe-range", cell, 0, of_alpha) for cell in cells])
    page = filled(tmp_path)["safe-range"]
    assert "![" not in page
    lines = rows_of(page, "table of safe-range")
    assert len(lines) == 5
    assert all(row[3] == row[4] == "–" and "not run" in row for row in lines)
    assert studies.figures(tmp_path) == {}


def test_without_runs_every_page_says_so(tmp_path):
    assert studies.figures(tmp_path) == {}
    for name, page in filled(tmp_path).items():
        assert f"**{NONE_YET}** {SIZES[name]} runs are planned." in page
        assert "![" not in page


def test_the_pages_have_the_figures_that_are_drawn(pages, full):
    drawn = studies.figures(full)
    assert set(drawn) == set(pages)
    for name, svg in drawn.items():
        assert f"(../figures/{name}.svg)" in pages[name]
        assert float(ET.fromstring(svg).attrib["width"]) <= 680, name


def test_safe_is_judged_beside_the_best_of_all_methods(tmp_path):
    write_study(tmp_path, "safe-range", of_alpha)
    finished = Results("safe-range", tmp_path).finished
    rows = {row.method: row for row in safe_ranges(finished)}
    assert rows["im"].needs_tuning == "yes"
    assert rows["phased"].needs_tuning == "in between"
    alone = safe_ranges({key: runs for key, runs in finished.items() if "0.32" not in key[0]})
    assert {row.needs_tuning for row in alone} == {"open"}
    assert set(rows["im"].seeds) == set(safe_range.ALPHAS)


def test_a_grid_tells_what_became_of_a_task():
    def one(share: float, best: float) -> dict:
        return {"sampled_solved": share, "best_training_solved": best}

    cells = {("a", "im"): reached([one(1.0, 1.0)] * 3), ("b", "im"): reached([one(0.0, 0.95)]), ("c", "im"): None,
             ("d", "im"): reached([one(0.6, 0.7)]), ("e", "im"): reached([one(0.1, 0.2)])}  # fmt: skip
    found = grid_rows(cells, {"im": "raw bonus"})
    assert [row["state"] for row in found] == ["solved", "found, then lost", "not run", "partly", "not found"]
    assert found[1]["seeds"] == "1 of 1 lost"
    assert set(STATES) >= {row["state"] for row in found} - {"not run"}


def arena_runs(outcome: dict[str, tuple[float, float]], seeds: int = 3) -> list[dict]:
    """Runs of the arena's four tasks: method → share solved, and times the fewest steps."""
    tasks = (*FIRST, "DoorKey-13x13", "KeyCorridorS3R3")
    shares = {0.005: 0.5, 0.02: 0.9, 0.08: 0.5}
    tuning = [made(cell_of("DoorKey-8x8", a), m, 10, share=s) for a, s in shares.items() for m in ADDED]
    cells = [(task, method, seed) for task in tasks for method in METHODS for seed in range(seeds)]
    finished = [made(cell_of(task), m, seed, share=0.9, times=3 + seed / 10) for task, m, seed in cells]
    added = [
        made(cell_of(task), method, seed, share=share, times=times + seed / 10, solved_step=10**6)
        for task in tasks
        for method, (share, times) in outcome.items()
        for seed in range(seeds)
    ]
    chosen = {"final_training_solved": 0.8, "final_training_length": 20 * FEWEST["KeyCorridorS3R3"]}
    finished = [{**run, **chosen} if "KeyCorridor" in run["id"] else run for run in finished]
    return [*tuned(), *screening("KeyCorridorS3R3"), *finished, *tuning, *added]


def test_the_arenas_added_methods_are_judged():
    even = dict.fromkeys(ADDED, (1.0, 4.0))
    found = {one.text[:20]: one.verdict for one in of_arena(study_results(arena_runs(even)))}
    assert list(found.values())[:6] == ["holds", "holds", "holds", "holds", "does not hold", "holds"]
    assert list(found.values())[6:9] == ["holds", "does not hold", "holds"]
    better = even | {ADDED[1]: (1.0, 2.0), ADDED[3]: (0.2, 9.0), ADDED[2]: (0.1, 9.0)}
    found = [one.verdict for one in of_arena(study_results(arena_runs(better)))]
    assert found[:6] == ["does not hold", "does not hold", "holds", "holds", "holds", "does not hold"]
    for outcome, verdicts in {
        (1.0, 2.0): ["holds", "does not hold", "does not hold"],
        (0.1, 9.0): ["does not hold", "does not hold", "holds"],
    }.items():
        found = of_arena(study_results(arena_runs(even | {"im-centred": outcome})))
        assert [one.verdict for one in found[6:9]] == verdicts


def test_an_end_in_lava_is_judged_at_each_coefficient():
    lava = {("im-centred", 0.02): 0.2, ("grm-30", 0.02): 0.9, ("im-centred", 0.08): 0.9, ("grm-30", 0.08): 0.9}
    runs = [made(cell_of(LAVA, a), m, seed, share=s) for (m, a), s in lava.items() for seed in range(3)]
    assert [one.verdict for one in of_arena(study_results(runs))[-2:]] == ["holds", "does not hold"]
    assert [one.verdict for one in of_arena(study_results(runs[:-1]))[-2:]] == ["holds", "undecided"]


def test_one_seed_of_the_added_methods_decides_nothing():
    runs = arena_runs(dict.fromkeys(ADDED, (1.0, 4.0)))
    few = [run for run in runs if run["scheme"] not in ADDED or run["seed"] in (0, 10)]
    assert {one.verdict for one in of_arena(study_results(few))} == {"undecided"}
    assert {one.verdict for one in of_arena(study_results([]))} == {"undecided"}


def test_added_methods_are_compared_once_all_their_seeds_are_there():
    runs = arena_runs(dict.fromkeys(ADDED, (1.0, 4.0)))
    assert study_results(runs).methods == (*METHODS, *ADDED)
    assert set(study_results(runs).overall) == {*METHODS, *ADDED}
    lacking = [run for run in runs if not (run["scheme"] == ADDED[0] and run["seed"] == 2)]
    assert study_results(lacking).methods == (*METHODS, *ADDED[1:])
