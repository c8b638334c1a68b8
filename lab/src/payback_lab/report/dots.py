"""Small charts of one figure by scheme: a dot with its 95 % interval, and the paper's value as a mark.

They are plain HTML, placed in percent of the axis, because they are many and must also be read on a phone, in the dark
and on paper.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np

from payback_lab.claims.claim import Figure
from payback_lab.methods import title
from payback_lab.report import tables
from payback_lab.report.charts.curves import FINALS
from payback_lab.report.charts.style import colour
from payback_lab.report.summary import Group, Summary
from payback_lab.statistics import bootstrap_interval

WIDE = 12.0
"""From this ratio of the largest to the smallest number on the axis is logarithmic."""
MAIN = ("optimal", "mean_length", "greedy_return", "settled_step", "greedy_length", "sampled_length")
"""The figures that are shown first, in this order, as far as an experiment has them."""
TITLES = {
    **FINALS,
    "optimal": "seeds whose final policy is optimal",
    "final_return": "return at the end of training",
    "final_length": "length at the end of training (moves)",
    "steps": "steps of training",
    "law_residual": "residual of the repayment (0: all is repaid)",
    "mean_length": "N̄: length at the end of training (steps)",
    "length_deviation": "σ: its deviation over episodes",
    "converged": "converged, as the paper defines it",
    "convergence_step": "T: first step below N̄",
    "smooth_convergence_step": "T of the 100-point mean",
    "truncated_share": "share of episodes cut off at the end",
    "sampled_solved": "share solved, acting as trained",
    "greedy_solved": "share solved without exploration",
    "largest_repayment": "largest single repayment",
    "trained_steps": "steps of training",
    "solved_step": "solved from (step)",
    "first_solved_step": "first step at which 90 % are solved",
    "mean_training_solved": "mean share solved over training",
    "final_training_solved": "share solved at the end of training",
    "final_training_length": "length at the end of training (steps)",
    "sampled_solved_length": "length of the solved, acting as trained",
    "mean_bonus": "mean of F per step",
    "mean_shaped": "mean of F' per step",
    "mean_average": "mean of F̄ per step",
}
"""Key → title; a key that is not here is shown as it is."""


@dataclass(frozen=True)
class Measured:
    """Hold one figure of one scheme; `mean` is None where there is none."""

    scheme: str
    mean: float | None
    low: float = 0.0
    high: float = 0.0
    paper: float | None = None
    text: str = ""
    """The figure in words."""
    interval: str = ""
    """Its interval in words, or in how many seeds there is such a figure."""
    printed: str = ""
    """The paper's figure as it prints it."""


@dataclass(frozen=True)
class Row:
    """Hold what is drawn of a scheme, in percent of the axis; None for what is not there."""

    scheme: str
    title: str
    colour: str
    text: str
    interval: str
    printed: str
    at: float | None
    low: float
    width: float
    paper: float | None


@dataclass(frozen=True)
class Panel:
    """Hold one small chart."""

    title: str
    rows: tuple[Row, ...]
    least: str
    """What stands at the left end of the axis."""
    most: str
    logarithmic: bool


def panel(name: str, measured: Sequence[Measured], bounds: tuple[float, float] | None = None) -> Panel:
    """Lay one figure of several schemes out on one axis; `bounds` are the ends of the axis if they are known."""
    marks = [x for m in measured if m.mean is not None for x in (m.mean, m.low, m.high)]
    marks += [m.paper for m in measured if m.paper is not None]
    least, most = bounds or (min(marks, default=0.0), max(marks, default=1.0))
    logarithmic = bounds is None and least > 0 and most / least >= WIDE

    def place(value: float) -> float:
        if most == least:
            return 50.0
        share = log10(value / least) / log10(most / least) if logarithmic else (value - least) / (most - least)
        # A little room at both ends, so that no dot is cut.
        return round(3 + 94 * share, 1)

    rows = tuple(
        Row(
            m.scheme,
            title(m.scheme).replace("not normalised", "not norm."),
            colour(m.scheme),
            m.text,
            m.interval,
            m.printed,
            None if m.mean is None else place(m.mean),
            0.0 if m.mean is None else place(m.low),
            0.0 if m.mean is None else round(place(m.high) - place(m.low), 1),
            None if m.paper is None else place(m.paper),
        )
        for m in measured
    )
    return Panel(name, rows, tables.number(least), tables.number(most), logarithmic)


def panel_of_group(summary: Summary, group: Group, key: str) -> Panel:
    """Draw one single figure of the runs of a group, the paper's beside it."""
    printed = tables.paper_figures(summary, group, key)
    found = []
    booleans = False
    for scheme, runs in tables.by_scheme(group).items():
        values = [run.get(key) for run in runs]
        cell, there = tables.cell(values), [float(value) for value in values if value is not None]
        booleans = booleans or any(isinstance(value, bool) for value in values)
        shown = printed.get(scheme, "")
        mean, low, high = (np.mean(there), *bootstrap_interval(np.array(there))) if there else (None, 0.0, 0.0)
        paper = printed_number(shown)
        exact = None if mean is None else float(mean)
        found.append(Measured(scheme, exact, float(low), float(high), paper, cell.here, cell.interval, shown))
    return panel(TITLES.get(key, key.replace("_", " ")), found, (0.0, 1.0) if booleans else None)


def panels_of_claim(figures: Sequence[Figure]) -> list[Panel]:
    """Draw what a claim measured: a chart for each measure at each setting, on one axis per measure."""
    panels = []
    for measure in dict.fromkeys(figure.measure for figure in figures):
        own = [figure for figure in figures if figure.measure == measure]
        ends = [x for f in own for x in (f.low, f.high, f.paper) if x is not None]
        for setting in dict.fromkeys(figure.setting for figure in own):
            cells = [_measured(figure) for figure in own if figure.setting == setting]
            # The settings share an axis, unless it is to be logarithmic, which each decides for itself.
            shared = (min(ends), max(ends)) if min(ends) <= 0 or max(ends) / min(ends) < WIDE else None
            panels.append(panel(" ".join(filter(None, (measure, setting))), cells, shared))
    return panels


def _measured(figure: Figure) -> Measured:
    interval = f"[{tables.number(figure.low)}, {tables.number(figure.high)}]" if figure.high > figure.low else ""
    never = f"({figure.never} of {figure.seeds} never)" if 0 < figure.never < figure.seeds else ""
    text, beside = format_figure_mean(figure), " ".join(filter(None, (interval, never)))
    printed = "" if figure.paper is None else tables.number(figure.paper)
    mean = None if figure.never == figure.seeds else figure.mean
    return Measured(figure.scheme, mean, figure.low, figure.high, figure.paper, text, beside, printed)


def format_figure_mean(figure: Figure) -> str:
    """Write the mean of a figure; "never" if no seed got there, because its number then only stands for the training.

    >>> format_figure_mean(Figure("settled", "", "im", 10.0, 10.0, 10.0, seeds=3, never=3))
    'never'
    """
    return "never" if figure.never == figure.seeds else tables.number(figure.mean)


def printed_number(printed: str) -> float | None:
    """Read a figure as the paper prints it; None where it prints no number.

    >>> [printed_number(text) for text in ("88", "≈ 48", "1.67 M", "N/A", "")]
    [88.0, 48.0, 1670000.0, None, None]
    """
    found = re.fullmatch(r"(?:≈ )?(-?[\d.]+)( M)?", printed)
    return None if found is None else float(found[1]) * (1e6 if found[2] else 1)


def in_order_of_interest(keys: list[str]) -> list[str]:
    """Put the figures that say most first.

    >>> in_order_of_interest(["law_residual", "settled_step", "mean_length"])
    ['mean_length', 'settled_step', 'law_residual']
    """
    return sorted(keys, key=lambda key: MAIN.index(key) if key in MAIN else len(MAIN))
