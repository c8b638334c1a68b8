"""Statistics over several tasks, after Agarwal et al. (2021, "Deep RL at the edge of the statistical precipice").

Everywhere `tasks` is a list of arrays, one per task, of one score per seed; a higher score is better. Every task weighs
the same, however many seeds it has: a seed of a task with n of them weighs 1/(tasks · n). Intervals are percentile
bootstrap intervals with seeds drawn anew within each task.
"""

from collections.abc import Callable, Sequence

import numpy as np

from payback_lab.statistics import Estimate, stratified_interval

Tasks = Sequence[np.ndarray]


def interquartile_mean(tasks: Tasks) -> Estimate:
    """Return the mean of the middle half of all seeds of all tasks.

    With W the distribution function of the weighted scores it is 2·∫ W⁻¹(u) du over u from ¼ to ¾: where all tasks have
    the same number of seeds and a quarter of all seeds is a whole number, the mean of the middle half.

    >>> interquartile_mean([np.array([0.0, 1.0]), np.array([2.0, 9.0])]).value
    1.5
    """
    return _estimate(tasks, _middle_half)


def performance_profile(tasks: Tasks, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share of runs whose score is above each threshold, and its interval, point by point.

    P(τ) = mean over tasks of the share of its seeds with score > τ.

    >>> performance_profile([np.array([0.2, 0.8]), np.array([0.9, 0.9])], np.array([0.0, 0.5, 0.9]))[0].tolist()
    [1.0, 0.75, 0.0]
    """

    def above(draws: list[np.ndarray]) -> np.ndarray:
        shares = [(draw[:, :, None] > thresholds).mean(axis=1) for draw in draws]
        return np.mean(shares, axis=0)

    low, high = stratified_interval(tasks, above)
    return above([np.asarray(task)[None] for task in tasks])[0], low, high


def probability_of_improvement(ones: Tasks, others: Tasks) -> Estimate:
    """Return the probability that a seed of one method scores higher than a seed of another on the same task.

    P = mean over tasks of the mean over all pairs of seeds of S, which is 1 where the one is higher, ½ where both are
    equal, 0 otherwise.

    >>> probability_of_improvement([np.array([0.5, 0.9])], [np.array([0.5, 0.1])]).value
    0.875
    """
    if len(ones) != len(others):
        raise ValueError(f"Two methods are compared task by task, got {len(ones)} and {len(others)} tasks.")
    pairs = [_won(one, other) for one, other in zip(ones, others, strict=True)]

    def share(draws: list[np.ndarray]) -> np.ndarray:
        # How often each seed was drawn, so that a table of pairs serves every draw: that of all drawn pairs is large.
        counts = [_drawn(draw) for draw in draws]
        shares = [
            np.einsum("bi,ij,bj->b", first, table, second, optimize=True) / table.size
            for first, table, second in zip(counts[::2], pairs, counts[1::2], strict=True)
        ]
        return np.mean(shares, axis=0)

    seeds = [np.arange(len(group)) for pair in zip(ones, others, strict=True) for group in pair]
    low, high = stratified_interval(seeds, share)
    return Estimate(float(np.mean([table.mean() for table in pairs])), float(low), float(high))


def false_alarms(seeds: Sequence[int], studies: int = 400) -> float:
    """Return how often the interval of the probability of improvement leaves out ½ for two equal methods.

    `seeds` has the number of seeds of each task. The scores are drawn from one distribution, whose form does not
    matter, because only ranks count.

    >>> false_alarms([3], studies=50) > false_alarms([20], studies=50)
    True
    """
    rng = np.random.default_rng(0)
    distinguished = 0
    for _ in range(studies):
        ones, others = ([rng.random(count) for count in seeds] for _ in range(2))
        chance = probability_of_improvement(ones, others)
        distinguished += chance.low > 0.5 or chance.high < 0.5
    return distinguished / studies


def _estimate(tasks: Tasks, statistic: Callable[[list[np.ndarray]], np.ndarray]) -> Estimate:
    low, high = stratified_interval(tasks, statistic)
    value = statistic([np.asarray(task, dtype=np.float64)[None] for task in tasks])[0]
    return Estimate(float(value), float(low), float(high))


def _middle_half(draws: list[np.ndarray]) -> np.ndarray:
    values = np.concatenate(draws, axis=1)
    weights = np.concatenate([np.full(draw.shape[1], 1 / (len(draws) * draw.shape[1])) for draw in draws])
    order = np.argsort(values, axis=1)
    ends = np.cumsum(weights[order], axis=1)
    # Each score stands on [end − weight, end] of the quantile axis; what of it lies in the middle half counts.
    inside = np.clip(ends, 0.25, 0.75) - np.clip(ends - weights[order], 0.25, 0.75)
    return 2 * (np.take_along_axis(values, order, axis=1) * inside).sum(axis=1)


def _won(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    first, second = np.asarray(one)[:, None], np.asarray(other)[None, :]
    return (first > second) + 0.5 * (first == second)


def _drawn(indices: np.ndarray) -> np.ndarray:
    """Return how often each seed is among the drawn ones, (resamples, seeds)."""
    return (indices[:, :, None] == np.arange(indices.shape[1])).sum(axis=1).astype(np.float64)
