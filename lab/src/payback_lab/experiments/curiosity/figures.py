"""The single figures of a curiosity run, from its learning curve: when it solved the task, and for good."""

from collections.abc import Mapping

import numpy as np

from payback_lab.experiments.doorkey.figures import first_step, stays

WINDOW = 100
"""Episodes of training that a point of the curve looks back on."""
SOLVED = 0.9
"""An agent solves the task while at least this share of the last 100 episodes reaches the goal."""


def single_figures(columns: Mapping[str, np.ndarray]) -> dict[str, float | int | None]:
    """Sum a curve up; None for what was not reached.

    `solved_step` is the first step from which on, to the end of training, at least 90 of the last 100 episodes reached
    the goal; a run with such a step solves the task. `first_solved_step` is the first at which they did.

    >>> curve = {"steps": np.array([1, 2, 3, 4]), "solved": np.array([0.95, 0.5, 0.9, 1.0])}
    >>> single_figures(curve)
    {'trained_steps': 4, 'solved_step': 3, 'first_solved_step': 1, 'final_training_solved': 1.0}
    """
    steps, solves = columns["steps"], np.nan_to_num(columns["solved"]) >= SOLVED
    last = float(columns["solved"][-1])
    return {
        "trained_steps": int(steps[-1]),
        "solved_step": first_step(steps, stays(solves)),
        "first_solved_step": first_step(steps, solves),
        "final_training_solved": None if np.isnan(last) else round(last, 6),
    }
