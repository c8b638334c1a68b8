"""How figures over seeds are put into words."""

from collections.abc import Mapping, Sequence

import numpy as np

from payback_lab.claims.claim import Figure, Verdict
from payback_lab.claims.evidence import Cell, Evidence, Measure
from payback_lab.statistics import bootstrap_interval, improvement, interval_of_ratio, welch

Pairs = Mapping[tuple[Cell, Cell], Verdict]
"""Whether the one is lower than the other."""


def format_cells(evidence: Evidence, measure: Measure, cells: Sequence[Cell]) -> str:
    """Write the mean of each cell with its interval, and how many seeds did not get there."""
    shown: dict[str, list[str]] = {}
    for setting, scheme in dict.fromkeys(cells):
        text = f"{scheme} {_one(evidence, measure, (setting, scheme))}"
        shown.setdefault(evidence.title(setting), []).append(text)
    parts = [f"{title} {', '.join(texts)}" if title else "; ".join(texts) for title, texts in shown.items()]
    return f"{measure.title}: {'; '.join(parts)}" if measure.title else "; ".join(parts)


def format_figure(figure: Figure) -> str:
    """Write a stored figure as `format_cells` writes what was measured.

    >>> format_figure(Figure("converged", "", "im", 3982.2, 3900.1, 4100.0, 10, never=2))
    '3,982 [3,900, 4,100] (2 of 10 never)'
    """
    value = _spread((figure.mean, figure.low, figure.high), figure.mean) if figure.seeds > 1 else _short(figure.mean)
    return f"{value} ({figure.never} of {figure.seeds} never)" if figure.never else value


def _one(evidence: Evidence, measure: Measure, cell: Cell) -> str:
    runs = evidence.cells[cell]
    never = sum(measure.never(run) for run in runs)
    value = with_interval(evidence.values(cell, measure), measure.digits)
    return f"{value} ({never} of {len(runs)} never)" if never else value


def with_interval(values: np.ndarray, digits: int | None = None) -> str:
    """Write a mean over seeds and its 95 % interval, which one seed does not have.

    >>> with_interval(np.array([88.0, 88.0])), with_interval(np.array([88.0, 88.0]), digits=1)
    ('88 [88, 88]', '88.0 [88.0, 88.0]')
    """
    mean = float(values.mean())
    numbers = (mean, *(float(x) for x in bootstrap_interval(values)))
    if digits is None:
        return _spread(numbers, mean) if len(values) > 1 else _short(mean)
    texts = [f"{x:.{digits}f}" for x in numbers]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]" if len(values) > 1 else texts[0]


def _spread(numbers: Sequence[float], size: float) -> str:
    mean, low, high = (_short(x, size) for x in numbers)
    return f"{mean} [{low}, {high}]"


def _short(number: float, size: float | None = None) -> str:
    """Write a number with as many places as one of this size needs; what rounds to −0 is 0."""
    size = abs(number if size is None else size)
    places = 0 if size >= 200 else 1 if size >= 1 else 3
    return f"{round(number, places) + 0.0:,.{places}f}".removesuffix(".0")


def ratio_with_interval(one: np.ndarray, other: np.ndarray) -> str:
    """Write one mean as a multiple of another, with its interval."""
    low, high = interval_of_ratio(one, other)
    return f"{one.mean() / other.mean():.2f} × [{low:.2f}, {high:.2f}]"


def significance(evidence: Evidence, measure: Measure, pairs: Pairs) -> str:
    """Write the test's p and the probability of improvement P of one cell over another, for pairs of them.

    Of more than three pairs, those that hold are listed together, by their largest p and least P.
    """
    figures = {}
    for one, other in pairs:
        values = evidence.values(one, measure), evidence.values(other, measure)
        figures[one, other] = welch(*values), improvement(*values)
    together = [pair for pair in pairs if pairs[pair] == "holds"] if len(pairs) > 3 else []
    texts = [f"{_names(evidence, *pair)}: {_p_and_P(*figures[pair])}" for pair in pairs if pair not in together]
    if together:
        worst = max(figures[pair][0] for pair in together), min(figures[pair][1] for pair in together)
        texts.append(f"{'the other ' if texts else 'all '}{len(together)}, at worst: {_p_and_P(*worst)}")
    return "; ".join(texts)


def _names(evidence: Evidence, one: Cell, other: Cell) -> str:
    first, second = (s if one[0] == other[0] else f"{s} {evidence.title(k)}" for k, s in (one, other))
    return f"{first} < {second}"


def _p_and_P(p: float, probability: float) -> str:  # noqa: N802 - p and P are two figures
    shown = "" if np.isnan(p) else f"{format_p(p)}, "
    return f"{shown}P {probability:.2f}"


def least_to_most(counts: Sequence[int]) -> str:
    """Write the least and the most of some numbers, once if they are the same.

    >>> least_to_most([4, 3, 5]), least_to_most([3, 3])
    ('3 to 5', '3')
    """
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def format_p(p: float) -> str:
    """Write a p.

    >>> format_p(0.0432), format_p(1e-9)
    ('p 0.043', 'p < 0.001')
    """
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"
