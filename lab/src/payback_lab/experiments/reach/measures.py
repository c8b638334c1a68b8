"""What is measured of a method on a grid of one size: share solved, when it stays short, length over the optimum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback_lab.claims.sentence import FEWEST
from payback_lab.experiments.doorkey.figures import short
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.experiments.doorkey.table import Reached, figures, reached, spread
from payback_lab.experiments.reach.config import setting, steps
from payback_lab.statistics import Estimate

OPTIMUM: Mapping[int, float] = {
    8: 16.766,
    10: 21.087,
    11: 23.221,
    12: 25.345,
    13: 27.462,
    14: 29.574,
    16: 33.785,
}
"""Mean of the fewest steps over all starts of each grid, by breadth-first search (`optimum.optimal_length`)."""
SOLVED = 0.95
"""The share of episodes that an agent must solve to reach a size."""


@dataclass(frozen=True)
class Row:
    """Hold one method on one grid."""

    size: int
    scheme: str
    seeds: int
    solved: Estimate | None
    """Share of 1,000 episodes in which the trained agent reaches the goal, acting as in training."""
    settled: Reached
    """From when on episodes stay short."""
    over_optimum: Estimate | None
    """Mean length of these episodes over the fewest steps possible; one that is not solved counts with the limit."""
    reaches: bool | None
    """Whether the method reaches this size (`reaches_size`); None with fewer than three seeds, or shorter training."""


def reaches_size(solved: np.ndarray, length: np.ndarray, size: int) -> bool:
    """Say whether the median share solved is at least 95 % and the median final length is short (docs/predictions.md).

    >>> reaches_size(np.array([0.99, 1.0, 0.2]), np.array([70.0, 80.0, 900.0]), 11)
    True
    """
    return bool(np.median(solved) >= SOLVED and np.median(length) < short(size))


def row(size: int, scheme: str, runs: Sequence[Mapping[str, Any]]) -> Row:
    """Sum the runs of one cell up."""
    solved, length = figures(runs, "sampled_solved"), figures(runs, "sampled_length")
    enough = len(runs) >= FEWEST and all(run["trained_steps"] >= steps(size) for run in runs)
    return Row(
        size,
        scheme,
        len(runs),
        solved=spread(solved),
        settled=reached(runs, "settled_step"),
        over_optimum=spread(length / OPTIMUM[size]) if size in OPTIMUM else None,
        reaches=reaches_size(solved, length, size) if enough else None,
    )


def rows(groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]) -> list[Row]:
    """Make the rows from groups of runs by the name of their setting, the smallest grid first.

    Another α, γ or λ than the plan's is another experiment, and is left out.
    """
    found = []
    for name, runs in groups:
        size = parse_sized_setting(name)[0]
        schemes = dict.fromkeys(run["scheme"] for run in runs if name == setting(size))
        found += [row(size, scheme, [run for run in runs if run["scheme"] == scheme]) for scheme in schemes]
    return sorted(found, key=lambda one: one.size)
