"""The figures of the studies, from committed runs, by the rules of docs/predictions.md."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from payback_lab.experiments.arena.finished import Figures, Finished, seeds_of
from payback_lab.experiments.arena.measures import SOLVED, scores, shares
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.study import setting_of
from payback_lab.over_tasks import Estimate, interquartile_mean

SAFE = 0.5
"""An α is safe for a method if its score reaches this share of the best score of any method at any α."""
NO_TUNING, TUNING = 4, 2
"""Of five α: a method with at least so many safe ones needs no tuning; one with at most so many needs it."""
COLLAPSE = 0.5
"""A run collapsed if its best share solved in training exceeds the final agent's by this much."""
FOUND = 0.9
"""A task is found if in the median seed this share of some 100 successive training episodes is solved."""
Tuning = Literal["open", "no", "yes", "in between"]


class SafeRange(NamedTuple):
    """Hold one method's row of the safe range."""

    method: str
    scores: dict[float, Estimate]
    """α → interquartile mean score over the tasks."""
    safe: tuple[float, ...]
    """The α whose score reaches half of the best score of all methods."""
    seeds: dict[float, int]
    """α → the smallest number of seeds of a task."""
    collapsed: int
    """How many of its runs collapsed."""
    runs: int
    """How many runs it has in all."""

    @property
    def needs_tuning(self) -> Tuning:
        """Say whether the method needs tuning; open while an α has no score."""
        if len(self.scores) < len(safe_range.ALPHAS):
            return "open"
        many = len(self.safe)
        return "no" if many >= NO_TUNING else "yes" if many <= TUNING else "in between"


def safe_ranges(
    finished: Finished,
    methods: Sequence[str] = safe_range.METHODS,
    tasks: Sequence[str] = safe_range.TASKS,
) -> list[SafeRange]:
    """Return every method's row, of the α at which all these tasks have runs; [] before there are any."""
    found: dict[str, dict[float, list[list[Figures]]]] = {}
    for method in methods:
        for alpha in safe_range.ALPHAS:
            runs = [seeds_of(finished, setting_of(task, alpha), method) for task in tasks]
            if all(runs):
                found.setdefault(method, {})[alpha] = runs
    rows = {method: {alpha: score_of(tasks, runs) for alpha, runs in own.items()} for method, own in found.items()}
    best = max((score.value for row in rows.values() for score in row.values()), default=0.0)
    return [
        SafeRange(
            method,
            rows[method],
            tuple(alpha for alpha, score in rows[method].items() if best and score.value >= SAFE * best),
            {alpha: min(map(len, runs)) for alpha, runs in own.items()},
            sum(collapses(runs) for by_task in own.values() for runs in by_task),
            sum(len(runs) for by_task in own.values() for runs in by_task),
        )
        for method, own in found.items()
    ]


def score_of(tasks: Sequence[str], runs: Sequence[Sequence[Figures]]) -> Estimate:
    """Return the interquartile mean score of some runs, task by task."""
    return interquartile_mean([scores(task, own) for task, own in zip(tasks, runs, strict=True)])


class Reached(NamedTuple):
    """Hold what a method reached on one task."""

    solved: bool
    """Whether in the median seed the final agent solves at least 95 % of its episodes."""
    share: float
    """The median seed's share."""
    best: float
    """The median over seeds of the best share of 100 successive episodes in training."""
    collapsed: int
    """Seeds whose best share in training exceeds the final agent's by half."""
    seeds: int

    @property
    def found(self) -> bool:
        """Say whether in the median seed some 100 successive training episodes are 90 % solved."""
        return self.best >= FOUND


def reached(runs: Sequence[Figures]) -> Reached | None:
    """Sum up the seeds of one cell; None if there is none.

    >>> reached([{"sampled_solved": 0.1, "best_training_solved": 0.97}])
    Reached(solved=False, share=0.1, best=0.97, collapsed=1, seeds=1)
    """
    if not runs:
        return None
    final = shares(runs)
    return Reached(
        solved=bool(np.median(final) >= SOLVED),
        share=float(np.median(final)),
        best=float(np.median(best_shares(runs))),
        collapsed=collapses(runs),
        seeds=len(runs),
    )


def best_shares(runs: Sequence[Figures]) -> np.ndarray:
    """Return each seed's best share of 100 successive training episodes; 0 where fewer than 100 ended."""
    return np.array([run["best_training_solved"] or 0.0 for run in runs])


def collapses(runs: Sequence[Figures]) -> int:
    """Count the runs whose best share in training exceeds the final agent's by half.

    >>> collapses([{"sampled_solved": 0.4, "best_training_solved": 0.9}, {"sampled_solved": 1.0,
    ...     "best_training_solved": 1.0}])
    1
    """
    return int(np.sum(best_shares(runs) - shares(runs) >= COLLAPSE - 1e-9)) if runs else 0
