"""What the DoorKey runs say: measures of each cell, one number per seed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from payback_lab.experiments.doorkey.printed import PAIRS, SETTINGS, title
from payback_lab.running.plan import Result

FULL = 10_000_000
"""Steps from which on a run is as long as the paper's."""

Cell = tuple[str, str]
"""Setting and scheme."""


@dataclass(frozen=True)
class Evidence:
    """Hold the results of one group of runs: the paper's own setting, or an ablation."""

    cells: Mapping[Cell, tuple[Result, ...]]
    """Setting and scheme → results, one per seed."""

    def values(self, cell: Cell, measure: "Measure") -> np.ndarray:
        """Return a measure of every seed, (seeds,)."""
        return np.array([measure.of(run) for run in self.cells[cell]], dtype=np.float64)


@dataclass(frozen=True)
class Measure:
    """Hold a number that is read off one run; lower is better."""

    title: str
    """How it is called in a sentence."""
    of: Callable[[Result], float]
    digits: int = 1
    """How many are shown."""
    never: Callable[[Result], bool] = lambda run: False
    """Whether the run did not get there, so that the number is only the length of its training."""


def gather(results: Mapping[str, Result], ablation: str | None = None) -> Evidence:
    """Sort the results of the paper's setting, or of an ablation, by setting and scheme.

    No IM is run once per γ (`doorkey/g0.995/none/seed0`); it stands at every setting of that γ.
    """
    group = "doorkey" if ablation is None else f"doorkey+{ablation}"
    found: dict[Cell, dict[int, Result]] = {}
    for name, result in results.items():
        parts = re.fullmatch(r"([^/]+)/([^/]+)/([^/]+)/seed(\d+)", name)
        if parts and parts[1] == group:
            for setting in _settings_of(parts[2]):
                found.setdefault((setting, parts[3]), {})[int(parts[4])] = result
    return Evidence({cell: tuple(seeds[k] for k in sorted(seeds)) for cell, seeds in found.items()})


def _settings_of(name: str) -> tuple[str, ...]:
    return (name,) if name in SETTINGS else tuple(k for k in SETTINGS if f"g{PAIRS[k][1]:g}" == name)


def trained(run: Result) -> int:
    """Return how many steps a run was trained for."""
    return int(run.summary.get("trained_steps") or 0)


def figure(run: Result, name: str) -> float:
    """Return a single figure of a run; NaN if there is none."""
    value = run.summary.get(name)
    return np.nan if value is None or isinstance(value, str) else float(value)


def _step(name: str) -> Callable[[Result], float]:
    """Read a step in millions; what was not reached counts with all steps of the training."""
    return lambda run: (trained(run) if np.isnan(figure(run, name)) else figure(run, name)) / 1e6


def unsettled(run: Result) -> bool:
    """Say whether the 100-point mean length did not come to stay below 100."""
    return bool(np.isnan(figure(run, "settled_step")))


LENGTH = Measure("N̄", lambda run: figure(run, "mean_length"))
DEVIATION = Measure("σ", lambda run: figure(run, "length_deviation"))
SAMPLED = Measure("sampled length", lambda run: figure(run, "sampled_length"))
SETTLED = Measure("settled, M steps", _step("settled_step"), 2, unsettled)
PAPER_T = Measure(
    "T, M steps", _step("convergence_step"), 2, lambda run: bool(np.isnan(figure(run, "convergence_step")))
)
SHARE = Measure("share of seeds that settle", lambda run: float(not unsettled(run)))


def lacking(evidence: Evidence, needs: tuple[Cell, ...], fewest: int) -> str:
    """Say why the runs there are cannot decide, "" if they can."""
    short = [(cell, trained(run)) for cell in needs for run in evidence.cells.get(cell, ()) if trained(run) < FULL]
    if short:
        (setting, scheme), steps = min(short, key=lambda entry: entry[1])
        return f"Cut short: {scheme} at {title(setting)} has {steps:,} of {FULL:,} steps. {seeds(evidence, needs)}"
    if any(len(evidence.cells.get(cell, ())) < fewest for cell in needs):
        return f"Too few seeds, {fewest} are needed. {seeds(evidence, needs)}"
    return ""


def seeds(evidence: Evidence, needs: tuple[Cell, ...]) -> str:
    """Say how many seeds there are."""
    counts = sorted({len(evidence.cells.get(cell, ())) for cell in needs})
    if not counts:
        return ""
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Seeds: {many} per cell."


def missing(evidence: Evidence, needs: tuple[Cell, ...]) -> str:
    """Name the cells that were not run, "" if all were.

    >>> missing(Evidence({}), (("a0.02-g0.995", "im"), ("a0.02-g0.995", "pbim")))
    'im, pbim at (0.02, 0.995)'
    """
    gone = [cell for cell in needs if cell not in evidence.cells]
    settings = dict.fromkeys(setting for setting, _ in gone)
    return "; ".join(f"{', '.join(s for at, s in gone if at == k)} at {title(k)}" for k in settings)
