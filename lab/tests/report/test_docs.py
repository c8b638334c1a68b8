"""`payback-lab docs` writes what is committed, and nothing if it cannot write all of it."""

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab.report import arena
from payback_lab.report.docs import FIGURES, OWN_FIGURES, PAGES, write_docs
from payback_lab.user_error import UserError

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "lab" / "results"


def test_it_writes_the_committed_pages_and_figures(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        # A figure of the first table is changed: it must come back from the summaries.
        text = (ROOT / name).read_text()
        changed = text.replace("10 of 10", "9 of 10").replace("never |", "0.10 M |").replace("✗ seed", "✓ seed")
        changed = changed.replace("seeds each", "runs each").replace("has the highest mean of all", "has not")
        changed = changed.replace("| 3 of 4 |", "| 4 of 4 |")
        (tmp_path / name).write_text(changed)
        assert changed != text, name
    assert write_docs(tmp_path, RESULTS, Console(quiet=True)) == 0
    figures = [f"docs/figures/{figure}.svg" for figure in (*FIGURES, *OWN_FIGURES)]
    figures += [f"docs/figures/{name}.svg" for name in arena.figures(RESULTS)]
    for name in (*PAGES, "docs/claims.md", "docs/results/curiosity.md", "docs/results/arena.md", *figures):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), name


def test_a_folder_without_the_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"There is no docs/results/cliff.md in .*: give the folder of the repository with --root"
    ):
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
