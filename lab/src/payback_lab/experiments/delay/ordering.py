"""Does a figure order the cells as they learn? Spearman's rank correlation, with seeds drawn anew in each cell."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from payback_lab.claims.evidence import Cell, Evidence
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
    """Say whether the median seed of a cell learns.

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
    that all learn alike, order nothing: 0.

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
