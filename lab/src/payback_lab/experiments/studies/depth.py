"""Depth: how far each method explores, with the coefficient of the safe range and no tuning per task."""

from dataclasses import replace
from pathlib import Path

from payback_lab.experiments.arena.config import ADV, ADVANTAGE_SIDE, TWO
from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.study import Cell, Study, committed, setting_of, whole_updates
from payback_lab.learners.arena.config import ARENA_VERSION

TASKS = (
    ("DoorKey-16x16", "counts", 6),
    ("DoorKey-16x16", "views", 6),
    ("KeyCorridorS4R3", "views", 6),
    ("MultiRoom-N6", "views", 6),
    ("KeyCorridorS5R3", "views", 12),
    ("MultiRoom-N7-S8", "views", 12),
    ("KeyCorridorS6R3", "views", 20),
    ("MultiRoom-N12-S10", "views", 20),
    ("ObstructedMaze-2Dlh", "views", 20),
)
"""Task, bonus, millions of steps."""
RAW = ("im", "im-centred")
"""The bonus as it comes, and F − F̄, which was added when the safe range showed what centring does."""
GRM = ("grm-10", "grm-30")
"""The delays of which the better one in the safe range is taken."""
ROLLOUTS = (64, 256, 512)
"""Other lengths of a rollout than the learner's 128 steps, on one task, because K and the horizon meet its border."""
ROLLOUT_TASK = ("KeyCorridorS4R3", "views", 6)
ROLLOUT_METHODS = (ADV, TWO)
COMPLETE = len(TASKS) * (len(RAW) + 1 + len(ADVANTAGE_SIDE)) + len(ROLLOUTS) * len(ROLLOUT_METHODS)
"""How many cells there are once every method has its α; of the delays one is taken."""


def better_delay(finished: Finished) -> str | None:
    """Return the delay of GRM that solves more at its own α in the safe range; None while one has no α."""
    return safe_range.best_of(finished, GRM)


def cells_of(finished: Finished) -> tuple[Cell, ...]:
    """Return the cells whose α the safe range has decided."""
    grm = better_delay(finished)
    methods = (*RAW, *(() if grm is None else (grm,)), *ADVANTAGE_SIDE)
    alphas = {method: safe_range.chosen_alpha(finished, method) for method in methods}
    found = {method: chosen[0] for method, chosen in alphas.items() if chosen is not None}
    cells = [
        Cell(setting_of(task, alpha, bonus), method, whole_updates(millions))
        for task, bonus, millions in TASKS
        for method, alpha in found.items()
    ]
    task, bonus, millions = ROLLOUT_TASK
    for method in ROLLOUT_METHODS:
        if method in found:
            for length in ROLLOUTS:
                steps = whole_updates(millions, samples=16 * length)
                cells.append(Cell(setting_of(task, found[method], bonus, rollout=length), method, steps))
    return tuple(cells)


class Depth(Study):
    """The study as the committed runs of the safe range leave it."""

    def informed(self, summaries: Path) -> "Depth":
        """Return the study with the coefficients that the safe range has decided."""
        cells = cells_of(committed(summaries, safe_range.EXPERIMENT))
        waiting = "" if len(cells) == COMPLETE else WAITING
        settings = tuple(dict.fromkeys(cell.setting for cell in cells)) or self.settings
        return replace(self, cells=cells, waiting=waiting, settings=settings)


WAITING = (
    "Some methods have no coefficient yet: run seed 0 of safe-range and save it (payback-lab report --save-summaries), "
    "then the same command goes on."
)
EXPERIMENT = Depth(
    name="depth",
    title="How deep each method explores",
    settings=tuple(setting_of(task, safe_range.MIDDLE, bonus) for task, bonus, _ in TASKS),
    notes=(
        "Not in the paper. The arena's learner with γ = 0.99; each method has the coefficient that the safe range "
        "chose, the same on every task. The bonus is α/n of the agent's own view, on DoorKey-16x16 also counts of the "
        "simulator's state.",
        'Rules and predictions: docs/predictions.md, "Depth".',
        ONE_SEED_FIRST,
    ),
    learner_version=ARENA_VERSION,
    points=75,
    adds_up=True,
)
