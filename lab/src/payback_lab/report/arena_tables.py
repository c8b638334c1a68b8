"""The tables and figures of docs/results/arena.md, from the committed summary of the arena."""

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from payback_lab.experiments.arena.chosen import ALPHAS, FIRST, cell_of, chosen_tasks, tuning_shares
from payback_lab.experiments.arena.config import ADDED, METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.finished import SEEDS, Figures, seeds_of
from payback_lab.experiments.arena.measures import is_solved, over_fewest, scores, shares, solved_steps
from payback_lab.experiments.arena.results import StudyResults, study_results
from payback_lab.experiments.arena.study import DELAYS, LAVA, LAVA_CELLS, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.over_tasks import false_alarms
from payback_lab.report.charts import arena as charts
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.style import as_svg
from payback_lab.report.markdown import rows
from payback_lab.report.store import committed
from payback_lab.statistics import mean_estimate

MEASURED = (
    "seeds",
    "episodes solved",
    "task solved",
    "solved from, M steps",
    "length relative to the shortest path",
    "score",
)
CONSTRAINED = ("eipo", "hepo")
NONE_YET = "No run of this part has been made yet."
FIGURES: dict[str, Callable[[StudyResults], dict[str, Any]]] = {
    "arena-found": charts.found_figure,
    "arena-overall": charts.overall_figure,
    "arena-profiles": charts.profile_figure,
    "arena-improvement": charts.improvement_figure,
    "arena-length": charts.length_figure,
    "arena-limit": charts.limit_figure,
    "arena-rnd": charts.rnd_figure,
}
"""The figures of the page, by name."""


def results_in(summaries: Path) -> StudyResults:
    """Return the committed runs of the arena."""
    return study_results(run for group in committed(summaries, "arena")["groups"] for run in group["runs"])


def figures(results: StudyResults) -> dict[str, str]:
    """Draw the figures as SVG, by name."""
    return {name: as_svg(draw(results)) for name, draw in FIGURES.items()}


def overall_table(results: StudyResults) -> str:
    """Write every method's interquartile mean score over the compared tasks, and how many of them it solves."""
    lines = [
        (
            name_of(method),
            format_alpha(results, method),
            score.format(".2f"),
            f"{sum(is_solved(results.runs(task, method)) for task in results.compared)} of {len(results.compared)}",
        )
        for method, score in results.overall.items()
    ]
    return rows(("method", "α", "score", "tasks solved"), lines)


def made(results: StudyResults) -> str:
    """Write how many runs of each part have been made."""
    return rows(("part", "runs made"), [(p.title, f"{p.made(results.finished)} of {p.size}") for p in results.parts])


def alphas(results: StudyResults) -> str:
    """Write every method's mean share solved over training with each α, and the one that is taken."""
    lines = []
    for method in (*METHODS, *ADDED):
        found = tuning_shares(results.finished, method)
        if not found:
            continue
        chosen = results.alpha(method)
        cells = [f"{found[a]:.3f}" if a in found else "–" for a in ALPHAS]
        cells = [f"**{cell}**" if a == chosen else cell for a, cell in zip(ALPHAS, cells, strict=True)]
        taken = f"{chosen:g}" if chosen is not None else "open"
        if method == "none":  # its run is kept under some α, which does not matter to it
            cells, taken = ["–"] * len(ALPHAS), f"has no α: {next(iter(found.values())):.3f}"
        lines.append((name_of(method), *cells, taken))
    return rows(("method", *(f"α = {a:g}" for a in ALPHAS), "taken"), lines) if lines else NONE_YET


def screening(results: StudyResults) -> str:
    """Write what the screening found of each candidate, and which were chosen."""
    if not results.screening:
        return NONE_YET
    four = chosen_tasks(results.finished) or ()
    lines = [
        (
            one.task,
            f"{LIMITS[one.task]:,}",
            f"{FEWEST[one.task]:.1f}",
            *(f"{one.found[m]:.2f}" for m in ("none", "im")),
            *(f"{one.near[m]:.2f}" for m in ("none", "im")),
            f"{one.separation:.2f}",
            "fixed beforehand" if one.task in FIRST else "yes" if one.task in four else "no" if four else "open",
        )
        for one in results.screening
    ]
    columns = ("task", "limit", "shortest path", "f, no bonus", "f, raw", "q, no bonus", "q, raw", "T", "chosen")
    return rows(columns, lines)


def task_table(results: StudyResults, task: str) -> str:
    """Write every method on one task."""
    lines = [
        (name_of(method), format_alpha(results, method), *measured(task, own))
        for method in (*METHODS, *ADDED)
        if (own := results.runs(task, method))
    ]
    return rows(("method", "α", *MEASURED), lines) if lines else NONE_YET


def limit_table(results: StudyResults) -> str:
    """Write every D at every time limit."""
    lines = [
        (f"{limit:,}", name_of(method), format_alpha(results, method), *measured(SWEPT, own))
        for limit in SWEPT_LIMITS
        for method in DELAYS
        if (own := results.limited(limit, method))
    ]
    return rows(("limit", "method", "α", *MEASURED), lines) if lines else NONE_YET


def lava_table(results: StudyResults) -> str:
    """Write each method in the rooms in which an episode can end in lava."""
    lines = [
        (name_of(method), "–" if method == "none" else f"{alpha:g}", *measured(LAVA, own))
        for method, alpha in LAVA_CELLS
        if (own := seeds_of(results.finished, cell_of(LAVA, alpha), method))
    ]
    return rows(("method", "α", *MEASURED), lines) if lines else NONE_YET


def rnd_table(results: StudyResults) -> str:
    """Write the methods with RND on two tasks."""
    lines = [
        (task, name_of(method), format_alpha(results, method), *measured(task, own))
        for task in FIRST
        for method in RND_METHODS
        if (own := results.runs(task, method, bonus="rnd"))
    ]
    return rows(("task", "method", "α", *MEASURED), lines) if lines else NONE_YET


def multipliers(results: StudyResults) -> str:
    """Write the multipliers of EIPO and HEPO at the end of training, seed by seed."""
    lines = []
    for task in results.tasks:
        by_seed = [[f"{run['final_multiplier']:.2f}" for run in results.runs(task, m)] for m in CONSTRAINED]
        if any(by_seed):
            lines.append((task, *(", ".join(own) or "–" for own in by_seed)))
    return rows(("task", *(f"{name_of(m)}, by seed" for m in CONSTRAINED)), lines) if lines else NONE_YET


def error_rates(results: StudyResults) -> tuple[float, float]:
    """Return how often an interval would distinguish two equal methods: over all tasks, and on one of three seeds."""
    return false_alarms([len(own) for own in results.scores("none")]), false_alarms([SEEDS])


def pairs(results: StudyResults) -> str:
    """Write the probability of improvement of every pair of methods, that with the higher interquartile mean first."""
    lines = []
    for pair in combinations(results.overall, 2):
        chance = results.improvement(*pair)
        lines.append((*map(name_of, pair), chance.format(".2f"), _sure(chance.low, chance.high)))
    return rows(("method", "over", "probability of improvement", "better"), lines)


def measured(task: str, runs: Sequence[Figures]) -> tuple[str, ...]:
    """Write the measures of one cell: the mean over seeds and its interval."""
    late = sum(run["solved_step"] is None for run in runs)
    never = f" ({late} never)" if late else ""
    return (
        f"{len(runs)}",
        _mean(shares(runs) * 100, 0, "%"),
        "too few seeds" if len(runs) < SEEDS else "yes" if is_solved(runs) else "no",
        f"{_mean(solved_steps(runs) / 1e6, 2)}{never}",
        _mean(over_fewest(task, runs), 1, "×"),
        _mean(scores(task, runs), 2),
    )


def format_alpha(results: StudyResults, method: str) -> str:
    """Write a method's α; training without a bonus has none."""
    return f"{results.alpha(method):g}" if method != "none" else "–"


def _mean(values: np.ndarray, digits: int, unit: str = "") -> str:
    if len(values) < 2:
        return f"{values[0]:.{digits}f}{unit}"
    return mean_estimate(values).format(f".{digits}f", unit)


def _sure(low: float, high: float) -> str:
    return "yes" if low > 0.5 else "worse" if high < 0.5 else "not significant"
