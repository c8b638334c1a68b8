"""`payback-lab docs`: the tables and figures of README and docs, made again from the committed summaries."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from payback_lab.atomic_write import write_file
from payback_lab.report import claims, curiosity, readme, reproduction, store
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
"""The figures that README and docs show, by their names in the report."""


def write_docs(root: Path, summaries: Path, console: Console) -> int:
    """Write the tables into README.md and docs/reproduction.md, docs/claims.md, docs/figures, and where it
    has been run docs/results-curiosity.md; return 0.

    Nothing is written before everything is made, so that a summary that cannot be read changes no page.
    """
    missing = [name for name in ("README.md", "docs/reproduction.md") if not (root / name).is_file()]
    if missing:
        raise UserError(f"There is no {missing[0]} in {root}: give the folder of the repository with --root.")
    files = {
        "README.md": readme.filled((root / "README.md").read_text(), summaries),
        "docs/reproduction.md": reproduction.filled((root / "docs/reproduction.md").read_text(), summaries),
        "docs/claims.md": claims.page(summaries),
        **{f"docs/figures/{name}.svg": svg for name, svg in _figures(summaries).items()},
    }
    if curiosity.is_committed(summaries):
        files[curiosity.PAGE] = curiosity.page(summaries)
        files |= {f"docs/figures/{name}.svg": svg for name, svg in _drawn(summaries, "curiosity", (curiosity.FIGURE,))}
    with writing_to(root):
        for name, text in files.items():
            write_file(root / name, text.encode())
    console.print(f"wrote {len(files)} files: {', '.join(files)}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _figures(summaries: Path) -> dict[str, str]:
    """Draw the figures of README and docs/reproduction.md; all of them are of DoorKey."""
    return dict(_drawn(summaries, "doorkey", FIGURES))


def _drawn(summaries: Path, experiment: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Draw figures of one experiment by their names in the report."""
    _, charts = page([summary for summary in store.load(summaries) if summary.experiment == experiment])
    absent = [name for name in names if name not in charts.names()]
    if absent:
        raise UserError(f"The summaries in {summaries} lack what {absent[0]} shows: bring them back from git.")
    yield from ((name, charts.svg(name)) for name in names)
