"""What docs/predictions.md says of the methods that were added to the arena, decided from the committed runs."""

from collections.abc import Sequence

from payback_lab.experiments.arena.config import ADDED
from payback_lab.experiments.arena.finished import SEEDS
from payback_lab.experiments.arena.measures import is_solved, scores, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.studies.verdicts import Judged, decided
from payback_lab.over_tasks import probability_of_improvement

DOORKEY, NOISY, LARGE, CORRIDOR = "DoorKey-11x11", "MultiRoom-N4-S5-NoisyTV", "DoorKey-13x13", "KeyCorridorS3R3"
ADV, ADV_BACK, TWO, TWO_BACK = ADDED
GRM = "grm-30"


def of_arena(results: StudyResults) -> list[Judged]:
    """Judge the predictions of "The advantage side"; each needs three seeds of every cell that it is about."""
    tasks = (DOORKEY, LARGE, CORRIDOR)
    return [
        _all_solve(results, tasks),
        _none_better(results),
        _sooner(results),
        _back_no_worse(results),
        _noisy(results),
        _alike(results),
    ]


def _known(results: StudyResults, tasks: Sequence[str], methods: Sequence[str]) -> bool:
    return all(len(results.runs(task, method)) >= SEEDS for task in tasks for method in methods)


def _solved(results: StudyResults, tasks: Sequence[str], methods: Sequence[str]) -> list[str]:
    return [f"{method} on {task}" for task in tasks for method in methods if is_solved(results.runs(task, method))]


def _all_solve(results: StudyResults, tasks: Sequence[str]) -> Judged:
    there = _solved(results, tasks, ADDED)
    cells = len(tasks) * len(ADDED)
    text = f"All four solve {', '.join(tasks[:-1])} and {tasks[-1]}."
    return decided(text, _known(results, tasks, ADDED), len(there) == cells, f"{len(there)} of {cells} solved")


def _none_better(results: StudyResults) -> Judged:
    text = f"On {DOORKEY} none of the four is better than GRM with D = 30."
    if not _known(results, [DOORKEY], (*ADDED, GRM)):
        return decided(text, False)
    better = [method for method in ADDED if results.improvement(method, GRM, [DOORKEY]).low > 0.5]
    return decided(text, True, not better, f"better: {', '.join(better) or 'none'}")


def _sooner(results: StudyResults) -> Judged:
    text = f"On {LARGE} grm-adv and two critics solve sooner than GRM with D = 30."
    if not _known(results, [LARGE], (ADV, TWO, GRM)):
        return decided(text, False)
    usual = -solved_steps(results.runs(LARGE, GRM))
    chances = [probability_of_improvement([-solved_steps(results.runs(LARGE, m))], [usual]) for m in (ADV, TWO)]
    measured = "; ".join(f"{m} with probability {c.format('.2f')}" for m, c in zip((ADV, TWO), chances, strict=True))
    return decided(text, True, all(chance.low > 0.5 for chance in chances), measured)


def _back_no_worse(results: StudyResults) -> Judged:
    text = "Taken back, each has at least the mean score of the same method where both solve the task."
    if not _known(results, results.tasks, ADDED):
        return decided(text, False)
    worse = []
    for method, back in ((ADV, ADV_BACK), (TWO, TWO_BACK)):
        for task in results.tasks:
            own, other = (results.runs(task, one) for one in (method, back))
            lower = scores(task, other).mean() < scores(task, own).mean()
            worse += [f"{back} on {task}"] if is_solved(own) and is_solved(other) and lower else []
    return decided(text, True, not worse, f"lower: {', '.join(worse) or 'none'}")


def _noisy(results: StudyResults) -> Judged:
    text = "On the noisy TV two critics solve nothing and grm-adv solves the task."
    there = _solved(results, [NOISY], (ADV, TWO))
    right = there == [f"{ADV} on {NOISY}"]
    return decided(text, _known(results, [NOISY], (ADV, TWO)), right, f"solved: {', '.join(there) or 'none'}")


def _alike(results: StudyResults) -> Judged:
    text = "Taken back, grm-adv and two critics do not differ significantly over all tasks."
    if not _known(results, results.tasks, (ADV_BACK, TWO_BACK)):
        return decided(text, False)
    chance = results.improvement(ADV_BACK, TWO_BACK, results.tasks)
    measured = f"grm-adv scores higher with probability {chance.format('.2f')}"
    return decided(text, True, chance.low <= 0.5 <= chance.high, measured)
