"""The evidence for a claim: the results of each cell, one per seed, and the measures that are read off them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from payback_lab.claims.claim import Figure
from payback_lab.runs import Result, Run
from payback_lab.statistics import bootstrap_interval

Cell = tuple[str, str]
"""Setting ("" in an experiment without settings) and scheme."""
DIGITS = 5
"""Significant digits that are kept."""


@dataclass(frozen=True)
class Evidence:
    """Hold the results of an experiment, or of one of its ablations."""

    cells: Mapping[Cell, tuple[Result, ...]]
    """Cell → results, one per seed."""
    title: Callable[[str], str] = str
    """How a setting is written in words; "" for none."""

    def values(self, cell: Cell, measure: "Measure") -> np.ndarray:
        """Return a measure of every seed, (seeds,)."""
        return measure.of(self, cell)

    def figures(self, cell: Cell, name: str) -> np.ndarray:
        """Return a single figure of every seed, (seeds,); NaN where there is none."""
        return np.array([figure(run, name) for run in self.cells[cell]], dtype=np.float64)

    def curves(self, cell: Cell, column: str) -> np.ndarray:
        """Return a curve of every seed, (seeds, points)."""
        return np.stack([run.columns[column] for run in self.cells[cell]]).astype(np.float64)

    def by_setting(self, cells: Sequence[Cell]) -> dict[str, list[str]]:
        """Return the schemes of some cells, by the title of their setting."""
        found: dict[str, list[str]] = {}
        for setting, scheme in cells:
            found.setdefault(self.title(setting), []).append(scheme)
        return found


@dataclass(frozen=True)
class Measure:
    """Hold how a number is read off every run of a cell."""

    title: str
    """What it is called before its figures; "" for nothing."""
    of: Callable[[Evidence, Cell], np.ndarray]
    """(evidence, cell) → (seeds,)."""
    digits: int | None = None
    """How many are shown behind the point; None: as many as the size of the number asks for."""
    never: Callable[[Result], bool] = lambda run: False
    """Whether a run did not get there, so that its number only stands for the length of its training."""
    label: str = ""
    """What it is called above a chart; "" for its title."""
    paper: Callable[[Cell], float | None] = lambda cell: None
    """What the paper prints for a cell, None if nothing."""


def of_figure(name: str) -> Callable[[Evidence, Cell], np.ndarray]:
    """Measure a single figure of the runs."""
    return lambda evidence, cell: evidence.figures(cell, name)


def figure(run: Result, name: str) -> float:
    """Return a single figure of a run; NaN if there is none."""
    value = run.summary.get(name)
    return np.nan if value is None or isinstance(value, str) else float(value)


def cells(settings: Sequence[str], schemes: Sequence[str]) -> tuple[Cell, ...]:
    """Name the cells of some schemes at some settings."""
    return tuple((setting, scheme) for setting in settings for scheme in schemes)


def gather(
    results: Mapping[str, Result],
    experiment: str,
    ablation: str | None = None,
    title: Callable[[str], str] = str,
    settings_of: Callable[[str], Sequence[str]] = lambda setting: (setting,),
) -> Evidence:
    """Sort the results of an experiment, or of one of its ablations, by cell and seed.

    `settings_of` says at which settings a run counts, from the setting in its id.
    """
    found: dict[Cell, dict[int, Result]] = {}
    for name, result in results.items():
        run = Run.parse(name)
        if (run.experiment, run.ablation) == (experiment, ablation):
            for setting in settings_of(run.setting or ""):
                found.setdefault((setting, run.scheme), {})[run.seed] = result
    return Evidence({cell: tuple(seeds[k] for k in sorted(seeds)) for cell, seeds in found.items()}, title)


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
