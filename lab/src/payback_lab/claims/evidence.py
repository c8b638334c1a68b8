"""What the runs of one group say: measures of each scheme, one number per seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from payback_lab.environments.cliff import Cliff
from payback_lab.experiments.tabular import FINAL
from payback_lab.running.plan import Result

WINDOW = 100
"""Episodes over which a return is averaged before it counts as reached."""
REACHED = 0.9
"""The share of no-IM's final training return that counts as converged."""


@dataclass(frozen=True)
class Evidence:
    """Hold the results of one group of runs, by scheme."""

    cliff: Cliff
    episodes: int
    """Training episodes of a full run."""
    runs: Mapping[str, list[Result]]
    """Scheme → results, one per seed."""

    def column(self, scheme: str, name: str) -> np.ndarray:
        """Return a curve of every seed, (seeds, episodes)."""
        return np.stack([run.columns[name] for run in self.runs[scheme]]).astype(np.float64)

    def figure(self, scheme: str, name: str) -> np.ndarray:
        """Return a single figure of every seed, (seeds,)."""
        return np.array([run.summary[name] for run in self.runs[scheme]], dtype=np.float64)


Measure = Callable[[Evidence, str], np.ndarray]
"""(evidence, scheme) -> (seeds,)."""


def gather(
    results: Mapping[str, Result],
    group: str,
    cliff: Cliff,
    episodes: int,
    also: Mapping[str, list[Result]] | None = None,
) -> Evidence:
    """Sort the results of a group by scheme; `also` gives schemes that the group itself does not hold."""
    found: dict[str, dict[int, Result]] = {}
    for name, result in results.items():
        of, scheme, seed = name.rsplit("/", 2)
        if of == group:
            found.setdefault(scheme, {})[int(seed.removeprefix("seed"))] = result
    runs = {scheme: [by_seed[seed] for seed in sorted(by_seed)] for scheme, by_seed in found.items()}
    return Evidence(cliff, episodes, {**(also or {}), **runs})


def figure(name: str) -> Measure:
    """Measure a single figure of the summary."""
    return lambda evidence, scheme: evidence.figure(scheme, name)


def converged(evidence: Evidence, scheme: str) -> np.ndarray:
    """Measure the episode at which the 100-episode mean return first is at 90 % of no-IM's final level.

    A seed that never is there counts with the number of episodes.
    """
    level = REACHED * _last(evidence.column("none", "return")).mean()
    there = trailing_mean(evidence.column(scheme, "return")) >= level
    first = there.argmax(axis=1) + min(WINDOW, evidence.column(scheme, "return").shape[1])
    return np.where(there.any(axis=1), first, there.shape[1] + WINDOW - 1).astype(np.float64)


def first_arrival(evidence: Evidence, scheme: str) -> np.ndarray:
    """Measure the first episode that reaches the goal; only those have a positive return."""
    arrived = evidence.column(scheme, "return") > 0
    return np.where(arrived.any(axis=1), arrived.argmax(axis=1) + 1, arrived.shape[1]).astype(np.float64)


def early_length(evidence: Evidence, scheme: str) -> np.ndarray:
    """Measure the mean episode length over the first fifth of training."""
    lengths = evidence.column(scheme, "length")
    return lengths[:, : max(1, lengths.shape[1] // 5)].mean(axis=1)


def bonus_left(evidence: Evidence, scheme: str) -> np.ndarray:
    """Measure F per step at the end of training; a move costs 1."""
    return _last(evidence.column(scheme, "intrinsic")).sum(1) / _last(evidence.column(scheme, "length")).sum(1)


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
