"""What is measured of a finished run of the arena, as docs/predictions.md defines it."""

from collections.abc import Sequence

import numpy as np

from payback_lab.experiments.arena.fewest import FEWEST
from payback_lab.experiments.arena.finished import Figures

SOLVED, FOUND = 0.95, 0.5
"""The shares of episodes from which on the median seed solves a task, and finds its goal."""


def shares(runs: Sequence[Figures]) -> np.ndarray:
    """Return the share of 1,000 episodes that each trained agent solves, acting as in training."""
    return np.array([run["sampled_solved"] for run in runs], dtype=np.float64)


def is_solved(runs: Sequence[Figures]) -> bool:
    """Say whether in the median seed at least 95 % of these episodes reach the goal.

    >>> is_solved([{"sampled_solved": 0.96}, {"sampled_solved": 0.1}, {"sampled_solved": 1.0}])
    True
    """
    return bool(len(runs) and np.median(shares(runs)) >= SOLVED)


def is_found(runs: Sequence[Figures]) -> bool:
    """Say whether in the median seed at least half of these episodes reach the goal.

    >>> is_found([{"sampled_solved": 0.6}, {"sampled_solved": 0.1}, {"sampled_solved": 0.5}])
    True
    """
    return bool(len(runs) and np.median(shares(runs)) >= FOUND)


def solved_steps(runs: Sequence[Figures]) -> np.ndarray:
    """Return the step from which on each seed solves the task; one that never does counts with all of its steps."""
    steps = [run["trained_steps"] if run["solved_step"] is None else run["solved_step"] for run in runs]
    return np.array(steps, dtype=np.float64)


def over_fewest(task: str, runs: Sequence[Figures]) -> np.ndarray:
    """Return each seed's mean length over the fewest steps, an episode that is not solved counting with the limit."""
    return np.array([run["sampled_length"] for run in runs], dtype=np.float64) / FEWEST[task]


def scores(task: str, runs: Sequence[Figures]) -> np.ndarray:
    """Return each seed's score: the share solved times the fewest steps over the mean length of the solved.

    >>> run = {"sampled_solved": 0.5, "sampled_solved_length": 2 * FEWEST["DoorKey-11x11"]}
    >>> scores("DoorKey-11x11", [run, {"sampled_solved": 0.0, "sampled_solved_length": None}]).tolist()
    [0.25, 0.0]
    """
    lengths = np.array([run["sampled_solved_length"] or np.inf for run in runs], dtype=np.float64)
    return shares(runs) * FEWEST[task] / lengths
