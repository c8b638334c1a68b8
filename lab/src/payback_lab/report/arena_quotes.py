"""What README, docs/understand/compare.md and when-not.md quote of the arena, from its committed summary."""

from collections.abc import Callable
from pathlib import Path

from payback_lab.experiments.arena.finished import SEEDS
from payback_lab.experiments.arena.measures import is_solved
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.report import which_method
from payback_lab.report.arena import results_in
from payback_lab.report.arena_tables import alpha_said
from payback_lab.report.charts.arena import name_of
from payback_lab.report.markdown import placed, rows

TOO_FEW = f"Not compared yet, because that needs {SEEDS} seeds of every method."
COMPARED = (
    "Eleven methods in one PPO, EIPO, PIES and ADOPS among them, each with the best of three α, because a smaller raw "
    "bonus does less harm\n([the arena](docs/results/arena.md); a score of 1 is always solved in the fewest steps):"
)


def in_brief(results: StudyResults) -> str:
    """Say in README who is best over all tasks, and who is with another bonus."""
    return f"{COMPARED}\n\n{_listed(results, which_method.best_overall, which_method.another_bonus)}"


def with_table(page: str, summaries: Path) -> str:
    """Return docs/understand/compare.md with every method's score and how many tasks it solves."""
    return placed(page, "table of the arena", table(results_in(summaries)))


def with_costs(page: str, summaries: Path) -> str:
    """Return docs/understand/when-not.md with what the arena says against using a loan."""
    told = (which_method.guaranteed, which_method.where_grm_is_not, which_method.another_bonus)
    return placed(page, "costs in the arena", _listed(results_in(summaries), *told))


def table(results: StudyResults) -> str:
    """Write every method's interquartile mean score over the compared tasks, and how many of them it solves."""
    if not results.enough():
        return TOO_FEW
    lines = [
        (
            name_of(method),
            alpha_said(results, method),
            score.said(".2f"),
            f"{sum(is_solved(results.runs(task, method)) for task in results.compared)} of {len(results.compared)}",
        )
        for method, score in results.overall.items()
    ]
    return rows(("method", "α", "score", "tasks solved"), lines)


def _listed(results: StudyResults, *lines: Callable[[StudyResults], str]) -> str:
    return "\n".join(f"- {line(results)}" for line in lines)
