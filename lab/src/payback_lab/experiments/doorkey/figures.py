"""The single figures of a DoorKey run, from its learning curve: the paper's three, and sturdier ones."""

from collections.abc import Mapping

import numpy as np

LAST = 1000
"""The paper's N̄ and σ are over the last 1,000 recorded points (updates)."""
SMOOTH = 100
"""The paper's curves are moving averages of 100 points."""
SHORT = 100.0
"""Below this mean length an agent is taken to have learnt the 8×8 task: random agents need hundreds of steps."""


def short(size: int) -> float:
    """Return the length below which episodes on a grid of this size count as short: it grows with the number of cells.

    >>> short(8), short(16)
    (100.0, 400.0)
    """
    return SHORT * (size / 8) ** 2


def single_figures(columns: Mapping[str, np.ndarray], size: int = 8) -> dict[str, float | int | bool | None]:
    """Sum a curve up; None for what was not reached.

    The paper's: N̄ and σ, means of mean and deviation of the episode lengths over the last points; converged, if no
    episode was truncated in these; T, the first step at which the mean length is below N̄, if converged.

    Ours: T with the 100-point mean in place of single points; the first step from which on that mean stays below
    `short(size)`, 100 on the 8×8 grid; the share of the last points' episodes that were truncated. The means of F, F',
    F̄ and of what ends of episodes are worth are for the approximations of `sec:d1explanation`.
    """
    steps, length = columns["steps"], columns["window_mean"].astype(np.float64)
    last = slice(-min(LAST, max(1, len(length) // 2)), None)
    mean, deviation = _mean(length[last]), _mean(columns["window_std"][last])
    level, smooth = np.nan if mean is None else mean, moving_mean(length)
    converged = mean is not None and int(columns["truncated"][last].sum()) == 0
    ended = int(columns["episodes"][last].sum())
    return {
        "trained_steps": int(steps[-1]),
        "mean_length": mean,
        "length_deviation": deviation,
        "converged": converged,
        "convergence_step": first_step(steps, length < level) if converged else None,
        "smooth_convergence_step": first_step(steps, smooth < level) if converged else None,
        "settled_step": first_step(steps, stays(smooth < short(size))),
        "truncated_share": float(columns["truncated"][last].sum()) / ended if ended else None,
        **training_means(columns),
        "largest_repayment": float(columns["repaid"].min()),
        "law_residual": float(columns["residual"].max()),
    }


def training_means(columns: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Average over all of training, per step: F, F', F̄, episodes, those that reached the goal, and F̄ at their ends."""
    bonus, shaped, ended, late = (columns[n].astype(np.float64) for n in ("bonus", "shaped", "episodes", "truncated"))
    samples = columns["steps"][-1] / len(bonus)
    average = np.cumsum(bonus) / np.arange(1, len(bonus) + 1)
    return {
        "mean_bonus": float(bonus.mean()),
        "mean_shaped": float(shaped.mean()),
        "mean_average": float(average.mean()),
        "ends_per_step": float(ended.mean() / samples),
        "goals_per_step": float((ended - late).mean() / samples),
        "average_at_ends": float((average * ended).mean() / samples),
        "negative_share": float((shaped < 0).mean()),
    }


def moving_mean(curve: np.ndarray, points: int = SMOOTH) -> np.ndarray:
    """Return the mean of the last `points` values at each, of those there are; what is NaN is left out.

    >>> moving_mean(np.array([np.nan, 2.0, 4.0, 8.0]), points=2).tolist()
    [nan, 2.0, 3.0, 6.0]
    """
    there = ~np.isnan(curve)
    sums = np.cumsum(np.where(there, curve, 0.0))
    counts = np.cumsum(there)
    sums[points:], counts[points:] = sums[points:] - sums[:-points], counts[points:] - counts[:-points]
    with np.errstate(invalid="ignore"):
        return sums / counts


def stays(condition: np.ndarray) -> np.ndarray:
    """Say from where on a condition holds to the end.

    >>> stays(np.array([True, False, True, True])).tolist()
    [False, False, True, True]
    """
    return np.logical_and.accumulate(condition[::-1])[::-1]


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of what is not NaN; None if all is: the first episode may take five updates."""
    return None if np.isnan(values).all() else float(np.nanmean(values))


def first_step(steps: np.ndarray, condition: np.ndarray) -> int | None:
    """Return the first step at which a condition holds, None if it never does."""
    places = np.flatnonzero(condition)
    return int(steps[places[0]]) if len(places) else None
