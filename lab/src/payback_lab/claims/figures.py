"""What was measured of each cell of a sentence, as numbers for small charts."""

from collections.abc import Sequence

import numpy as np

from payback_lab.claims.claim import Figure
from payback_lab.claims.evidence import Cell, Evidence, Measure
from payback_lab.statistics import bootstrap_interval

DIGITS = 5
"""Significant digits that are kept."""


def figures_of(evidence: Evidence, measures: Sequence[Measure], cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Measure each cell; what is not a number in some seed is left out, because it has no mean."""
    found = []
    for measure in measures:
        for cell in dict.fromkeys(cells):
            values = evidence.values(cell, measure)
            if np.isfinite(values).all():
                found.append(_figure(evidence, measure, cell, values))
    return tuple(found)


def _figure(evidence: Evidence, measure: Measure, cell: Cell, values: np.ndarray) -> Figure:
    setting, scheme = cell
    runs = evidence.cells[cell]
    mean, low, high = (_short(float(x)) for x in (values.mean(), *bootstrap_interval(values)))
    never = sum(measure.never(run) for run in runs)
    title = evidence.title(setting) if setting else ""
    return Figure(measure.label or measure.title, title, scheme, mean, low, high, len(runs), never, measure.paper(cell))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
