"""The pages of the studies, docs/results/{safe-range,depth,learned}.md: figures and tables from committed summaries.

A page is written by hand around its places; `payback-lab docs` fills them. What has not been run is said to be missing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from payback_lab.experiments.studies import learned
from payback_lab.experiments.studies.analysis import reached
from payback_lab.experiments.studies.verdicts import of_depth, of_learned, of_safe_range
from payback_lab.report.charts import studies as charts
from payback_lab.report.charts.style import as_svg
from payback_lab.report.studies_tables import (
    BONUSES,
    ablations_table,
    centred_table,
    depth_grid,
    depth_methods,
    depth_summary,
    depth_table,
    judged,
    learned_alphas,
    learned_runs,
    learned_table,
    rollouts_table,
    safe_summary,
    safe_table,
)
from payback_lab.report.study_results import Results


def figures(summaries: Path) -> dict[str, str]:
    """Draw what there are runs for, by name."""
    drawn = {}
    for name, draw in DRAWN.items():
        results = Results(name, summaries)
        spec = draw(results) if results.made else None
        if spec is not None:
            drawn[name] = as_svg(spec)
    return drawn


def figure_part(name: str, summaries: Path) -> str:
    """Say how many of a study's runs are in, and show its figure if there is one."""
    results = Results(name, summaries)
    parts = [results.so_far()]
    if results.made and DRAWN[name](results) is not None:
        parts.append(f"![{ALT[name]}](../figures/{name}.svg)")
    return "\n\n".join(parts)


def notes_of(results: Results) -> str:
    """List how the study was run."""
    return "\n".join(f"- {note}" for note in results.study.notes)


def draw_depth(results: Results) -> dict[str, Any] | None:
    """Draw the grid of tasks by methods."""
    cells = {(task.replace(", ", ",|"), method): one for (task, method), one in depth_grid(results).items()}
    return charts.depth_figure(cells, depth_methods(results.study), results.made, results.planned)


def draw_learned(results: Results) -> dict[str, Any] | None:
    """Draw bonuses by methods, task by task; None before a cell has run."""
    methods = results.choices.methods
    cells = {
        task: {
            (BONUSES[bonus], method): reached(learned_runs(results, task, bonus, method))
            for bonus in learned.BONUSES
            for method in methods
        }
        for task in learned.TASKS
    }
    if not any(one for own in cells.values() for one in own.values()):
        return None
    return charts.learned_figure(cells, methods, results.made, results.planned)


def _of_safe_range(results: Results) -> str:
    return judged(of_safe_range(results.finished))


def _of_depth(results: Results) -> str:
    return judged(of_depth(results.study.cells, results.finished))


def _of_learned(results: Results) -> str:
    return judged(of_learned(results.finished, results.choices))


def draw_safe_range(results: Results) -> dict[str, Any] | None:
    """Draw the score against α; None before a method has an α with runs on both tasks."""
    found = results.ranges
    return charts.safe_figure(found, results.made, results.planned) if found else None


DRAWN: dict[str, Callable[[Results], dict[str, Any] | None]] = {
    "safe-range": draw_safe_range,
    "depth": draw_depth,
    "learned": draw_learned,
}
ALT = {
    "safe-range": "Score against α for every method, a panel each; safe coefficients are filled",
    "depth": "Tasks by methods: which are solved by the final agent, found and lost, or not found",
    "learned": "Bonuses by methods on three tasks: share of episodes that the final agent solves",
}
PLACES: dict[str, dict[str, Callable[[Results], str]]] = {
    "safe-range": {
        "summary": safe_summary,
        "table": safe_table,
        "ablations": ablations_table,
        "centred": centred_table,
        "verdicts": _of_safe_range,
    },
    "depth": {"summary": depth_summary, "table": depth_table, "rollouts": rollouts_table, "verdicts": _of_depth},
    "learned": {"table": learned_table, "alphas": learned_alphas, "verdicts": _of_learned},
}


class HasFolder(Protocol):
    """What the tables are made from: the folder of committed summaries."""

    @property
    def folder(self) -> Path:
        """Return the folder."""
        ...


def marks_of(name: str) -> dict[str, Callable[[HasFolder], str]]:
    """Return what is written into a study's page, by mark."""

    def table(make: Callable[[Results], str]) -> Callable[[HasFolder], str]:
        return lambda of: make(Results(name, of.folder))

    tables = {f"{place} of {name}": table(make) for place, make in (PLACES[name] | {"notes": notes_of}).items()}
    return {f"figure of {name}": lambda of: figure_part(name, of.folder), **tables}


PAGES = {f"docs/results/{name}.md": marks_of(name) for name in PLACES}
"""Page → mark → what is written there, as `docs.py` has it for the other pages."""
