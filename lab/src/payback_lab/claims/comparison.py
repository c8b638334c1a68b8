"""Two sets of seeds beside each other: intervals, the paper's one-sided test, and the probability of improvement."""

import numpy as np

from payback_lab.statistics import stratified_interval


def interval_of_gap(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the difference of two means, one − other."""
    low, high = stratified_interval([one, other], lambda draws: draws[0].mean(1) - draws[1].mean(1))
    return float(low), float(high)


def interval_of_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the ratio of two means, one / other."""
    low, high = stratified_interval([one, other], lambda draws: draws[0].mean(1) / draws[1].mean(1))
    return float(low), float(high)


def welch(lower: np.ndarray, higher: np.ndarray) -> float:
    """Return the p of Welch's one-sided t-test that `lower` has the lower mean; NaN with fewer than two seeds.

    >>> round(welch(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])), 3)
    0.142
    """
    if min(len(lower), len(higher)) < 2:
        return np.nan
    gap = float(higher.mean() - lower.mean())
    one, other = (float(x.var(ddof=1)) / len(x) for x in (lower, higher))
    if one + other == 0:
        return 0.5 if gap == 0 else float(gap < 0)
    freedom = (one + other) ** 2 / (one**2 / (len(lower) - 1) + other**2 / (len(higher) - 1))
    from scipy.special import stdtr  # imported here because only deciding claims should wait for it

    return float(stdtr(freedom, -gap / np.sqrt(one + other)))


def improvement(one: np.ndarray, other: np.ndarray) -> float:
    """Return the probability of improvement: the share of pairs of seeds in which `one` is lower, ties half.

    >>> improvement(np.array([1.0, 5.0]), np.array([5.0, 6.0]))
    0.875
    """
    return float(_share_of_pairs([one[None], other[None]])[0])


def interval_of_improvement(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the probability of improvement by the bootstrap over seeds."""
    low, high = stratified_interval([one, other], _share_of_pairs)
    return float(low), float(high)


def _share_of_pairs(draws: list[np.ndarray]) -> np.ndarray:
    one, other = draws[0][:, :, None], draws[1][:, None, :]
    return ((one < other) + 0.5 * (one == other)).mean(axis=(1, 2))
