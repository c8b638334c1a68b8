"""The runs of the arena's study, part by part, as far as the finished runs decide which they are.

    tuning       α of every method, on a task that is not among the four
    screening    which tasks separate methods
    study        every method on the four tasks
    time limit   does GRM fail in long episodes?
    rnd          another bonus on two tasks
    without TV   the noisy TV's task without it, because a prediction compares the two
    more seeds   on the two most telling tasks
    added: α     α of the methods that were added when all of the above was finished
    added        these methods on the four tasks
    added: more  two more seeds of them where the others have five
    lava         does a centred bonus teach an agent to end its episodes?

What a part depends on, and by which rule, stands in `chosen.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from payback_lab.experiments.arena.chosen import (
    ALPHAS,
    CANDIDATES,
    FIRST,
    SCREENED,
    SEEDS,
    SPREAD_TASKS,
    TUNED,
    TUNING_SEED,
    alphas_of,
    cell_of,
    chosen_alphas,
    chosen_tasks,
    most_spread,
)
from payback_lab.experiments.arena.config import ADDED, METHODS
from payback_lab.experiments.arena.finished import Finished

MORE = 2
"""Seeds more on the most telling tasks."""
SWEPT, OWN_LIMIT = "DoorKey-11x11", 1210
SWEPT_LIMITS = (303, 605, OWN_LIMIT, 2420, 4840)
DELAYS = ("grm-1", "grm-10", "grm-30", "grm-100")
RND_METHODS = ("im", "pies", "grm-30", "adopes", "eipo", "phased")
WITHOUT_TV = "MultiRoom-N4-S5"
PAIRED = ("im", "grm-30")
LAVA = "LavaCrossingS9N2"
LAVA_CELLS = (
    ("none", 0.02),
    ("im", 0.005),
    *((method, alpha) for alpha in (0.02, 0.08) for method in ("im-centred", "grm-30")),
)
"""Method and α; 0.005 and 0.02 are those that the tuning chose."""
STAGES = (
    ("tuning",),
    ("screening",),
    ("study", "time limit", "rnd", "without TV", "more seeds"),
    ("added: α",),
    ("lava",),
    ("added", "added: more"),
)
"""The parts that take turns seed by seed, stage after stage."""


class PlannedRun(NamedTuple):
    """Name one run of the study."""

    setting: str
    method: str
    seed: int


@dataclass(frozen=True)
class Part:
    """Hold one part of the study; a run may serve several."""

    name: str
    title: str
    size: int
    """How many runs it has, known from the start."""
    runs: tuple[PlannedRun, ...] | None
    """Which they are; None while earlier parts have not decided it."""

    def made(self, finished: Finished) -> int:
        """Count the runs of this part that are finished."""
        return sum(run.seed in finished.get((run.setting, run.method), {}) for run in self.runs or ())


def limited(alpha: float, limit: int) -> str:
    """Name a setting of the sweep; the task's own limit is not written, so that the study's runs serve.

    >>> limited(0.02, 1210), limited(0.02, 605)
    ('DoorKey-11x11_a0.02_g0.995', 'DoorKey-11x11_a0.02_g0.995_t605')
    """
    return cell_of(SWEPT, alpha, max_steps=None if limit == OWN_LIMIT else limit)


def parts_of(finished: Finished) -> tuple[Part, ...]:
    """Return the parts, in the order in which they are run."""
    alphas, tasks, telling = chosen_alphas(finished), chosen_tasks(finished), most_spread(finished)
    study = sweep = rnd = plain = None
    if alphas:
        sweep = [(limited(alphas[d], limit), d) for limit in SWEPT_LIMITS for d in DELAYS]
        rnd = [(cell_of(task, alphas[m], bonus="rnd"), m) for task in FIRST for m in RND_METHODS]
        plain = [(cell_of(WITHOUT_TV, alphas[m]), m) for m in PAIRED]
    if alphas and tasks:
        study = [(cell_of(task, alphas[m]), m) for task in tasks for m in METHODS]
    more = [(cell_of(task, alphas[m]), m) for task in telling or () for m in METHODS] if alphas else []
    tuned = [(cell_of(TUNED, alpha), m) for alpha in ALPHAS for m in METHODS if m != "none"]
    return (
        _part("tuning", "Which α", [*tuned, (cell_of(TUNED), "none")], range(TUNING_SEED, TUNING_SEED + 1)),
        _part("screening", "Which tasks", [(cell_of(task), m) for task in CANDIDATES for m in SCREENED], range(1)),
        _part("study", "Every method on four tasks", study, range(SEEDS), 4 * len(METHODS)),
        _part("time limit", "Episode length", sweep, range(SEEDS), len(SWEPT_LIMITS) * len(DELAYS)),
        _part("rnd", "RND on two tasks", rnd, range(SEEDS), len(FIRST) * len(RND_METHODS)),
        _part("without TV", "The noisy TV's task without it", plain, range(SEEDS), len(PAIRED)),
        _part(
            "more seeds",
            "Two more seeds on the two most telling tasks",
            more if telling else None,
            range(SEEDS, SEEDS + MORE),
            SPREAD_TASKS * len(METHODS),
        ),
        *_added(finished, tasks, telling),
    )


def _added(finished: Finished, tasks: Sequence[str] | None, telling: Sequence[str] | None) -> tuple[Part, ...]:
    """Return the parts of the methods that were added; the others choose the tasks, and those with more seeds."""
    alphas = alphas_of(finished, ADDED)
    study = [(cell_of(task, alphas[m]), m) for task in tasks for m in ADDED] if alphas and tasks else None
    more = [(cell_of(task, alphas[m]), m) for task in telling for m in ADDED] if alphas and telling else None
    return (
        _part(
            "added: α",
            "Which α of the added methods",
            [(cell_of(TUNED, alpha), m) for alpha in ALPHAS for m in ADDED],
            range(TUNING_SEED, TUNING_SEED + 1),
        ),
        _part("added", "The added methods on four tasks", study, range(SEEDS), 4 * len(ADDED)),
        _part(
            "added: more",
            "Two more seeds of them on the two most telling tasks",
            more,
            range(SEEDS, SEEDS + MORE),
            SPREAD_TASKS * len(ADDED),
        ),
        _part("lava", "Where an episode can end badly", [(cell_of(LAVA, a), m) for m, a in LAVA_CELLS], range(SEEDS)),
    )


def planned_runs(parts: Sequence[Part]) -> list[PlannedRun]:
    """List the runs that are known: tuning and screening, then seed by seed one of everything before the next.

    What was added comes last, in the same order.
    """
    runs = {part.name: part.runs or () for part in parts}
    stages = [sorted((run for name in stage for run in runs[name]), key=lambda run: run.seed) for stage in STAGES]
    return list(dict.fromkeys(run for stage in stages for run in stage))


def said(parts: Sequence[Part]) -> str:
    """Say in one sentence what is planned now and what comes later; "" if all is planned."""
    waiting = [part for part in parts if part.runs is None]
    if not waiting:
        return ""
    now = ", ".join(f"{part.name} ({part.size})" for part in parts if part.runs is not None)
    later = ", ".join(f"{part.name} ({part.size})" for part in waiting)
    return (
        f"Planned now, in runs: {now}; the same command goes on with {later} once the summaries that decide them are "
        "saved (payback-lab report --save-summaries)."
    )


def _part(
    name: str, title: str, cells: Sequence[tuple[str, str]] | None, seeds: range, cells_expected: int | None = None
) -> Part:
    size = len(seeds) * (len(cells or ()) if cells_expected is None else cells_expected)
    if cells is None:
        return Part(name, title, size, None)
    return Part(name, title, size, tuple(PlannedRun(setting, m, seed) for seed in seeds for setting, m in cells))
