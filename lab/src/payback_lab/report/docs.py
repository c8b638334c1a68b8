"""`payback-lab docs`: the tables and figures of docs/, made again from the committed summaries."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from payback_lab.atomic_write import write_file
from payback_lab.report import (
    arena,
    arena_quotes,
    claims,
    curiosity,
    reach,
    readme,
    reproduction,
    results_pages,
    store,
    which_delay,
)
from payback_lab.report.charts.curiosity import curiosity_figure
from payback_lab.report.charts.reach import as_svg, reach_figure, speed_figure
from payback_lab.report.charts.which_delay import delay_figure, felt_figure
from payback_lab.report.page import page
from payback_lab.report.summary import Summary
from payback_lab.running.progress import say
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
OWN_FIGURES: Mapping[str, Callable[[Mapping[str, Summary]], dict[str, Any]]] = {
    "reach": lambda told: reach_figure(told["reach"]),
    "reach-speed": lambda told: speed_figure(told["reach"]),
    "which-delay": lambda told: delay_figure(told["delay"]),
    "felt-share": lambda told: felt_figure(),
    "curiosity": lambda told: curiosity_figure(told["curiosity"]),
}
"""The figures of docs/reach.md, docs/which-delay.md and docs/results/curiosity.md, from the summaries by experiment."""
FILLED = {
    **results_pages.FILLED,
    "docs/reproduction.md": reproduction.filled,
    "docs/understand/compare.md": arena_quotes.with_table,
    "docs/understand/when-not.md": arena_quotes.with_costs,
}
"""The pages that are written by hand around tables that are made, and what fills them from the folder of summaries."""
PAGES = (*FILLED, "README.md", "docs/reach.md", "docs/which-delay.md")
"""What is written by hand and has places for tables."""


def write_docs(root: Path, summaries: Path, console: Console) -> int:
    """Write README's sentences, the tables of docs/, whole pages (claims, curiosity, arena) and docs/figures; return 0.

    Nothing is written before everything is made, so that a summary that cannot be read changes no page.
    """
    missing = [name for name in PAGES if not (root / name).is_file()]
    if missing:
        raise UserError(f"There is no {missing[0]} in {root}: give the folder of the repository with --root.")
    text = {name: (root / name).read_text() for name in PAGES}
    told = {summary.experiment: summary for summary in store.load(summaries)}
    absent = [name for name in ("doorkey", "reach", "delay", "curiosity") if name not in told]
    if absent:
        raise UserError(f"There is no summary of {absent[0]} in {summaries}: bring it back from git.")
    of_arena = arena.figures(summaries)
    files = {
        **{name: fill(text[name], summaries) for name, fill in FILLED.items()},
        "docs/claims.md": claims.page(summaries),
        "docs/results/curiosity.md": curiosity.page(summaries),
        "docs/results/arena.md": arena.page(summaries, of_arena),
        "README.md": readme.filled(text["README.md"], told["reach"], told["curiosity"], arena.results_in(summaries)),
        "docs/reach.md": reach.filled(text["docs/reach.md"], told["reach"]),
        "docs/which-delay.md": which_delay.filled(text["docs/which-delay.md"], told),
        **{f"docs/figures/{name}.svg": svg for name, svg in (_figures(told, summaries) | of_arena).items()},
    }
    with writing_to(root):
        for name, content in files.items():
            write_file(root / name, content.encode())
    say(console, f"wrote {len(files)} files: {', '.join(files)}")
    return 0


def _figures(told: Mapping[str, Summary], summaries: Path) -> dict[str, str]:
    """Draw the figures of README and docs."""
    _, charts = page([told["doorkey"]])
    absent = [name for name in FIGURES if name not in charts.names()]
    if absent:
        raise UserError(f"The summaries in {summaries} lack what {absent[0]} shows: bring them back from git.")
    drawn = {name: as_svg(draw(told)) for name, draw in OWN_FIGURES.items()}
    return {**{name: charts.svg(name) for name in FIGURES}, **drawn}
