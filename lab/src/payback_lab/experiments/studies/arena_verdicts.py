"""What docs/predictions.md says of the methods that were added to the arena, decided from the committed runs."""

from collections.abc import Sequence

from payback_lab.experiments.arena.chosen import cell_of
from payback_lab.experiments.arena.config import ADV, ADVANTAGE_SIDE, TWO
from payback_lab.experiments.arena.finished import SEEDS, seeds_of
from payback_lab.experiments.arena.measures import is_solved, scores, shares, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import LAVA
from payback_lab.experiments.studies.verdicts import Comparison, Judged, compared, decided
from payback_lab.over_tasks import probability_of_improvement

DOORKEY, NOISY, LARGE, CORRIDOR = "DoorKey-11x11", "MultiRoom-N4-S5-NoisyTV", "DoorKey-13x13", "KeyCorridorS3R3"
ADV_BACK, TWO_BACK = f"{ADV}-back", f"{TWO}-back"
GRM, CENTRED = "grm-30", "im-centred"
BACK_ALIKE = "Taken back, grm-adv and two critics do not differ significantly over all tasks."
CENTRED_ALIKE = "Over all tasks the centred raw bonus and GRM with D = 30 do not differ significantly."
NOISE = "On the noisy TV GRM with D = 30 is better than the centred raw bonus."


def of_arena(results: StudyResults) -> list[Judged]:
    """Judge the predictions of what was added; each needs three seeds of every cell that it is about."""
    tasks = (DOORKEY, LARGE, CORRIDOR)
    return [
        _all_solve(results, tasks),
        _none_better(results),
        _sooner(results),
        _back_no_worse(results),
        _noisy(results),
        _compared(results, BACK_ALIKE, "alike", "grm-adv", ADV_BACK, TWO_BACK, results.tasks),
        _centred_solves(results, tasks),
        _compared(results, CENTRED_ALIKE, "alike", "GRM", GRM, CENTRED, results.tasks),
        _compared(results, NOISE, "better", "GRM", GRM, CENTRED, [NOISY]),
        *(_safer_in_lava(results, alpha) for alpha in (0.02, 0.08)),
    ]


def _known(results: StudyResults, tasks: Sequence[str], methods: Sequence[str]) -> bool:
    return all(len(results.runs(task, method)) >= SEEDS for task in tasks for method in methods)


def _solved(results: StudyResults, tasks: Sequence[str], methods: Sequence[str]) -> list[str]:
    return [f"{method} on {task}" for task in tasks for method in methods if is_solved(results.runs(task, method))]


def _all_solve(results: StudyResults, tasks: Sequence[str]) -> Judged:
    there = _solved(results, tasks, ADVANTAGE_SIDE)
    cells = len(tasks) * len(ADVANTAGE_SIDE)
    text = f"All four solve {', '.join(tasks[:-1])} and {tasks[-1]}."
    return decided(text, _known(results, tasks, ADVANTAGE_SIDE), len(there) == cells, f"{len(there)} of {cells} solved")


def _none_better(results: StudyResults) -> Judged:
    text = f"On {DOORKEY} none of the four is better than GRM with D = 30."
    if not _known(results, [DOORKEY], (*ADVANTAGE_SIDE, GRM)):
        return decided(text, False)
    better = [method for method in ADVANTAGE_SIDE if results.improvement(method, GRM, [DOORKEY]).low > 0.5]
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
    if not _known(results, results.tasks, ADVANTAGE_SIDE):
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


def _compared(
    results: StudyResults, text: str, expected: Comparison, name: str, own: str, rival: str, tasks: Sequence[str]
) -> Judged:
    """Judge how a method, called `name`, compares with its rival over these tasks."""
    if not _known(results, tasks, (own, rival)):
        return decided(text, False)
    return compared(text, name, results.improvement(own, rival, tasks), expected)


def _centred_solves(results: StudyResults, tasks: Sequence[str]) -> Judged:
    there = _solved(results, tasks, [CENTRED])
    text = f"The centred raw bonus solves {', '.join(tasks[:-1])} and {tasks[-1]}."
    return decided(text, _known(results, tasks, [CENTRED]), len(there) == len(tasks), f"{len(there)} of {len(tasks)}")


def _safer_in_lava(results: StudyResults, alpha: float) -> Judged:
    text = f"In {LAVA} at α = {alpha:g} GRM with D = 30 solves more than the centred raw bonus."
    own, other = (shares(seeds_of(results.finished, cell_of(LAVA, alpha), method)) for method in (GRM, CENTRED))
    if min(len(own), len(other)) < SEEDS:
        return decided(text, False)
    chance = probability_of_improvement([own], [other])
    means = f"{100 * own.mean():.0f} % and {100 * other.mean():.0f} %"
    return decided(text, True, chance.low > 0.5, f"{means}; GRM solves more with probability {chance.format('.2f')}")
