"""What the curiosity runs show: figures of a cell over its seeds, and whether one way of paying beats another.

The rules are those of docs/predictions.md, committed before the first run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import fisher_exact

from payback_lab.statistics import Estimate, share_interval, stratified_interval

Runs = Sequence[Mapping[str, Any]]
"""Single figures of the runs of one cell, as a summary holds them."""
Gain = Literal["better", "worse", "open"]
LEVEL = 0.05


@dataclass(frozen=True)
class Compared:
    """Hold one way of paying beside another; differences are the first minus the second."""

    share: float
    """Difference of the shares of seeds that solve the task."""
    p: float
    """Fisher's exact test of these shares."""
    steps: Estimate
    """Difference of the steps until solved."""
    length: Estimate
    """Difference of the final lengths."""

    @property
    def each(self) -> tuple[Gain, Gain, Gain]:
        """Say what is decided of share, steps and length."""
        share: Gain = "open" if self.p >= LEVEL else "better" if self.share > 0 else "worse"
        return share, _fewer(self.steps), _fewer(self.length)

    @property
    def gains(self) -> bool:
        """Say whether the first is better in at least one of the three and worse in none."""
        return "better" in self.each and "worse" not in self.each


def solved(runs: Runs) -> np.ndarray:
    """Return which seeds solve the task."""
    return np.array([run["solved_step"] is not None for run in runs])


def steps_until(runs: Runs) -> np.ndarray:
    """Return the step from which each seed solves the task; one that does not counts with all of its training."""
    return np.array(
        [run["trained_steps"] if run["solved_step"] is None else run["solved_step"] for run in runs], dtype=float
    )


def lengths(runs: Runs) -> np.ndarray:
    """Return each seed's mean final length."""
    return np.array([run["sampled_length"] for run in runs], dtype=float)


def share(runs: Runs) -> Estimate:
    """Return the share of seeds that solve the task."""
    found = solved(runs)
    return Estimate(float(found.mean()), *share_interval(int(found.sum()), len(found)))


def compare(one: Runs, other: Runs) -> Compared:
    """Hold one cell against another."""
    first, second = solved(one), solved(other)
    table = [[int(first.sum()), int((~first).sum())], [int(second.sum()), int((~second).sum())]]
    return Compared(
        share=float(first.mean() - second.mean()),
        p=float(fisher_exact(table).pvalue),  # pyright: ignore[reportAttributeAccessIssue]
        steps=gap([(steps_until(one), steps_until(other))]),
        length=gap([(lengths(one), lengths(other))]),
    )


def gap(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Estimate:
    """Return the mean difference of the pairs' means, seeds drawn anew within each cell.

    >>> gap([(np.array([1.0, 1.0]), np.array([3.0, 3.0])), (np.array([2.0]), np.array([2.0]))])
    Estimate(value=-1.0, low=-1.0, high=-1.0)
    """

    def difference(draws: list[np.ndarray]) -> np.ndarray:
        means = [draw.mean(axis=1) for draw in draws]
        return np.mean([a - b for a, b in zip(means[::2], means[1::2], strict=True)], axis=0)

    strata = [cell for pair in pairs for cell in pair]
    low, high = stratified_interval(strata, difference)
    return Estimate(float(np.mean([a.mean() - b.mean() for a, b in pairs])), float(low), float(high))


def _fewer(difference: Estimate) -> Gain:
    return "better" if difference.high < 0 else "worse" if difference.low > 0 else "open"
