"""What the arena's later runs depend on, computed from its earlier ones by the rules of docs/predictions.md.

Each method's α, the four tasks, and the two tasks that get two more seeds; None while a run that decides is missing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.finished import SEEDS, Finished, first_seeds
from payback_lab.experiments.arena.measures import scores
from payback_lab.experiments.arena.setting import Setting

TUNED = "DoorKey-8x8"
"""The task on which α is chosen; it is none of the study's."""
TUNING_SEED = 10
ALPHAS = (0.005, 0.02, 0.08)
ALPHA = 0.02
"""α of the screening; also what the runs without a bonus are named with, which have none."""
ALIKE = 0.01
"""Mean shares solved within this of the largest are as good: the smaller α is taken."""
NEAREST = {"grm-1": "grm-10", "grm-100": "grm-30"}
"""Delays that are swept but not tuned have the α of the tuned delay that is nearest."""
CANDIDATES = (
    "DoorKey-11x11",
    "KeyCorridorS3R3",
    "MultiRoom-N4-S5",
    "MultiRoom-N6",
    "MultiRoom-N4-S5-NoisyTV",
    "ObstructedMaze-1Dlh",
    "UnlockPickup",
    "LavaCrossingS9N2",
    "FourRooms",
)
SCREENED = ("none", "im")
FIRST = ("DoorKey-11x11", "MultiRoom-N4-S5-NoisyTV")
"""The two tasks that are fixed beforehand."""
LONG, LONG_IF_NONE, FOUND = 1000, "DoorKey-13x13", 0.1
SPREAD_TASKS = 2
"""How many tasks get more seeds."""


class Screened(NamedTuple):
    """Hold what the screening found of one candidate; f and q are those of docs/predictions.md."""

    task: str
    found: Mapping[str, float]
    """Method → f, the share of the last tenth of training's episodes that reach the goal."""
    near: Mapping[str, float]
    """Method → q = f · optimum / mean length of these episodes."""

    @property
    def separation(self) -> float:
        """Return T = max f · (1 − max q)."""
        return max(self.found.values()) * (1 - max(self.near.values()))


def cell_of(task: str, alpha: float = ALPHA, **more: object) -> str:
    """Name the setting of a task.

    >>> cell_of("DoorKey-11x11", max_steps=303)
    'DoorKey-11x11_a0.02_g0.995_t303'
    """
    return Setting(task, alpha, **more).name  # pyright: ignore[reportArgumentType]


def tuning_shares(finished: Finished, method: str) -> dict[float, float]:
    """Return α → mean share solved over training, of the values of α there are."""
    runs = {alpha: finished.get((cell_of(TUNED, alpha), method), {}).get(TUNING_SEED) for alpha in ALPHAS}
    return {alpha: float(run["mean_training_solved"] or 0.0) for alpha, run in runs.items() if run is not None}


def chosen_alpha(finished: Finished, method: str) -> float | None:
    """Return a method's α: the smallest whose mean share solved is within 0.01 of the largest."""
    if method == "none":
        return ALPHA
    method = NEAREST.get(method, method)
    shares = tuning_shares(finished, method)
    if len(shares) < len(ALPHAS):
        return None
    return smallest_as_good(shares)


def smallest_as_good(shares: Mapping[float, float]) -> float:
    """Return the smallest α whose share is within 0.01 of the largest.

    >>> smallest_as_good({0.005: 0.2, 0.02: 0.895, 0.08: 0.9})
    0.02
    """
    return min(alpha for alpha, share in shares.items() if share >= max(shares.values()) - ALIKE)


def chosen_alphas(finished: Finished) -> dict[str, float] | None:
    """Return every method's α, also of the delays that are swept."""
    return alphas_of(finished, (*METHODS, *NEAREST))


def alphas_of(finished: Finished, methods: Sequence[str]) -> dict[str, float] | None:
    """Return the α of these methods; None while one has not been chosen."""
    found = {method: chosen_alpha(finished, method) for method in methods}
    known = {method: alpha for method, alpha in found.items() if alpha is not None}
    return known if len(known) == len(found) else None


def screened(finished: Finished) -> list[Screened]:
    """Return what the screening found of the candidates of which both runs are there, in their order."""
    found = []
    for task in CANDIDATES:
        cells = {method: finished.get((cell_of(task), method), {}) for method in SCREENED}
        if all(0 in seeds for seeds in cells.values()):
            shares = {method: float(seeds[0]["final_training_solved"] or 0.0) for method, seeds in cells.items()}
            lengths = {method: float(seeds[0]["final_training_length"] or np.inf) for method, seeds in cells.items()}
            near = {method: shares[method] * FEWEST[task] / lengths[method] for method in SCREENED}
            found.append(Screened(task, shares, near))
    return found


def chosen_tasks(finished: Finished) -> tuple[str, ...] | None:
    """Return the four tasks of the study."""
    candidates = screened(finished)
    if len(candidates) < len(CANDIDATES):
        return None
    others = [one for one in candidates if one.task not in FIRST]
    long = [one for one in others if LIMITS[one.task] > LONG]
    reached = any(max(one.found.values()) > FOUND for one in long)
    third = _most(long).task if reached else LONG_IF_NONE
    return *FIRST, third, _most([one for one in others if one.task != third]).task


def spreads(finished: Finished, tasks: tuple[str, ...], alphas: Mapping[str, float]) -> dict[str, float] | None:
    """Return each task's largest minus smallest mean score of a method over the first three seeds."""
    found = {}
    for task in tasks:
        means = []
        for method in METHODS:
            runs = first_seeds(finished, cell_of(task, alphas[method]), method)
            if len(runs) < SEEDS:
                return None
            means.append(float(scores(task, runs).mean()))
        found[task] = max(means) - min(means)
    return found


def most_spread(finished: Finished) -> tuple[str, ...] | None:
    """Return the two tasks with the largest spread, which get two more seeds."""
    alphas, tasks = chosen_alphas(finished), chosen_tasks(finished)
    found = spreads(finished, tasks, alphas) if alphas and tasks else None
    return tuple(sorted(found, key=lambda task: -found[task])[:SPREAD_TASKS]) if found else None


def _most(candidates: list[Screened]) -> Screened:
    return max(candidates, key=lambda one: one.separation)
