"""How far each method reaches: DoorKey grids from 8×8 to 16×16, without a bonus, with a raw one, and with GRM.

On the paper's 8×8 grid no bonus is needed. Here the grid grows until no bonus, the raw bonus and the repaid bonus each
fail to solve it. What was predicted is in docs/predictions.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback_lab.claims.claim import holds_if
from payback_lab.claims.decide import FEWEST, Claim, Claims
from payback_lab.claims.evidence import Cell, Evidence, Measure, of_figure
from payback_lab.claims.rules import Decision, rule
from payback_lab.claims.wording import format_cells
from payback_lab.experiments.doorkey.figures import short
from payback_lab.experiments.doorkey.measures import SETTLED
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST, PlannedCell, SizedDoorKey, parse_sized_setting
from payback_lab.experiments.doorkey.table import Reached, figures, reached, spread
from payback_lab.methods import title
from payback_lab.statistics import Estimate

METHODS = ("none", "im", "grm-30")
DELAYS = ("grm-10", "grm-100")


def setting(size: int) -> str:
    """Return the setting of a size: α, γ and λ are those of the paper's middle setting.

    >>> setting(11)
    's11-a0.02-g0.995-l0.95'
    """
    return f"s{size}-a0.02-g0.995-l0.95"


def steps(size: int) -> int:
    """Return the steps of training: 6 M, and 20 M on 16×16; the first whole number of updates beyond.

    >>> steps(11), steps(16)
    (6000640, 20000768)
    """
    return 20_000_768 if size >= 16 else 6_000_640


CELLS = (
    *(PlannedCell(setting(11), scheme, seeds=10) for scheme in METHODS),
    *(PlannedCell(setting(size), scheme) for size in (8, 10, 12, 13, 14) for scheme in METHODS),
    *(PlannedCell(setting(size), scheme) for size in (11, 13) for scheme in DELAYS),
    *(PlannedCell(setting(16), scheme) for scheme in METHODS),
)


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
ENOUGH = 0.95
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
    return bool(np.median(solved) >= ENOUGH and np.median(length) < short(size))


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


NOTE = (
    "Predicted before the runs. A method reaches a size if the median over seeds of the share of 1,000 episodes it "
    "solves is at least 95 % and the median of their mean length is below 100·(size/8)²."
)
BEYOND = (11, 12, 13, 14, 16)
"""The sizes that no bonus and the raw bonus are predicted not to reach."""
FOUND = (11, 12, 13)
"""The sizes that GRM with D = 30 is predicted to reach."""
SOLVED = Measure("solved", of_figure("sampled_solved"), 3)
LENGTH = Measure("final length", of_figure("sampled_length"), 1)


@rule
def reaches(evidence: Evidence, cell: Cell, expected: bool) -> Decision:
    """Decide whether a method reaches a size, or does not if that was expected."""
    size = size_of(cell[0])
    there = reaches_size(evidence.values(cell, SOLVED), evidence.values(cell, LENGTH), size)
    parts = (format_cells(evidence, measure, [cell]) for measure in (SOLVED, LENGTH, SETTLED))
    return f"{'; '.join(parts)} (short: below {short(size):.0f})", holds_if(there == expected)


def size_of(name: str) -> int:
    """Return the size in the name of a setting."""
    return parse_sized_setting(name)[0]


def predicted(size: int, scheme: str, expected: bool) -> Claim:
    """Ask whether a method reaches a size as predicted."""
    cell = (setting(size), scheme)
    verb = "reaches" if expected else "does not reach"
    return Claim("ours", f"{_named(scheme)} {verb} DoorKey {size}×{size}.", (cell,), reaches(cell, expected), NOTE)


def _named(scheme: str) -> str:
    return {"none": "Training without a bonus", "im": "The raw bonus"}.get(scheme, title(scheme))


CLAIMS = Claims(
    experiment="reach",
    full=steps(8),
    longer={setting(16): steps(16)},
    stated=(
        *(predicted(size, scheme, False) for scheme in ("none", "im") for size in BEYOND),
        *(predicted(size, "grm-30", True) for size in FOUND),
        predicted(16, "grm-30", False),
    ),
    title=lambda name: f"{size_of(name)}×{size_of(name)}",
)


EXPERIMENT = SizedDoorKey(
    name="reach",
    title="DoorKey, larger and larger",
    cells=CELLS,
    steps=steps,
    notes=(
        "Not in the paper. The grid is the `minigrid` package's DoorKeyEnv(size), with its limit of 10·size² steps.",
        "An agent is taken to have learnt the task from the step on after which the mean length of 100 updates stays "
        "below 100·(size/8)².",
        ONE_SEED_FIRST,
    ),
    claimed=CLAIMS,
)
