""" "Which method when": ten lines from the evidence of the arena, or what is not known yet."""

from collections.abc import Callable, Sequence

import numpy as np

from payback_lab.experiments.arena.chosen import FIRST, SEEDS, tuning_shares
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.measures import is_found, is_solved, over_fewest, scores, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import DELAYS, OWN_LIMIT, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.report.charts.arena import name_of

OURS = "grm-30"
GRM = ("grm-10", "grm-30")
INVARIANT = ("pbim", *GRM)
"""Methods whose guarantee holds from the first step of training on."""


def lines(results: StudyResults) -> list[str]:
    """Return the ten lines."""
    told: tuple[Callable[[StudyResults], str], ...] = (
        best_overall,
        where_grm_is_best,
        where_grm_is_not,
        without_a_bonus,
        raw_bonus,
        soonest,
        guaranteed,
        long_episodes,
        another_bonus,
        sensitive_to_alpha,
    )
    return [line(results) for line in told]


def best_overall(results: StudyResults) -> str:
    """Say who has the highest interquartile mean, and whom no interval tells from it."""
    if not results.enough():
        return _unknown("Over all tasks", f"a comparison needs {SEEDS} seeds of every method on a task")
    best = next(iter(results.overall))
    told = {m: results.improvement(best, m) for m in METHODS if m != best}
    alike = [m for m, chance in told.items() if chance.low <= 0.5 <= chance.high]
    above = [m for m, chance in told.items() if chance.high < 0.5]
    parts = (("no interval tells it from", alike), ("by the probability of improvement it is worse than", above))
    also = "; ".join(f"{words} {', '.join(map(name_of, those))}" for words, those in parts if those)
    also = f"; {also}" if also else ", better than every other method"
    span = results.overall[best].said(".2f")
    return f"**Over all {len(results.compared)} tasks**: {name_of(best)}, interquartile mean score {span}{also}."


def where_grm_is_best(results: StudyResults) -> str:
    """Name the tasks on which GRM, with one D or the other, has the best mean score."""
    tasks = _known_tasks(results)
    if not tasks:
        return _unknown("Where GRM is the best choice", "no task has three seeds of every method")
    there = [task for task in tasks if _found_by(results, task) and _best(results, task) in GRM]
    said = ", ".join(f"{task} ({name_of(_best(results, task))})" for task in there) or "on none of these tasks"
    return f"**Where GRM has the best mean score**: {said}."


def where_grm_is_not(results: StudyResults) -> str:
    """Name the tasks on which another method has the best mean score, and whether an interval tells it.

    Where no method finds the goal, the best of scores near 0 says nothing.
    """
    tasks = _known_tasks(results)
    if not tasks:
        return _unknown("Where GRM is not, and what is", "no task has three seeds of every method")
    said = []
    for task in tasks:
        best = _best(results, task)
        if not _found_by(results, task):
            said.append(f"{task} (no method finds its goal)")
        elif best not in GRM:
            ours = _best(results, task, GRM)
            how = "better than" if results.is_better(best, ours, [task]) else "which no interval tells from"
            said.append(f"{task} ({name_of(best)}, {how} {name_of(ours)})")
    return f"**Where it has not**: {'; '.join(said) or 'on none of these tasks'}."


def without_a_bonus(results: StudyResults) -> str:
    """Say where no bonus is needed."""
    return _solved_where(results, "none", "Solved without a bonus")


def raw_bonus(results: StudyResults) -> str:
    """Say where the raw bonus solves the task, and how far from the fewest steps it ends there."""
    return _solved_where(results, "im", "Solved with the raw bonus")


def soonest(results: StudyResults) -> str:
    """Say who solves each task first."""
    said = []
    for task in _known_tasks(results):
        steps = {m: float(solved_steps(own).mean()) for m in METHODS if is_solved(own := results.runs(task, m))}
        if steps:
            first = min(steps, key=lambda method: steps[method])
            said.append(f"{task}: {name_of(first)} ({steps[first] / 1e6:.2f} M steps)")
    return f"**Soonest**: {'; '.join(said)}." if said else _unknown("Soonest", "no task is solved by three seeds yet")


def guaranteed(results: StudyResults) -> str:
    """Say what the best method with a guarantee from the first step on costs against the best of all."""
    if not results.enough():
        return _unknown("What the guarantee costs", "there are too few seeds")
    best = next(iter(results.overall))
    own = next(method for method in results.overall if method in INVARIANT)
    if own == best:
        return f"**What the guarantee costs**: nothing here, because {name_of(own)} is the best of all."
    span = results.improvement(best, own).said(".2f")
    return f"**What the guarantee costs**: {name_of(best)} beats {name_of(own)} with probability {span}."


def long_episodes(results: StudyResults) -> str:
    """Say whether GRM fails in long episodes, and which D is best at either limit."""
    longest = SWEPT_LIMITS[-1]
    at = {limit: {d: results.limited(limit, d) for d in DELAYS} for limit in (OWN_LIMIT, longest)}
    if any(len(own) < SEEDS for cells in at.values() for own in cells.values()):
        return _unknown("Long episodes", f"the sweep of the time limit needs {SEEDS} seeds of every D")
    solved = {limit: [d for d in DELAYS if is_solved(cells[d])] for limit, cells in at.items()}
    best = {limit: max(DELAYS, key=lambda d: scores(SWEPT, cells[d]).mean()) for limit, cells in at.items()}
    fails = bool(solved[OWN_LIMIT]) and not solved[longest]
    return (
        f"**Long episodes**: GRM {'fails' if fails else 'does not fail'} at {longest:,} steps; the best there is "
        f"{name_of(best[longest])}, at {OWN_LIMIT:,} steps {name_of(best[OWN_LIMIT])}."
    )


def another_bonus(results: StudyResults) -> str:
    """Say who is best with RND."""
    own = {m: [scores(t, results.runs(t, m, bonus="rnd")) for t in FIRST] for m in RND_METHODS}
    if any(len(values) < SEEDS for tasks in own.values() for values in tasks):
        return _unknown("With RND", f"{SEEDS} seeds of its six methods on two tasks are needed")
    means = {method: float(np.mean([values.mean() for values in tasks])) for method, tasks in own.items()}
    best = max(means, key=lambda method: means[method])
    return f"**With RND**: {name_of(best)}, mean score {means[best]:.2f}; {name_of(OURS)} has {means[OURS]:.2f}."


def sensitive_to_alpha(results: StudyResults) -> str:
    """Say whose learning depends most, and least, on α."""
    shares = {m: tuning_shares(results.finished, m) for m in METHODS if m != "none"}
    ranges = {m: max(own.values()) - min(own.values()) for m, own in shares.items() if len(own) == 3}
    if len(ranges) < 2:
        return _unknown("How much α matters", "too few of the tuning runs are in")
    order = sorted(ranges, key=lambda method: ranges[method])
    said = [f"{name_of(method)} ({ranges[method]:.2f})" for method in (order[0], order[-1])]
    spread = "range of the mean share solved over α, one seed on DoorKey-8x8"
    return f"**How much α matters**, {spread}: least for {said[0]}, most for {said[1]}."


def _solved_where(results: StudyResults, method: str, heading: str) -> str:
    tasks = [task for task in results.tasks if len(results.runs(task, method)) >= SEEDS]
    if not tasks:
        return _unknown(heading, "there are too few seeds")
    there = [
        f"{task} ({over_fewest(task, own).mean():.1f} times the fewest steps)"
        for task in tasks
        if is_solved(own := results.runs(task, method))
    ]
    return f"**{heading}**: {', '.join(there) or 'none'} of {len(tasks)} tasks."


def _known_tasks(results: StudyResults) -> list[str]:
    return [task for task in results.compared if results.enough([task])]


def _found_by(results: StudyResults, task: str) -> list[str]:
    return [method for method in METHODS if is_found(results.runs(task, method))]


def _best(results: StudyResults, task: str, methods: Sequence[str] = METHODS) -> str:
    return max(methods, key=lambda method: float(results.scores(method, [task])[0].mean()))


def _unknown(heading: str, why: str) -> str:
    return f"**{heading}**: not known yet, because {why}."
