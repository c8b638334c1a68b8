""" "Which method when": ten lines from the evidence of the arena, or what is not known yet."""

from collections.abc import Callable, Sequence

from payback_lab.experiments.arena.chosen import ALPHAS, FIRST, tuning_shares
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.finished import SEEDS
from payback_lab.experiments.arena.measures import is_found, is_solved, over_fewest, scores, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import DELAYS, OWN_LIMIT, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.report.charts.arena import OURS, name_of
from payback_lab.statistics import Estimate

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
    """Name the tasks on which GRM, with one D or the other, has the best mean score, and the best of the others."""
    tasks = _known_tasks(results)
    if not tasks:
        return _unknown("Where GRM is the best choice", "no task has three seeds of every method")
    others = [method for method in METHODS if method not in GRM]
    there = {task: _best(results, task) for task in tasks if _found_by(results, task)}
    rivals = {task: _best(results, task, others) for task, method in there.items() if method in GRM}
    said = [f"{task} ({_beside(results, there[task], rival, task)})" for task, rival in rivals.items()]
    heading = "Where GRM, with the better of its two D, has the best mean score"
    return f"**{heading}**: {'; '.join(said) or 'on none of these tasks'}."


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
            said.append(f"{task} ({_beside(results, best, _best(results, task, GRM), task)})")
    return f"**Where another method has the best mean score**: {'; '.join(said) or 'on none of these tasks'}."


def without_a_bonus(results: StudyResults) -> str:
    """Say where no bonus is needed."""
    return _solved_where(results, "none", "Solved without a bonus")


def raw_bonus(results: StudyResults) -> str:
    """Say where the raw bonus solves the task, and how far from the fewest steps it ends there."""
    return _solved_where(results, "im", "Solved with the raw bonus")


def soonest(results: StudyResults) -> str:
    """Say who solves each task first, on average over seeds, and in how many seeds not within the training."""
    said = []
    for task in _known_tasks(results):
        steps = {m: float(solved_steps(own).mean()) for m in METHODS if is_solved(own := results.runs(task, m))}
        if steps:
            first = min(steps, key=lambda method: steps[method])
            runs = results.runs(task, first)
            late = sum(run["solved_step"] is None for run in runs)
            never = f", {late} of {len(runs)} seeds never" if late else ""
            said.append(f"{task}: {name_of(first)} ({steps[first] / 1e6:.2f} M steps{never})")
    return f"**Soonest**: {'; '.join(said)}." if said else _unknown("Soonest", "no task is solved by three seeds yet")


def guaranteed(results: StudyResults) -> str:
    """Say what the best method with a guarantee from the first step on costs against the best of all."""
    if not results.enough():
        return _unknown("What the guarantee costs", "there are too few seeds")
    best = next(iter(results.overall))
    own = next(method for method in results.overall if method in INVARIANT)
    if own == best:
        return f"**What the guarantee costs**: with counts nothing, because {name_of(own)} has the highest mean of all."
    chance = results.improvement(best, own)
    none = "needs none" if best == "none" else "has none"
    return (
        f"**What the guarantee costs**: {name_of(best)}, which {none}, {_how(chance)} {name_of(own)}, the best that "
        f"has one (probability of improvement {chance.said('.2f')})."
    )


def long_episodes(results: StudyResults) -> str:
    """Say whether GRM fails in long episodes, and which D is best at either limit."""
    longest = SWEPT_LIMITS[-1]
    at = {limit: {d: results.limited(limit, d) for d in DELAYS} for limit in (OWN_LIMIT, longest)}
    if any(len(own) < SEEDS for cells in at.values() for own in cells.values()):
        return _unknown("Long episodes", f"the sweep of the time limit needs {SEEDS} seeds of every D")
    solved = {limit: [name_of(d) for d in DELAYS if is_solved(cells[d])] for limit, cells in at.items()}
    if not solved[OWN_LIMIT]:
        return (
            f"**Long episodes**: not to be judged, because no D solves {SWEPT} at its own limit, {OWN_LIMIT:,} steps."
        )
    by = ", ".join(solved[longest]) or "no D"
    best = {limit: max(DELAYS, key=lambda d: scores(SWEPT, cells[d]).mean()) for limit, cells in at.items()}
    return (
        f"**Long episodes**: GRM {'does not fail' if solved[longest] else 'fails'} at {longest:,} steps, where "
        f"{SWEPT} is solved by {by}; the highest mean score there has {name_of(best[longest])}, at {OWN_LIMIT:,} steps "
        f"{name_of(best[OWN_LIMIT])}."
    )


def another_bonus(results: StudyResults) -> str:
    """Say who has the best mean score with RND on each task whose goal is found, beside GRM."""
    if any(len(results.runs(t, m, "rnd")) < SEEDS for t in FIRST for m in RND_METHODS):
        return _unknown("With RND", f"{SEEDS} seeds of its six methods on two tasks are needed")
    said = []
    for task in FIRST:
        best = _best(results, task, RND_METHODS, "rnd")
        if not any(is_found(results.runs(task, method, "rnd")) for method in RND_METHODS):
            said.append(f"{task} (no method finds its goal)")
        else:
            other = OURS if best != OURS else _best(results, task, [m for m in RND_METHODS if m != OURS], "rnd")
            said.append(f"{task} ({_beside(results, best, other, task, 'rnd')})")
    return f"**With RND**, α as chosen with counts, the best mean score: {'; '.join(said)}."


def sensitive_to_alpha(results: StudyResults) -> str:
    """Say whose learning depends most, and least, on α."""
    shares = {m: tuning_shares(results.finished, m) for m in METHODS if m != "none"}
    ranges = {m: max(own.values()) - min(own.values()) for m, own in shares.items() if len(own) == len(ALPHAS)}
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


def _best(results: StudyResults, task: str, methods: Sequence[str] = METHODS, bonus: str = "counts") -> str:
    return max(methods, key=lambda method: float(results.scores(method, [task], bonus)[0].mean()))


def _beside(results: StudyResults, one: str, other: str, task: str, bonus: str = "counts") -> str:
    """Say how one method compares with another on one task."""
    how = _how(results.improvement(one, other, [task], bonus))
    return f"{name_of(one)}, which {how} {name_of(other)}"


def _how(chance: Estimate) -> str:
    """Say what the interval of a probability of improvement tells."""
    if chance.low > 0.5:
        return "is better than"
    return "is told by no interval from" if chance.high >= 0.5 else "is worse, by the probability of improvement, than"


def _unknown(heading: str, why: str) -> str:
    return f"**{heading}**: not known yet, because {why}."
