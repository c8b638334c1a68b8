"""Does a figure order the cells as they learn? Spearman's rank correlation, and the rules of docs/predictions.md.

Seeds are drawn anew in each cell. The outcome of a cell is the median over its seeds of the step from which the task is
solved, never being later than every number.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from payback_lab.claims.claim import Verdict, combined, holds_if
from payback_lab.claims.evidence import Cell, Evidence
from payback_lab.claims.rules import Decision, rule
from payback_lab.experiments.delay.felt import NAMES, Felt, felt
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.statistics import Estimate, stratified_interval


def felt_by_cell(cells: Sequence[Cell]) -> dict[Cell, Felt]:
    """Return the candidates of each cell."""
    found = {}
    for setting, scheme in cells:
        _, _, gamma, lam = parse_sized_setting(setting)
        found[setting, scheme] = felt(scheme, gamma, lam)
    return found


def outcomes(evidence: Evidence, cells: Sequence[Cell]) -> list[np.ndarray]:
    """Return from which step on each seed of each cell stays short; infinity for never."""
    steps = [evidence.figures(cell, "settled_step") for cell in cells]
    return [np.where(np.isnan(values), np.inf, values) for values in steps]


def learns(steps: np.ndarray) -> bool:
    """Return whether the median seed of a cell learns.

    >>> learns(np.array([1e6, np.inf, 2e6])), learns(np.array([1e6, np.inf]))
    (True, False)
    """
    return bool(np.isfinite(middle(steps)))


def middle(steps: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the median; of an even number the later of the middle two, because never has no mean with a number."""
    ordered = np.sort(steps, axis=axis)
    return np.take(ordered, ordered.shape[axis] // 2, axis=axis)


def correlation(figure: Sequence[float], steps: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of a figure with how soon the cells learn: (…, cells) of steps → (…).

    Ties share their mean rank, and never is later than every step. A figure that is the same in all cells, or cells
    that all learn at the same step, order nothing: 0.

    >>> float(correlation([0.1, 0.4, 0.8], np.array([np.inf, 2e6, 1e6])))
    1.0
    """
    from scipy.stats import rankdata  # imported here because only deciding claims should wait for it

    one = rankdata(np.round(figure, 9))
    other = rankdata(-steps, axis=-1)
    one, other = one - one.mean(), other - other.mean(axis=-1, keepdims=True)
    spread = np.sqrt((one**2).sum() * (other**2).sum(axis=-1))
    return np.where(spread > 0, (other * one).sum(axis=-1) / np.where(spread > 0, spread, 1.0), 0.0)


def correlated(evidence: Evidence, cells: Sequence[Cell], name: str) -> Estimate:
    """Return the correlation of one candidate over some cells, and its 95 % bootstrap interval."""
    values = figures_of(cells)[name]
    return _of_medians(evidence, cells, lambda medians: correlation(values, medians))


def difference(evidence: Evidence, cells: Sequence[Cell], one: str, other: str) -> Estimate:
    """Return by how much one candidate's correlation exceeds another's, and the interval of that."""
    first, second = (figures_of(cells)[name] for name in (one, other))
    return _of_medians(evidence, cells, lambda medians: correlation(first, medians) - correlation(second, medians))


def figures_of(cells: Sequence[Cell]) -> Mapping[str, list[float]]:
    """Return each candidate of the cells, in their order."""
    known = felt_by_cell(cells)
    return {name: [getattr(known[cell], name) for cell in cells] for name in NAMES}


def _of_medians(evidence: Evidence, cells: Sequence[Cell], statistic: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    """Return a statistic of the cells' medians, (…, cells) → (…), with seeds drawn anew in each cell."""
    strata = outcomes(evidence, cells)
    low, high = stratified_interval(
        strata, lambda draws: statistic(np.stack([middle(draw, axis=1) for draw in draws], axis=1))
    )
    return Estimate(float(statistic(np.array([middle(steps) for steps in strata]))), float(low), float(high))


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
    return f"rank correlation: {', '.join(texts)}", combined(verdicts) if verdicts else "undecided"


@rule
def orders_across(evidence: Evidence, name: str, cells: Sequence[Cell]) -> Decision:
    """Decide whether a figure orders all cells, and its interval says so too."""
    found = correlated(evidence, cells, name)
    return f"rank correlation {found.format('.2f')}", holds_if(_orders(found))


@rule
def none_orders_across(evidence: Evidence, cells: Sequence[Cell]) -> Decision:
    """Decide whether no figure at all orders all cells."""
    found = {name: correlated(evidence, cells, name) for name in NAMES}
    best = max(found, key=lambda name: found[name].value)
    met = [NAMES[name] for name, own in found.items() if _orders(own)]
    here = f"highest: {NAMES[best]} {found[best].format('.2f')}"
    return f"{here}; orders them: {', '.join(met) or 'none'}", holds_if(not met)


@rule
def orders_better(evidence: Evidence, one: str, other: str, cells: Sequence[Cell]) -> Decision:
    """Decide whether one figure's correlation over all cells is above another's, by the interval of the difference."""
    gap = difference(evidence, cells, one, other)
    return gap.format("+.2f"), "holds" if gap.low > 0 else "does not hold" if gap.high < 0 else "undecided"


@rule
def learns_between(evidence: Evidence, cell: Cell, sooner: Cell | None, later: Sequence[Cell]) -> Decision:
    """Decide whether a cell learns after one, if one is named, and before all of several."""
    before = [sooner] if sooner else []
    pairs = [(one, cell) for one in before] + [(cell, one) for one in later]
    return format_medians(evidence, [*before, cell, *later]), _in_order(evidence, pairs)


@rule
def learns_last(evidence: Evidence, those: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide whether each of some cells learns later than each of the others."""
    pairs = [(other, one) for one in those for other in others]
    return format_medians(evidence, [*those, *others]), _in_order(evidence, pairs)


@rule
def never_learn(evidence: Evidence, those: Sequence[Cell]) -> Decision:
    """Decide whether no cell learns."""
    found = [learns(steps) for steps in outcomes(evidence, those)]
    return format_medians(evidence, those), holds_if(not any(found))


@rule
def most_and_few_learn(evidence: Evidence, most: Cell, few: Cell, expected: bool) -> Decision:
    """Decide whether at least two thirds of the seeds of one cell learn and at most a third of another's."""
    shares = [float(np.isfinite(steps).mean()) for steps in outcomes(evidence, [most, few])]
    differ = shares[0] >= 2 / 3 - 1e-9 and shares[1] <= 1 / 3 + 1e-9
    return format_medians(evidence, [most, few]), holds_if(differ == expected)


def format_medians(evidence: Evidence, cells: Sequence[Cell]) -> str:
    """Write the outcome of each cell, and how many of its seeds learn."""
    texts = []
    for (_, scheme), steps in zip(cells, outcomes(evidence, cells), strict=True):
        there = f"{middle(steps) / 1e6:.2f}" if learns(steps) else "never"
        texts.append(f"{scheme} {there} ({int(np.isfinite(steps).sum())} of {len(steps)} seeds)")
    return f"stays short from, M steps, median: {', '.join(texts)}"


def _in_order(evidence: Evidence, pairs: Sequence[tuple[Cell, Cell]]) -> Verdict:
    """Decide whether the one cell of each pair learns before the other; two that never learn leave it open."""
    verdicts: list[Verdict] = []
    for pair in pairs:
        first, second = (float(middle(steps)) for steps in outcomes(evidence, pair))
        verdicts.append("undecided" if first == second == np.inf else holds_if(first < second))
    return combined(verdicts)


def _orders(found: Estimate) -> bool:
    return found.value >= ORDERS and found.low >= AT_LEAST
