"""The arena on the first screen."""

from dataclasses import replace

from payback_lab.experiments.arena.chosen import FIRST, cell_of
from payback_lab.experiments.arena.claims import setting_title
from payback_lab.experiments.arena.results import StudyResults, study_results
from payback_lab.experiments.arena.study import planned_runs
from payback_lab.report import which_method
from payback_lab.report.charts.arena import TALL, estimates_chart, found_chart, found_points
from payback_lab.report.charts.curves import LABELS
from payback_lab.report.charts.picture import first_column
from payback_lab.report.stories.figures import curves, group_of, plain_groups
from payback_lab.report.story import Drawing, Story
from payback_lab.report.summary import Group, Summary

SHOWN = ("none", "im", "pies", "grm-30")


def results_of(summary: Summary) -> StudyResults:
    """Return the finished runs of a summary."""
    return study_results(run for group in summary.groups for run in group.runs)


def how_many(summary: Summary) -> str:
    """Say how many runs are in; which tasks and rules were committed before them."""
    results = results_of(summary)
    planned = len(planned_runs(results.parts)) + sum(part.size for part in results.parts if part.runs is None)
    many = f"{results.count} runs so far, of {planned}" if results.count < planned else f"{results.count} runs"
    return f"{many}; what counts as solved, sooner and better was committed before them (docs/predictions.md)."


def best(summary: Summary) -> str:
    """Say who is best over all tasks, as far as it is known."""
    return _plain(which_method.best_overall(results_of(summary)))


def where(summary: Summary) -> str:
    """Say where GRM is not the best."""
    return _plain(which_method.where_grm_is_not(results_of(summary)))


def conclusion(summary: Summary) -> str | None:
    """Conclude who is best on most tasks, or that it is not known yet."""
    results = results_of(summary)
    if not results.count:
        return None
    if not results.enough():
        return "Which method when is not known yet: docs/results/arena.md says what is missing."
    return _plain(which_method.where_grm_is_best(results))


def picture(summary: Summary) -> Drawing | None:
    """Draw the learning curves of the first task, each method with its own α, or of the first setting there is."""
    group = _of_first_task(summary) or next(iter(plain_groups(summary)), None)
    column = first_column(group) if group else None
    if group is None or column is None:
        return None
    caption = f"{LABELS[column].capitalize()}, {setting_title(group.setting or '')}"
    return curves(group, SHOWN, caption) or curves(group, (), caption)


def _of_first_task(summary: Summary) -> Group | None:
    """Return a group with the curves of the shown methods on the first task, each from the group of its α."""
    results = results_of(summary)
    alphas = {method: alpha for method in SHOWN if (alpha := results.alpha(method)) is not None}
    own = {method: group_of(summary, cell_of(FIRST[0], alpha)) for method, alpha in alphas.items()}
    there = {method: group for method, group in own.items() if group and method in group.curves}
    if not there:
        return None
    return replace(next(iter(there.values())), curves={method: group.curves[method] for method, group in there.items()})


def charts(summary: Summary) -> list[Drawing]:
    """Draw the one picture and the interquartile means, once there are tasks to compare the methods on."""
    results = results_of(summary)
    if not results.compared:
        return []
    found = found_chart(found_points(results), letters=12)
    words = "Interquartile mean of the score: 1 is always solved in the fewest steps"
    score = estimates_chart(results.overall, "score")
    return [
        Drawing("found", "Who finds the goal, and by how short a way", found, {}, TALL),
        Drawing("overall", words, score, {}, 22 * len(results.overall)),
    ]


def _plain(line: str) -> str:
    return line.replace("**", "")


STORY = Story("Which way to tame a bonus, when?", (how_many, best, where), conclusion, picture, charts, shown=0)
