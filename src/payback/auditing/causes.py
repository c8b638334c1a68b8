"""What a broken episode looks like: a guess at its cause from the numbers alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from payback.check.laws import settlement

CLOSE = 1e-3
"""How near two amounts must lie to be taken for the same."""


class Episode(NamedTuple):
    """One finished episode of a log."""

    shaped: np.ndarray
    """(N,) what was paid."""
    rewards: np.ndarray | None
    """(N,) the intrinsic reward F, where the log has it."""
    leak: float
    """Σ γ^t F'_t."""
    leak_before: float | None
    """The leak of the episode before it in the same environment, None if there is none."""
    length_before: int = 0


def common_cause(episodes: list[Episode], gamma: float) -> str:
    """Return a cause that fits all of several broken episodes at once, or ""."""
    several = [e for e in episodes if len(e.shaped) > 2]
    if len(several) >= 3:
        other = fitting_gamma([e.shaped for e in several])
        if other is not None and abs(other - gamma) > 1e-6:
            return f"wrong γ: the episodes sum to zero at γ = {other:.6g}, not at {gamma:.6g}"
        ratios = np.array([_over(e.shaped[-1], settlement(gamma, e.shaped)) for e in several])
        center = float(np.median(ratios))
        if np.isfinite(ratios).all() and abs(center - 1) > CLOSE and abs(center) > CLOSE:
            near = np.abs(ratios - center) < CLOSE * abs(center)
            if near.mean() > 0.9:
                return f"constant factor: every settlement is {center:.4g} times what was owed"
    return ""


def likely_cause(episode: Episode, gamma: float, low: float, high: float) -> tuple[str, int]:
    """Return what a broken episode looks like and the step to look at; `low` and `high` bound the whole log."""
    x, f, N = episode.shaped, episode.rewards, len(episode.shaped)
    owed = settlement(gamma, x)
    bound = low if owed < x[-1] else high
    if N == 1:
        return "one-step episode: its only reward is lent and repaid at once, so it must be paid 0", 0
    if x[0] != 0 and abs(_sum(x[1:], gamma)) <= CLOSE * _sum(np.abs(x[1:]), gamma):
        return "autoreset row: without its first row the episode sums to zero", 0
    if _carried(episode, gamma):
        return "late reset: together with the episode before it sums to zero; the state outlived its episode", 0
    if f is not None and _near(x[-1], f[-1], abs(owed)):
        return "unpaid end: the last step is paid its own reward and settles nothing", N - 1
    if f is not None and _near(x[-1] - owed, f[-1], abs(owed)):
        return "unpaid end: what was owed is settled, but the last reward is kept", N - 1
    if _near(x[-1], bound, abs(bound)) and abs(owed) > abs(bound):
        return f"clipped: the settlement of {owed:.4g} was cut off at {bound:.4g}", N - 1
    clipped = np.flatnonzero((x == low) | (x == high))
    if len(clipped) >= 2 and len(np.unique(np.abs(x))) > 2:
        return f"clipped: {len(clipped)} steps are paid exactly {x[clipped[0]]:.4g}, the most in the log", int(
            clipped[0]
        )
    if f is not None and not _near(x[0], f[0], abs(f[0])) and abs(x[0] - f[0]) > CLOSE * np.abs(f).max():
        text = (
            "late reset, or changed after matching: its first step is not paid its own reward, though nothing is owed"
        )
        return text, 0
    if x[-1] == 0 or np.sign(x[-1]) != np.sign(owed) or abs(x[-1]) < 0.5 * abs(owed):
        return f"unpaid end: {owed:.4g} was owed at the last step, {x[-1]:.4g} was paid", N - 1
    return f"unknown: {owed:.4g} was owed at the last step, {x[-1]:.4g} was paid", N - 1


def fitting_gamma(episodes: list[np.ndarray]) -> float | None:
    """Return the γ at which the episodes sum to zero, or None where no γ fits them all."""
    several = [x for x in episodes if len(x) > 1 and np.any(x != 0)][:100]
    if not several:
        return None

    def residual(gamma: float) -> float:
        leaks = [abs(_sum(x, gamma)) / _sum(np.abs(x), gamma) for x in several]
        return float(np.median(leaks))

    grid = np.unique(np.concatenate((np.linspace(0.3, 0.9, 121), 1 - np.geomspace(0.1, 1e-5, 161), [1.0])))
    found = [residual(g) for g in grid]
    best = int(np.argmin(found))
    gamma = _minimise(residual, grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    return gamma if residual(gamma) < 3e-6 else None


def _minimise(function, low: float, high: float) -> float:
    """Golden section, to rounding error."""
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
    return min((best, round(best, 6)), key=function)


def _carried(episode: Episode, gamma: float) -> bool:
    if episode.leak_before is None:
        return False
    weight = np.float64(gamma) ** episode.length_before
    together = episode.leak_before + weight * episode.leak
    return abs(episode.leak_before) > 0 and abs(together) <= CLOSE * abs(weight * episode.leak)


def _sum(x: np.ndarray, gamma: float) -> float:
    return float(np.float64(gamma) ** np.arange(len(x)) @ x)


def _near(one: float, other: float, size: float) -> bool:
    return abs(one - other) <= CLOSE * max(abs(one), abs(other), 1e-300) and (one != 0 or size == 0)


def _over(x: float, y: float) -> float:
    return float(x / y) if y else float("inf")
