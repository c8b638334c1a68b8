"""Statistics over seeds: means and shares with intervals, and two sets of seeds compared.

Everywhere axis 0 is the seed and all other axes are kept. The method is that of Agarwal et al.
(2021, "Deep RL at the edge of the statistical precipice"): seeds are drawn with replacement within each stratum
(scheme, task), never across strata, and the interval is the middle `level` of the resampled statistics.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import binomtest

_CHUNK = 1 << 22  # resampled numbers held at once (32 MB), because long curves would exhaust the memory


@dataclass(frozen=True)
class Estimate:
    """Hold a figure and its 95 % interval."""

    value: float
    low: float
    high: float

    def format(self, form: str, unit: str = "", per: float = 1) -> str:
        """Write the figure with its interval, each number in a form such as ".2f", before its unit.

        >>> Estimate(2500, 2000, 3000).format("+.1f", " km", per=1000)
        '+2.5 km [+2.0 km, +3.0 km]'
        """
        value, low, high = (f"{number / per:{form}}{unit}" for number in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


class Statistic(Protocol):
    """Reduce one axis of an array, as `np.mean`, `np.median` and `iqm` do."""

    def __call__(self, x: np.ndarray, /, axis: int) -> np.ndarray:
        """Return the array without `axis`."""
        ...


def iqm(x: np.ndarray, /, axis: int | None = None) -> np.ndarray:
    """Return the interquartile mean: the mean of the middle half of the values.

    ⌊n/4⌋ values are cut off at each end, as in scipy's `trim_mean(x, 0.25)`.

    >>> float(iqm(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 700.0])))
    3.5
    """
    values = np.asarray(x, dtype=np.float64)
    if axis is None:
        values, axis = values.ravel(), 0
    n = values.shape[axis]
    if n == 0:
        raise ValueError(f"iqm needs at least one value along axis {axis}, got shape {values.shape}.")
    cut = n // 4
    ordered = np.sort(values, axis=axis)
    return np.take(ordered, np.arange(cut, n - cut), axis=axis).mean(axis=axis)


def bootstrap_interval(
    x: np.ndarray,
    statistic: Statistic = np.mean,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentile-bootstrap interval of a statistic over seeds (axis 0).

    Every column uses the same draw of seeds, because whole curves are resampled.

    >>> low, high = bootstrap_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> bool(1.0 <= low < 2.5 < high <= 4.0)
    True
    """
    values = np.asarray(x, dtype=np.float64)
    return stratified_interval([values], lambda draws: statistic(draws[0], axis=1), level, resamples, seed)


def mean_estimate(values: np.ndarray) -> Estimate:
    """Return the mean over seeds and its interval.

    >>> mean_estimate(np.array([88.0, 88.0]))
    Estimate(value=88.0, low=88.0, high=88.0)
    """
    low, high = bootstrap_interval(values)
    return Estimate(float(values.mean()), float(low), float(high))


def share_interval(successes: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share by Clopper and Pearson, which has a width also where all seeds agree.

    >>> [round(bound, 2) for bound in share_interval(8, 8)]
    [0.63, 1.0]
    """
    found = binomtest(successes, of).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def stratified_interval(
    strata: Sequence[np.ndarray],
    statistic: Callable[[list[np.ndarray]], np.ndarray],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a statistic of several groups of seeds, each resampled within itself.

    `statistic` is given one array (resamples, seeds, …) per stratum and returns (resamples, …): e.g. the
    difference of two schemes' means, `lambda d: d[0].mean(1) - d[1].mean(1)`.

    >>> fast, slow = np.array([1.0, 2.0, 3.0]), np.array([11.0, 12.0, 13.0])
    >>> low, high = stratified_interval([fast, slow], lambda d: d[1].mean(1) - d[0].mean(1))
    >>> bool(8.0 <= low <= 10.0 <= high <= 12.0)
    True
    """
    groups = [np.asarray(group, dtype=np.float64) for group in strata]
    if not groups or any(group.ndim == 0 or len(group) == 0 for group in groups):
        raise ValueError("A bootstrap needs at least one seed in every stratum (axis 0 is the seed).")
    if not 0.0 < level < 1.0:
        raise ValueError(f"The level of an interval lies strictly between 0 and 1, got {level}.")
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(len(group), size=(resamples, len(group))) for group in groups]
    step = max(1, _CHUNK // max(1, sum(group.size for group in groups)))
    parts = [
        np.asarray(statistic([group[index[i : i + step]] for group, index in zip(groups, drawn, strict=True)]))
        for i in range(0, resamples, step)
    ]
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(np.concatenate(parts), [tail, 1.0 - tail], axis=0)
    return low, high


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
