"""The rules of docs/predictions.md: whether a figure orders the cells, and whether single cells learn as predicted.

The outcome of a cell is the median over its seeds of the step from which on episodes stay short, never being later than
every number.
"""

from collections.abc import Sequence

import numpy as np

from payback_lab.claims.claim import Verdict
from payback_lab.claims.evidence import Cell, Evidence
from payback_lab.claims.sentence import Decision, rule
from payback_lab.claims.verdicts import all_of, holds_if
from payback_lab.experiments.delay.felt import NAMES
from payback_lab.experiments.delay.ordering import (
    correlated,
    correlation,
    difference,
    figures_of,
    learns,
    middle,
    outcomes,
)
from payback_lab.statistics import Estimate

ORDERS = 0.9
"""Rank correlation from which on a figure orders cells."""
AT_LEAST = 0.8
"""What the lower end of its interval must reach."""


@rule
def orders_within(evidence: Evidence, name: str, cells: Sequence[Cell]) -> Decision:
    """Decide whether a figure orders the cells at each λ at which two or more learn."""
    texts: list[str] = []
    verdicts: list[Verdict] = []
    for setting in dict.fromkeys(setting for setting, _ in cells):
        own = [cell for cell in cells if cell[0] == setting]
        steps = outcomes(evidence, own)
        count = sum(map(learns, steps))
        if count < 2:
            texts.append(f"{evidence.title(setting)} – ({count} learn)")
            continue
        found = float(correlation(figures_of(own)[name], np.array([middle(one) for one in steps])))
        texts.append(f"{evidence.title(setting)} {found:.2f}")
        verdicts.append(holds_if(found >= ORDERS))
    # With no λ at which two cells learn, there is nothing to order.
    return f"rank correlation: {', '.join(texts)}", all_of(verdicts) if verdicts else "undecided"


@rule
def orders_across(evidence: Evidence, name: str, cells: Sequence[Cell]) -> Decision:
    """Decide whether a figure orders all cells, and its interval says so too."""
    found = correlated(evidence, cells, name)
    return f"rank correlation {found.said('.2f')}", holds_if(_orders(found))


@rule
def none_orders_across(evidence: Evidence, cells: Sequence[Cell]) -> Decision:
    """Decide whether no figure at all orders all cells."""
    found = {name: correlated(evidence, cells, name) for name in NAMES}
    best = max(found, key=lambda name: found[name].value)
    met = [NAMES[name] for name, own in found.items() if _orders(own)]
    here = f"highest: {NAMES[best]} {found[best].said('.2f')}"
    return f"{here}; orders them: {', '.join(met) or 'none'}", holds_if(not met)


@rule
def orders_better(evidence: Evidence, one: str, other: str, cells: Sequence[Cell]) -> Decision:
    """Decide whether one figure's correlation over all cells is above another's, by the interval of the difference."""
    gap = difference(evidence, cells, one, other)
    return gap.said("+.2f"), "holds" if gap.low > 0 else "does not hold" if gap.high < 0 else "undecided"


@rule
def learns_between(evidence: Evidence, cell: Cell, sooner: Cell | None, later: Sequence[Cell]) -> Decision:
    """Decide whether a cell learns after one, if one is named, and before all of several."""
    before = [sooner] if sooner else []
    pairs = [(one, cell) for one in before] + [(cell, one) for one in later]
    return medians_said(evidence, [*before, cell, *later]), _in_order(evidence, pairs)


@rule
def learns_last(evidence: Evidence, those: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide whether each of some cells learns later than each of the others."""
    pairs = [(other, one) for one in those for other in others]
    return medians_said(evidence, [*those, *others]), _in_order(evidence, pairs)


@rule
def never_learn(evidence: Evidence, those: Sequence[Cell]) -> Decision:
    """Decide whether no cell learns."""
    found = [learns(steps) for steps in outcomes(evidence, those)]
    return medians_said(evidence, those), holds_if(not any(found))


@rule
def most_and_few_learn(evidence: Evidence, most: Cell, few: Cell, expected: bool) -> Decision:
    """Decide whether at least two thirds of the seeds of one cell learn and at most a third of another's."""
    shares = [float(np.isfinite(steps).mean()) for steps in outcomes(evidence, [most, few])]
    differ = shares[0] >= 2 / 3 - 1e-9 and shares[1] <= 1 / 3 + 1e-9
    return medians_said(evidence, [most, few]), holds_if(differ == expected)


def medians_said(evidence: Evidence, cells: Sequence[Cell]) -> str:
    """Say the outcome of each cell, and how many of its seeds learn."""
    texts = []
    for (_, scheme), steps in zip(cells, outcomes(evidence, cells), strict=True):
        there = f"{middle(steps) / 1e6:.2f}" if learns(steps) else "never"
        texts.append(f"{scheme} {there} ({int(np.isfinite(steps).sum())} of {len(steps)} seeds)")
    return f"stays short from, M steps, median: {', '.join(texts)}"


def _in_order(evidence: Evidence, pairs: Sequence[tuple[Cell, Cell]]) -> Verdict:
    """Say whether the one cell of each pair learns before the other; two that never learn leave it open."""
    verdicts: list[Verdict] = []
    for pair in pairs:
        first, second = (float(middle(steps)) for steps in outcomes(evidence, pair))
        verdicts.append("undecided" if first == second == np.inf else holds_if(first < second))
    return all_of(verdicts)


def _orders(found: Estimate) -> bool:
    return found.value >= ORDERS and found.low >= AT_LEAST
