"""`payback-lab docs`: the tables and figures of docs/, made again from the committed summaries."""

from pathlib import Path

from rich.console import Console

from payback_lab.atomic_write import write_file
from payback_lab.report import claims, reproduction, results_pages, store
from payback_lab.report.page import page
from payback_lab.user_error import UserError, writing_to

_MATCHINGS = "doorkey-other-matchings-a0.02-g0.995"
FIGURES = (
    "doorkey-room",
    "doorkey-a0.005-g0.99-window-mean",
    "doorkey-a0.02-g0.995-window-mean",
    "doorkey-a0.025-g0.995-window-mean",
    "doorkey-a0.02-g0.995-film",
    f"{_MATCHINGS}-sampled-length-by-delay",
    f"{_MATCHINGS}-settled-step-by-delay",
)
"""The figures that README and docs/ show, by their names in the report."""


FILLED = {**results_pages.FILLED, "docs/reproduction.md": reproduction.filled}
"""The pages that are written by hand around tables that are made, and what fills them."""


def write_docs(root: Path, summaries: Path, console: Console) -> int:
    """Write the tables into the pages of docs/, docs/claims.md, and docs/figures; return 0.

    Nothing is written before everything is made, so that a summary that cannot be read changes no page.
    """
    missing = [name for name in FILLED if not (root / name).is_file()]
    if missing:
        raise UserError(f"There is no {missing[0]} in {root}: give the folder of the repository with --root.")
    files = {
        **{name: fill((root / name).read_text(), summaries) for name, fill in FILLED.items()},
        "docs/claims.md": claims.page(summaries),
        **{f"docs/figures/{name}.svg": svg for name, svg in _figures(summaries).items()},
    }
    with writing_to(root):
        for name, text in files.items():
            write_file(root / name, text.encode())
    console.print(f"wrote {len(files)} files: {', '.join(files)}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _figures(summaries: Path) -> dict[str, str]:
    """Draw the figures of README and docs; all of them are of DoorKey."""
    _, charts = page([summary for summary in store.load(summaries) if summary.experiment == "doorkey"])
    absent = [name for name in FIGURES if name not in charts.names()]
    if absent:
        raise UserError(f"The summaries in {summaries} lack what {absent[0]} shows: bring them back from git.")
    return {name: charts.svg(name) for name in FIGURES}
