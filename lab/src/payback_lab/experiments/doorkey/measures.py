"""What is measured of a DoorKey run, and the words in which the notes of claims explain it."""

from collections.abc import Callable, Sequence

import numpy as np

from payback_lab.claims.evidence import Cell, Evidence, Measure, figure, of_figure
from payback_lab.experiments.doorkey.printed import SETTINGS, TABLE, Printed
from payback_lab.experiments.doorkey.setting import without_alpha
from payback_lab.running.plan import Result

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
    """Say whether the 100-point mean length did not come to stay below 100."""
    return bool(np.isnan(figure(run, "settled_step")))


def settles(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Say of every seed whether it settles, (seeds,) of 0 and 1."""
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
