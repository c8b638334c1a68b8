"""The single figures of a run of the arena, from its learning curve."""

from collections.abc import Mapping

import numpy as np

from payback_lab.experiments.doorkey.figures import first_step, stays

WINDOW = 100
"""Episodes of training that a point looks back on, at least."""
SOLVED = 0.9
"""An agent solves the task while at least this share of the last 100 episodes is solved."""
LAST = 0.1
"""Figures of the end of training are over this share of it."""


def single_figures(columns: Mapping[str, np.ndarray]) -> dict[str, float | int | None]:
    """Sum a curve up; None for what was not reached.

    `solved_step` is the first step from which on, to the end of training, at least 90 % of the last 100 episodes (or
    of the update's, if more) were solved; `first_solved_step` the first at which they were. The mean share solved over
    training is over the updates in which an episode ended. The share solved, the mean length and the zero-sum residual
    at the end of training are over its last tenth.
    """
    steps, episodes, solved = columns["steps"], columns["episodes"], columns["solved"]
    solves = np.nan_to_num(recent_share(episodes, solved)) >= SOLVED
    last = slice(-max(1, round(LAST * len(steps))), None)
    ended, multiplier = int(episodes[last].sum()), float(columns["multiplier"][-1])
    lengths = np.nan_to_num(columns["length"][last].astype(np.float64)) * episodes[last]
    return {
        "trained_steps": int(steps[-1]),
        "solved_step": first_step(steps, stays(solves)),
        "first_solved_step": first_step(steps, solves),
        "mean_training_solved": mean_share(episodes, solved),
        "final_training_solved": round(int(solved[last].sum()) / ended, 6) if ended else None,
        "final_training_length": round(float(lengths.sum()) / ended, 3) if ended else None,
        "final_multiplier": None if np.isnan(multiplier) else round(multiplier, 6),
        "final_law_residual": float(columns["residual"][last].max()),
    }


def recent_share(episodes: np.ndarray, solved: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Return the share solved of the last `window` episodes at each update, whole updates; NaN before there are any.

    >>> recent_share(np.array([1, 2, 0, 4]), np.array([0, 2, 0, 1]), window=3).tolist()
    [nan, 0.6666666666666666, 0.6666666666666666, 0.25]
    """
    ended, found = (np.concatenate([[0], np.cumsum(part)]).astype(np.float64) for part in (episodes, solved))
    now = np.arange(1, len(ended))
    # The last update before which at least `window` episodes fewer had ended; −1 where there is none.
    before = np.searchsorted(ended, ended[now] - window, side="right") - 1
    begin = np.maximum(np.minimum(before, now - 1), 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (found[now] - found[begin]) / (ended[now] - ended[begin])
    return np.where(ended[now] >= window, share, np.nan)


def mean_share(episodes: np.ndarray, solved: np.ndarray) -> float | None:
    """Return the mean share solved over the updates in which an episode ended; None if none did.

    >>> mean_share(np.array([0, 2, 4]), np.array([0, 2, 1]))
    0.625
    """
    there = episodes > 0
    return round(float((solved[there] / episodes[there]).mean()), 6) if there.any() else None
