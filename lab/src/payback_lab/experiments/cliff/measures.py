"""What is measured of the runs on a cliff, one number per seed."""

import numpy as np

from payback_lab.claims.evidence import Cell, Evidence, Measure, cells, of_figure
from payback_lab.experiments.cliff import printed
from payback_lab.experiments.cliff.walking import FINAL
from payback_lab.running.plan import Result

WINDOW = 100
"""Episodes over which a return is averaged before it counts as reached."""
REACHED = 0.9
"""The share of no-IM's final training return that counts as converged."""


def cells_of(*schemes: str) -> tuple[Cell, ...]:
    """Name the cells of some schemes; the cliffs have no settings."""
    return cells([""], schemes)


def trained(run: Result) -> int:
    """Return how many episodes a run was trained for."""
    return len(run.columns["return"])


def converged(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the episode at which the 100-episode mean return first is at 90 % of no-IM's final level.

    A seed that never is there counts with the number of episodes.
    """
    level = REACHED * _last(evidence.curves(("", "none"), "return")).mean()
    returns = evidence.curves(cell, "return")
    there = trailing_mean(returns) >= level
    first = there.argmax(axis=1) + min(WINDOW, returns.shape[1])
    return np.where(there.any(axis=1), first, there.shape[1] + WINDOW - 1).astype(np.float64)


def first_arrival(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the first episode that reaches the goal; only those have a positive return."""
    arrived = evidence.curves(cell, "return") > 0
    return np.where(arrived.any(axis=1), arrived.argmax(axis=1) + 1, arrived.shape[1]).astype(np.float64)


def early_length(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the mean episode length over the first fifth of training."""
    lengths = evidence.curves(cell, "length")
    return lengths[:, : max(1, lengths.shape[1] // 5)].mean(axis=1)


def bonus_left(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure F per step at the end of training; a move costs 1."""
    return _last(evidence.curves(cell, "intrinsic")).sum(1) / _last(evidence.curves(cell, "length")).sum(1)


CONVERGED = Measure("", converged, label="converged, episode", paper=lambda cell: printed.CONVERGED.get(cell[1]))
FIRST_ARRIVAL = Measure("", first_arrival, label="first arrival at the goal, episode")
EARLY_LENGTH = Measure("", early_length, label="length over the first fifth of training")
BONUS_LEFT = Measure("", bonus_left, label="F per step at the end of training")
OPTIMAL = Measure("", of_figure("optimal"), label="share of seeds that end optimal")
GREEDY_RETURN = Measure("", of_figure("greedy_return"), label="greedy return")
FINAL_RETURN = Measure("", of_figure("final_return"), label="return at the end of training")
FINAL_LENGTH = Measure("", of_figure("final_length"), label="length at the end of training")


def trailing_mean(curve: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Average each stretch of `window` episodes: (…, n) -> (…, n − window + 1).

    >>> trailing_mean(np.array([1.0, 3.0, 5.0]), window=2)
    array([2., 4.])
    """
    window = min(window, curve.shape[-1])
    sums = np.concatenate([np.zeros_like(curve[..., :1]), np.cumsum(curve, axis=-1)], axis=-1)
    return (sums[..., window:] - sums[..., :-window]) / window


def _last(curve: np.ndarray) -> np.ndarray:
    return curve[:, -max(1, int(FINAL * curve.shape[1])) :]
