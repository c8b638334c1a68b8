"""The paper's table of DoorKey beside ours, over seeds: one row per setting and scheme."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback_lab.experiments.doorkey.config import without_alpha
from payback_lab.experiments.doorkey.measures import SETTINGS, TABLE, Printed
from payback_lab.methods import SCHEMES
from payback_lab.statistics import Estimate, improvement, interval_of_improvement, mean_estimate, welch

SIGNIFICANT = 0.05
"""The paper's p."""


@dataclass(frozen=True)
class Reached:
    """Hold at which step something was reached, over the seeds that reached it."""

    median: float | None
    """Steps; None if no seed reached it."""
    least: float | None
    most: float | None
    reached: int
    """In how many seeds …"""
    of: int
    """… of how many."""


@dataclass(frozen=True)
class Row:
    """Hold one row of the table; None for what was not run."""

    setting: str
    scheme: str
    seeds: int
    paper: Printed
    """T (in million steps), N̄ and σ as printed, with the paper's own marks."""
    time: Reached
    """T as the paper defines it."""
    settled: Reached
    """From when on the 100-point mean length stays below 100."""
    length: Estimate | None
    """N̄."""
    deviation: Estimate | None
    """σ."""
    sampled: Estimate | None
    """Mean length of the final agent, actions sampled."""
    greedy: Estimate | None
    """The same, the likeliest action always taken."""
    truncated: Estimate | None
    """Share of the last points' episodes that ended by the time limit."""
    fastest: bool
    """Our mark for T: the lowest median of its setting, a seed that did not converge counting as never."""
    tied: bool | None
    """Our mark for N̄: the lowest mean, or not significantly different (p = .05); None with fewer than two seeds."""
    p: float | None
    """p of the one-sided Welch test over seeds that the lowest N̄ is lower than this one; None for the lowest itself."""
    better_than_im: Estimate | None
    """Probability of improvement over IM in N̄."""
    better_than_none: Estimate | None
    """The same over no IM."""


Runs = Sequence[Mapping[str, Any]]


def table_rows(runs: Runs) -> list[Row]:
    """Make the 24 rows from the runs of the paper's own setting, in the order of settings and schemes.

    A run is a mapping with `setting` ("a0.02-g0.995"; "g0.995" for no IM, which is shown at every setting of its γ),
    `scheme`, `seed` and the single figures. Give runs of full length only; other schemes are passed over.
    """
    return [row for setting in SETTINGS for row in _rows(setting, _by_scheme(runs, setting))]


def _by_scheme(runs: Runs, setting: str) -> dict[str, Runs]:
    names = {scheme: (setting, without_alpha(setting)) if scheme == "none" else (setting,) for scheme in SCHEMES}
    return {s: [run for run in runs if run["scheme"] == s and run["setting"] in names[s]] for s in SCHEMES}


def _rows(setting: str, found: Mapping[str, Runs]) -> list[Row]:
    lengths = {s: figures(found[s], "mean_length") for s in SCHEMES}
    medians = {s: _median(_never(found[s], "convergence_step")) for s in SCHEMES}
    best = min((s for s in SCHEMES if len(lengths[s])), key=lambda s: lengths[s].mean(), default=None)
    first = min(medians.values())
    rows = []
    for scheme in SCHEMES:
        own = found[scheme]
        p = None if best is None or scheme == best else _defined(welch(lengths[best], lengths[scheme]))
        rows.append(
            Row(
                setting,
                scheme,
                len(own),
                TABLE[setting][scheme],
                time=reached(own, "convergence_step"),
                settled=reached(own, "settled_step"),
                length=spread(lengths[scheme]),
                deviation=spread(figures(own, "length_deviation")),
                sampled=spread(figures(own, "sampled_length")),
                greedy=spread(figures(own, "greedy_length")),
                truncated=spread(figures(own, "truncated_share")),
                fastest=bool(np.isfinite(first)) and medians[scheme] == first,
                tied=(len(own) > 1 or None) if scheme == best else None if p is None else p >= SIGNIFICANT,
                p=p,
                better_than_im=_over(scheme, "im", lengths),
                better_than_none=_over(scheme, "none", lengths),
            )
        )
    return rows


def figures(runs: Iterable[Mapping[str, Any]], name: str) -> np.ndarray:
    """Return one figure of every run that has it."""
    return np.array([run[name] for run in runs if run.get(name) is not None], dtype=np.float64)


def _never(runs: Iterable[Mapping[str, Any]], name: str) -> np.ndarray:
    """Return a step of every run; infinity where it was not reached."""
    return np.array([np.inf if run.get(name) is None else run[name] for run in runs], dtype=np.float64)


def _median(steps: np.ndarray) -> float:
    """Return the median; of an even number the later of the middle two, which may be never."""
    return float(np.sort(steps)[len(steps) // 2]) if len(steps) else np.inf


def reached(runs: Runs, name: str) -> Reached:
    """Return at which step the runs reached something, None where one did not."""
    steps = figures(runs, name)
    if not len(steps):
        return Reached(None, None, None, 0, len(runs))
    return Reached(float(np.median(steps)), float(steps.min()), float(steps.max()), len(steps), len(runs))


def spread(values: np.ndarray) -> Estimate | None:
    """Return mean and interval over seeds, None without any."""
    return mean_estimate(values) if len(values) else None


def _over(scheme: str, other: str, values: Mapping[str, np.ndarray]) -> Estimate | None:
    """Return the probability that a run of the scheme is lower than one of the other."""
    pair = values[scheme], values[other]
    if scheme == other or not all(map(len, pair)):
        return None
    return Estimate(improvement(*pair), *interval_of_improvement(*pair))


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else value
