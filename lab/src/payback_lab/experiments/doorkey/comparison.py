"""Two cells set beside each other over seeds: the paper's one-sided test, and the probability of improvement."""

from collections.abc import Mapping, Sequence

import numpy as np

from payback_lab.experiments.doorkey.evidence import Cell, Evidence, Measure
from payback_lab.experiments.doorkey.printed import title
from payback_lab.running.plan import Verdict
from payback_lab.statistics import bootstrap_interval, stratified_interval

Pairs = Mapping[tuple[Cell, Cell], Verdict]
"""Whether the one is lower than the other."""


def welch(lower: np.ndarray, higher: np.ndarray) -> float:
    """Return the p of Welch's one-sided t-test that `lower` has the lower mean; NaN with fewer than two seeds.

    >>> round(welch(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])), 3)
    0.142
    """
    if min(len(lower), len(higher)) < 2:
        return np.nan
    gap = float(higher.mean() - lower.mean())
    one, other = (float(x.var(ddof=1)) / len(x) for x in (lower, higher))
    if one + other == 0:
        return 0.5 if gap == 0 else float(gap < 0)
    freedom = (one + other) ** 2 / (one**2 / (len(lower) - 1) + other**2 / (len(higher) - 1))
    from scipy.special import stdtr  # comes with JAX; only who decides claims waits for it

    return float(stdtr(freedom, -gap / np.sqrt(one + other)))


def improvement(one: np.ndarray, other: np.ndarray) -> float:
    """Return the probability of improvement: the share of pairs of seeds in which `one` is lower, ties half.

    >>> improvement(np.array([1.0, 5.0]), np.array([5.0, 6.0]))
    0.875
    """
    return float(_share_of_pairs([one[None], other[None]])[0])


def interval_of_improvement(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the probability of improvement by the bootstrap over seeds."""
    low, high = stratified_interval([one, other], _share_of_pairs)
    return float(low), float(high)


def _share_of_pairs(draws: list[np.ndarray]) -> np.ndarray:
    one, other = draws[0][:, :, None], draws[1][:, None, :]
    return ((one < other) + 0.5 * (one == other)).mean(axis=(1, 2))


def said(evidence: Evidence, measure: Measure, cells: Sequence[Cell]) -> str:
    """Say the mean of each cell with its interval, and how many seeds did not get there."""
    shown = {cell: _one(evidence, measure, cell) for cell in dict.fromkeys(cells)}
    settings = dict.fromkeys(setting for setting, _ in shown)
    parts = [
        f"{title(k)} " + ", ".join(f"{scheme} {text}" for (at, scheme), text in shown.items() if at == k)
        for k in settings
    ]
    return f"{measure.title}: {'; '.join(parts)}"


def _one(evidence: Evidence, measure: Measure, cell: Cell) -> str:
    runs = evidence.cells[cell]
    never = sum(measure.never(run) for run in runs)
    value = _with_interval(evidence.values(cell, measure), measure.digits)
    return value if not never else f"{value} ({never} of {len(runs)} never)"


def _with_interval(values: np.ndarray, digits: int) -> str:
    low, high = bootstrap_interval(values)
    # One seed has no interval.
    return f"{values.mean():.{digits}f}" + (f" [{low:.{digits}f}, {high:.{digits}f}]" if len(values) > 1 else "")


def significance(evidence: Evidence, measure: Measure, pairs: Pairs) -> str:
    """Say the test's p and the probability of improvement P of one cell over another, for pairs of them.

    Of more than three pairs, those that hold are told together, by their largest p and least P.
    """
    figures = {}
    for one, other in pairs:
        values = evidence.values(one, measure), evidence.values(other, measure)
        figures[one, other] = welch(*values), improvement(*values)
    together = [pair for pair in pairs if pairs[pair] == "holds"] if len(pairs) > 3 else []
    texts = [f"{_names(*pair)}: {_figures(*figures[pair])}" for pair in pairs if pair not in together]
    if together:
        worst = max(figures[pair][0] for pair in together), min(figures[pair][1] for pair in together)
        texts.append(f"{'the other ' if texts else 'all '}{len(together)}, at worst: {_figures(*worst)}")
    return "; ".join(texts)


def _names(one: Cell, other: Cell) -> str:
    first, second = (s if one[0] == other[0] else f"{s} {title(k)}" for k, s in (one, other))
    return f"{first} < {second}"


def _figures(p: float, probability: float) -> str:
    shown = "" if np.isnan(p) else f"{said_p(p)}, "
    return f"{shown}P {probability:.2f}"


def said_p(p: float) -> str:
    """Say a p.

    >>> said_p(0.0432), said_p(1e-9)
    ('p 0.043', 'p < 0.001')
    """
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"
