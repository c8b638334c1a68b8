"""The γ at which given episodes sum to zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EXACT = 3e-6
"""The residual, relative to what was paid, below which a γ fits."""
LONGEST = 2000
"""Longer episodes are left out where there are shorter ones, because they tell less of γ and cost more."""


def fitting_gamma(episodes: list[np.ndarray]) -> float | None:
    """Return the γ at which the episodes sum to zero, or None where no γ fits them."""
    several = [x for x in episodes if len(x) > 1 and np.any(x != 0)][:100]
    if not several:
        return None
    gamma, residual = best_gamma(several)
    return gamma if residual < EXACT else None


def best_gamma(episodes: list[np.ndarray]) -> tuple[float, float]:
    """Return the γ in [0.3, 1] with the smallest median |Σ γ^t x_t| / Σ γ^t |x_t|, and that median."""
    short = [x for x in episodes if len(x) <= LONGEST] or [min(episodes, key=len)]
    ages = np.arange(max(map(len, short)), dtype=np.float64)
    table = np.zeros((len(short), len(ages)))
    for row, x in zip(table, short, strict=True):
        row[: len(x)] = x
    sizes = np.abs(table)

    def residual(gamma: float) -> float:
        weights = gamma**ages
        return float(np.median(np.abs(table @ weights) / np.maximum(sizes @ weights, 1e-300)))

    grid = np.unique(np.concatenate((np.linspace(0.3, 0.9, 121), 1 - np.geomspace(0.1, 1e-5, 161), [1.0])))
    found = [residual(g) for g in grid]
    best = int(np.argmin(found))
    gamma = _minimise(residual, grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    return gamma, residual(gamma)


def discounted(x: np.ndarray, gamma: float) -> float:
    """Return Σ γ^t x_t."""
    return float(np.float64(gamma) ** np.arange(len(x)) @ x)


def _minimise(function: Callable[[float], float], low: float, high: float) -> float:
    """Golden section, to rounding error; of the result and the same with six digits, the better one."""
    ratio = (5**0.5 - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(80):
        if function(a) < function(b):
            high, b = b, a
            a = high - ratio * (high - low)
        else:
            low, a = a, b
            b = low + ratio * (high - low)
    best = (low + high) / 2
    return min((round(best, 6), best), key=function)
