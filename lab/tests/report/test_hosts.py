"""The page of the study in Stable-Baselines3, from made-up results: complete, one seed, and none."""

from pathlib import Path

import pytest

from payback_lab.experiments import load
from payback_lab.experiments.hosts.experiment import PLANNED, TUNING_SEED
from payback_lab.experiments.hosts.setting import parse_setting
from payback_lab.experiments.hosts.verdicts import run_seed
from payback_lab.report import hosts
from payback_lab.report.charts.style import as_svg
from payback_lab.report.markdown import placed

from ..experiments.study_runs import of_alpha, of_bonus, write_runs, write_study
from ..experiments.test_hosts import figures, predicted_step

PAGE = Path(__file__).parents[3] / "docs" / "results" / "hosts.md"


def filled(folder: Path) -> str:
    page, runs = PAGE.read_text(), hosts.runs_in(folder)
    for mark, make in hosts.MARKS.items():
        page = placed(page, mark, make(runs))
    return page


def rows_of(page: str, mark: str) -> list[list[str]]:
    table = page.split(f"<!-- {mark} -->")[1].split("<!-- end of")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]


def write_hosts(folder: Path, seeds: int = 5) -> int:
    """Write the runs that are planned, the tuning runs first; return how many."""
    runs = []
    for cell in load("hosts").informed(folder).cells:
        own = range(cell.first_seed, cell.first_seed + min(seeds, cell.seeds))
        runs += [figures(cell, seed, predicted_step(parse_setting(cell.setting), cell.method, seed)) for seed in own]
    write_runs(folder, "hosts", runs)
    return len(runs)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    write_study(folder, "safe-range", of_alpha)
    for _ in range(2):  # the tuning runs choose each α
        write_study(folder, "learned", of_bonus)
        write_hosts(folder)
    write_hosts(folder)
    return folder


def test_the_whole_study(full: Path) -> None:
    page = filled(full)
    assert f"All {PLANNED} runs are in." in page
    assert "open" not in page.split("## How it was run")[0].split("<!-- figure of hosts -->")[1]
    assert "not run" not in page
    table = rows_of(page, "table of hosts")
    assert len(table) == 3 * 7
    found = {tuple(row[:3]): row for row in table}
    none = found["DoorKey-8x8", "–", "no bonus"]
    assert none[4:6] == ["5", "2 of 5"]
    assert len(rows_of(page, "alphas of hosts")) == 18
    assert len(rows_of(page, "normalisation of hosts")) == 12
    ready = {row[0]: row[2] for row in rows_of(page, "ready bonuses of hosts")}
    assert len(ready) == 11
    assert set(ready.values()) == {"3"}
    assert sum(row[4] == "yes" for row in rows_of(page, "alphas of hosts")) == 6
    assert "undecided" not in {row[0] for row in rows_of(page, "verdicts of hosts")}
    assert "../figures/hosts.svg" in page


def test_the_figure_has_every_seed_of_the_comparison(full: Path) -> None:
    runs = hosts.runs_in(full)
    spec = hosts.hosts_figure(runs)
    assert spec is not None
    drawn = as_svg(spec)
    assert "no bonus" in drawn
    assert "MountainCar" in drawn
    data = [row for rows in spec["datasets"].values() for row in rows] if "datasets" in spec else _values(spec)
    assert len(data) == 3 * 7 * 5


def _values(spec: dict) -> list[dict]:
    return [row for panel in spec["vconcat"] for row in panel["data"]["values"]]


def test_without_runs_every_cell_is_said_to_be_pending(tmp_path: Path) -> None:
    page = filled(tmp_path)
    assert f"**Not measured yet.** {PLANNED} runs are planned." in page
    assert "- GRM's delay (seed 0 of safe-range)" in page
    assert "![" not in page
    table = rows_of(page, "table of hosts")
    assert len(table) == 3 * 7
    assert {row[4] for row in table} == {"not run"}
    assert {row[0] for row in rows_of(page, "verdicts of hosts")} == {"undecided"}
    assert hosts.hosts_figure(hosts.runs_in(tmp_path)) is None


def test_a_seed_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    made = write_hosts(tmp_path, seeds=1)
    page = filled(tmp_path)
    assert f"{made} of {PLANNED} runs are in." in page
    assert {row[0] for row in rows_of(page, "verdicts of hosts")} == {"undecided"}
    assert "Empty rows have not been run." in as_svg(hosts.hosts_figure(hosts.runs_in(tmp_path)))
    assert any(row[4] == "1" for row in rows_of(page, "table of hosts"))


def test_tuning_runs_are_no_seeds_of_the_comparison(full: Path) -> None:
    runs = hosts.runs_in(full)
    for task, bonus in runs.pairs:
        assert {run_seed(run) for run in runs.cell(task, bonus, "im")} == set(range(5))
        assert TUNING_SEED not in {run_seed(run) for run in runs.cell(task, bonus, "im")}
