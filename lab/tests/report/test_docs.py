"""`payback-lab docs` writes what is committed, and nothing if it cannot write all of it."""

import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab.report.docs import PAGES, figures, write_docs
from payback_lab.report.docs import Committed as Results
from payback_lab.report.markdown import placed
from payback_lab.user_error import UserError

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "lab" / "results"
CHALLENGE = (ROOT / "docs/results/challenge.md").read_text()


@pytest.fixture(scope="module")
def results() -> Results:
    """The committed summaries, read once; what is made of them is kept."""
    return Results(RESULTS)


@pytest.mark.slow
def test_it_writes_the_committed_pages_and_figures(tmp_path: Path) -> None:
    for name, marks in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        text = (ROOT / name).read_text()
        for mark in marks:
            text = placed(text, mark, "| stale |")
        (tmp_path / name).write_text(text)
    assert write_docs(tmp_path, RESULTS, Console(quiet=True)) == 0
    written = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= len(PAGES) + 19  # and a figure of each study that has runs
    for name in written:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), name


def test_a_folder_without_the_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no README.md in .*: give the folder of the repository with --root"):
        write_docs(tmp_path, RESULTS, Console(quiet=True))


def test_nothing_is_written_if_a_figure_is_missing(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text().replace("10 of 10", "9 of 10"))
    shutil.copytree(RESULTS, tmp_path / "results")
    (tmp_path / "results/doorkey/films.parquet").unlink()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.md")}
    with pytest.raises(UserError, match="cannot be read"):
        write_docs(tmp_path, tmp_path / "results", Console(quiet=True))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.md")} == before


def test_a_summary_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no summary of doorkey"):
        figures(Results(tmp_path))


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(UserError, match="no place for table of cliff"):
        placed("# Nothing here", "table of cliff", "")


def test_the_figures_that_pages_show_are_there() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for figure in re.findall(r"figures/[\w.-]+svg", page.read_text()):
            assert (ROOT / "docs" / figure).stat().st_size > 500, figure


@pytest.mark.parametrize("experiment", ["cliff", "long-cliff", "doorkey"])
def test_the_summary_counts_the_same_verdicts(results: Results, experiment: str) -> None:
    own = [claim.verdict for claim in results.claims(experiment) if claim.plain]
    holds, fails, open_ = (own.count(verdict) for verdict in ("holds", "does not hold", "undecided"))
    part = CHALLENGE.split(
        {"cliff": "**Cliff.**", "long-cliff": "**Long cliff.**", "doorkey": "**DoorKey.**"}[experiment]
    )
    assert re.match(rf"\s{holds} (\w+ )?hold, {fails} do not, {open_} are undecided", part[1])
    named = {"cliff": "for the cliff", "long-cliff": "for the long cliff", "doorkey": "for\nDoorKey"}[experiment]
    assert f"{len(own)} {named}" in CHALLENGE
