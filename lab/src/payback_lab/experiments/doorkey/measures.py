"""The paper's table of DoorKey (`table_minigrid`) as data, and what is measured of a run and set beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from payback_lab.claims.evidence import Cell, Evidence, Measure, figure, of_figure
from payback_lab.experiments.doorkey.config import without_alpha
from payback_lab.runs import Result

LOW, MIDDLE, HIGH = "a0.005-g0.99", "a0.02-g0.995", "a0.025-g0.995"
SETTINGS = (LOW, MIDDLE, HIGH)
"""The three settings, in the table's order."""
HARD = (MIDDLE, HIGH)
"""Those of γ = 0.995, at which the bonus alters the optimal policy."""
PAIRS: Mapping[str, tuple[float, float]] = {LOW: (0.005, 0.99), MIDDLE: (0.02, 0.995), HIGH: (0.025, 0.995)}
"""α and γ of each."""


@dataclass(frozen=True)
class Printed:
    """Hold what the paper prints for one scheme at one setting; one run each."""

    time: float | None
    """T in million steps; None for N/A, not converged."""
    length: float
    """N̄."""
    deviation: float
    """σ."""
    fastest: bool = False
    """Whether T is in bold: the fastest of its setting."""
    tied: bool = False
    """Whether N̄ is in bold: the lowest, or not significantly different from it at p = .05."""


def _column(*rows: tuple[float | None, float, float], fastest: str, tied: Sequence[str]) -> dict[str, Printed]:
    order = ("none", "im", "pbim", "pbim-raw", "grm-10", "grm-10-raw", "grm-1", "grm-1-raw")
    return {s: Printed(*row, s == fastest, s in tied) for s, row in zip(order, rows, strict=True)}


TABLE: Mapping[str, Mapping[str, Printed]] = {
    LOW: _column(
        (2.95, 35.9, 12.0),
        (1.46, 37.3, 13.1),
        (1.67, 36.4, 12.5),
        (2.29, 37.1, 13.4),
        (1.85, 36.8, 13.4),
        (1.01, 37.4, 13.6),
        (8.71, 36.9, 14.1),
        (5.39, 36.2, 12.8),
        fastest="grm-10-raw",
        tied=("none", "im", "pbim", "pbim-raw", "grm-10", "grm-10-raw", "grm-1", "grm-1-raw"),
    ),
    MIDDLE: _column(
        (None, 634.8, 18.55),
        (2.88, 60.5, 27.5),
        (1.67, 51.8, 22.4),
        (None, 635.9, 14.9),
        (1.50, 37.1, 13.1),
        (1.17, 37.6, 13.7),
        (2.62, 36.3, 12.9),
        (None, 634.5, 19.4),
        fastest="grm-10-raw",
        tied=("grm-10", "grm-10-raw", "grm-1"),
    ),
    HIGH: _column(
        (None, 634.8, 18.6),
        (6.07, 62.0, 27.9),
        (1.26, 51.2, 22.7),
        (None, 634.7, 18.8),
        (1.19, 38.0, 14.6),
        (1.18, 37.6, 13.3),
        (1.67, 37.5, 13.4),
        (5.86, 35.7, 12.1),
        fastest="grm-10-raw",
        tied=("grm-10", "grm-10-raw", "grm-1", "grm-1-raw"),
    ),
}
"""Setting → scheme → what is printed."""
_SHOWN: Mapping[str, Callable[[Printed], str]] = {
    "mean_length": lambda row: f"{row.length:g}",
    "length_deviation": lambda row: f"{row.deviation:g}",
    "convergence_step": lambda row: "N/A" if row.time is None else f"{row.time:g} M",
}
PAPER = {
    f"doorkey/{setting}/{key}": {scheme: show(row) for scheme, row in rows.items()}
    for setting, rows in TABLE.items()
    for key, show in _SHOWN.items()
}
"""The same for the report: group and summary key → scheme → figure as printed."""


def title(setting: str) -> str:
    """Name a setting as the paper's table does: (α, γ).

    >>> title("a0.02-g0.995")
    '(0.02, 0.995)'
    """
    alpha, gamma = PAIRS[setting]
    return f"({alpha:g}, {gamma:g})"


def times(settings: Sequence[str], schemes: Sequence[str]) -> str:
    """Write the printed T of schemes, in million steps.

    >>> times(["a0.02-g0.995"], ["im", "none"])
    'T in M: (0.02, 0.995) im 2.88, none N/A'
    """
    return f"T in M: {_listed(settings, schemes, lambda p: 'N/A' if p.time is None else f'{p.time:.2f}')}"


def lengths(settings: Sequence[str], schemes: Sequence[str]) -> str:
    """Write the printed N̄ of schemes.

    >>> lengths(["a0.02-g0.995"], ["im", "none"])
    'N̄: (0.02, 0.995) im 60.5, none 634.8'
    """
    return f"N̄: {_listed(settings, schemes, lambda p: f'{p.length:.1f}')}"


def _listed(settings: Sequence[str], schemes: Sequence[str], say: Callable[[Printed], str]) -> str:
    return "; ".join(f"{title(k)} " + ", ".join(f"{s} {say(TABLE[k][s])}" for s in schemes) for k in settings)


FULL = 10_000_000
"""Steps from which on a run is as long as the paper's."""
SPEED = (
    "Faster: an earlier settled step, the first from which on the 100-point mean length stays below 100; a seed that "
    "never settles counts with all steps of its training."
)
POLICY = (
    "Better policy: lower in both the paper's N̄ and the mean length of the final agent over 1,000 sampled episodes."
)
CONVERGED = (
    "Converges: settles (its 100-point mean length comes to stay below 100) in more than half of the seeds, by the "
    "interval of that share; fails: in less than half."
)
RULE = "The 95 % bootstrap interval over seeds decides."
TESTED = (
    f"{RULE} p: Welch's one-sided test over seeds, not over the 1,000 points of one run. P: probability of "
    "improvement, the share of pairs of seeds."
)


def settings_of(name: str) -> Sequence[str]:
    """Return at which settings a run counts: no IM is run once per γ (`doorkey/g0.995/none/seed0`), for all of that γ.

    >>> settings_of("g0.995")
    ('a0.02-g0.995', 'a0.025-g0.995')
    """
    return (name,) if name in SETTINGS else tuple(k for k in SETTINGS if without_alpha(k) == name)


def unsettled(run: Result) -> bool:
    """Return whether the 100-point mean length did not come to stay below 100."""
    return bool(np.isnan(figure(run, "settled_step")))


def settles(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Return for every seed whether it settles, (seeds,) of 0 and 1."""
    return np.array([float(not unsettled(run)) for run in evidence.cells[cell]])


def _step(name: str) -> Callable[[Evidence, Cell], np.ndarray]:
    """Read a step in millions; what was not reached counts with all steps of the training."""

    def of(evidence: Evidence, cell: Cell) -> np.ndarray:
        steps, ends = evidence.figures(cell, name), evidence.figures(cell, "trained_steps")
        return np.where(np.isnan(steps), ends, steps) / 1e6

    return of


def _printed(column: Callable[[Printed], float | None]) -> Callable[[Cell], float | None]:
    """Look a cell up in the paper's table, which has the paper's own settings and schemes alone."""

    def of(cell: Cell) -> float | None:
        setting, scheme = cell
        row = TABLE.get(setting, {}).get(scheme)
        return None if row is None else column(row)

    return of


LENGTH = Measure("N̄", of_figure("mean_length"), 1, paper=_printed(lambda row: row.length))
SAMPLED = Measure("sampled length", of_figure("sampled_length"), 1)
SETTLED = Measure(
    "settled, M steps",
    _step("settled_step"),
    2,
    unsettled,
    label="settled, M steps (paper: its T)",
    paper=_printed(lambda row: row.time),
)
PAPER_T = Measure(
    "T, M steps",
    _step("convergence_step"),
    2,
    lambda run: bool(np.isnan(figure(run, "convergence_step"))),
    paper=_printed(lambda row: row.time),
)
