"""The safe range: which coefficients of the bonus work, over three orders of magnitude, for every method."""

from collections.abc import Mapping, Sequence

from payback_lab.experiments.arena.chosen import smallest_as_good
from payback_lab.experiments.arena.config import ADV, ADVANTAGE_SIDE, TWO
from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.experiments.studies.study import Cell, Study, setting_of, solving, whole_updates
from payback_lab.learners.arena.config import ARENA_VERSION

TASKS = ("DoorKey-11x11", "KeyCorridorS3R3")
ALPHAS = (0.00125, 0.005, 0.02, 0.08, 0.32)
MIDDLE = 0.02
"""α of the ablations and of the runs without a bonus, which have none."""
METHODS = ("im", "pies", "phased", "grm-10", "grm-30", *ADVANTAGE_SIDE)
SHORT = "grm-adv-30-0.95"
CENTRED = ("im-centred", f"{TWO}-centred", f"{TWO}-centred-back")
"""What centring does without GRM, at every α: F − F̄ paid and never repaid, to one critic or to two."""
ABLATIONS = (
    *(f"{ADV}{ending}" for ending in ("-flat", "-flat-back", "-lone", "-lone-back")),
    *(f"{SHORT}{ending}" for ending in ("", "-lone", "-lone-back")),
    *CENTRED,
)
STEPS = whole_updates(2)

CELLS = (
    *(Cell(setting_of(task, alpha), m, STEPS) for alpha in ALPHAS for task in TASKS for m in METHODS),
    *(Cell(setting_of(task, MIDDLE), "none", STEPS) for task in TASKS),
    *(Cell(setting_of(task, MIDDLE), m, STEPS) for task in TASKS for m in ABLATIONS),
    *(
        Cell(setting_of(task, alpha), m, STEPS)
        for alpha in ALPHAS
        if alpha != MIDDLE
        for task in TASKS
        for m in CENTRED
    ),
)


def chosen_alpha(finished: Finished, method: str) -> tuple[float, float] | None:
    """Return a method's α for the later studies and what it solves there, by seed 0 of both tasks; None if one lacks.

    The smallest α whose mean `solving` over the two tasks is within 0.01 of the largest.
    """
    found = solved_by_alpha(finished, method)
    if len(found) < len(ALPHAS):
        return None
    alpha = smallest_as_good(found)
    return alpha, found[alpha]


def best_of(finished: Finished, methods: Sequence[str]) -> str | None:
    """Return which of these methods solves the most at its own α; None while one of them has none."""
    found = {method: chosen_alpha(finished, method) for method in methods}
    known = {method: chosen[1] for method, chosen in found.items() if chosen is not None}
    return max(known, key=lambda method: known[method]) if len(known) == len(found) else None


def solved_by_alpha(finished: Finished, method: str) -> Mapping[float, float]:
    """Return α → mean `solving` of seed 0 over the two tasks, of the α for which both runs are there."""
    found = {}
    for alpha in ALPHAS:
        runs = [finished.get((setting_of(task, alpha), method), {}).get(0) for task in TASKS]
        if all(run is not None for run in runs):
            found[alpha] = solving([run for run in runs if run is not None])
    return found


EXPERIMENT = Study(
    name="safe-range",
    title="Which coefficients work",
    cells=CELLS,
    settings=tuple(dict.fromkeys(cell.setting for cell in CELLS)),
    notes=(
        "Not in the paper. The arena's learner with γ = 0.99 on two MiniGrid tasks. The bonus is α/n of the agent's "
        "own 7×7 view, hashed, in this episode; nothing of the simulator's state is read.",
        'Rules and predictions: docs/predictions.md, "The safe range".',
        ONE_SEED_FIRST,
    ),
    learner_version=ARENA_VERSION,
    points=75,
    adds_up=True,
)
