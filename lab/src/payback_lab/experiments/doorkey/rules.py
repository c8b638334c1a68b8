"""Rules for claims about DoorKey: who converges, who ties with the best, how often the bonus alters the optimum."""

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np

from payback_lab.claims.claim import Verdict, combined, positive
from payback_lab.claims.evidence import Cell, Evidence, Measure, cells
from payback_lab.claims.rules import Decision, Rule, compare_pairs, measuring, rule
from payback_lab.claims.wording import format_cells, format_p, significance
from payback_lab.experiments.doorkey.measures import (
    HARD,
    HIGH,
    LENGTH,
    MIDDLE,
    PAIRS,
    SETTINGS,
    SETTLED,
    settles,
    title,
    unsettled,
)
from payback_lab.methods import MATCHED, SCHEMES
from payback_lab.statistics import bootstrap_interval, interval_of_gap, stratified_interval, welch

TIE = 0.1
"""How far above the best N̄ the interval of a tie may reach, as a share of that N̄."""
DISTINCT = 0.05 / (len(SCHEMES) - 1)
"""Below this p there is no tie: the best is picked by its figure, so that each of seven others may look worse."""


@measuring(SETTLED)
@rule
def all_but_one(evidence: Evidence, setting: str, ones: Sequence[str], other: str) -> Decision:
    """Decide whether at most one of `ones` does not settle before the other scheme."""
    pairs = compare_pairs(evidence, SETTLED, cells([setting], ones), [(setting, other)])
    counts = {v: [one[1] for (one, _), found in pairs.items() if found == v] for v in get_args(Verdict)}
    here = f"faster: {_listed(counts['holds'])}; not faster: {_listed(counts['does not hold'])}"
    here += (
        f"; open: {_listed(counts['undecided'])}. {format_cells(evidence, SETTLED, cells([setting], (*ones, other)))}"
    )
    here += f" ({significance(evidence, SETTLED, pairs)})"
    enough, refuted = len(counts["holds"]) >= len(ones) - 1, len(counts["does not hold"]) > 1
    return here, "holds" if enough else "does not hold" if refuted else "undecided"


def converges(*those: Cell) -> Rule:
    """Decide whether each cell settles in more than half of its seeds."""
    return _share(those, 1)


def fails(*those: Cell) -> Rule:
    """Decide whether each cell settles in less than half of its seeds."""
    return _share(those, -1)


@measuring(LENGTH)
@rule
def _share(evidence: Evidence, those: Sequence[Cell], sign: int) -> Decision:

    texts, verdicts = [], []
    for cell in those:
        shares = settles(evidence, cell)
        low, high = sorted(sign * (float(bound) - 0.5) for bound in bootstrap_interval(shares))
        verdicts.append(positive(low, high))
        untruncated = int((evidence.figures(cell, "converged") == 1).sum())
        kept = f"{int(shares.sum())} of {len(shares)} seeds settle, {untruncated} without truncation at the end"
        texts.append(f"{cell[1]} {title(cell[0])}: {kept}")
    return f"{'; '.join(texts)}. {format_cells(evidence, LENGTH, those)}", combined(verdicts)


@measuring(LENGTH)
@rule
def tied(evidence: Evidence, setting: str, schemes: Sequence[str]) -> Decision:
    """Decide whether the N̄ of each scheme is a tie with the lowest of all eight."""
    values = {s: evidence.values((setting, s), LENGTH) for s in SCHEMES}
    best = min(SCHEMES, key=lambda s: values[s].mean())
    texts: list[str] = []
    verdicts: list[Verdict] = []
    for scheme in schemes:
        low, high = interval_of_gap(values[scheme], values[best]) if scheme != best else (0.0, 0.0)
        p, near = welch(values[best], values[scheme]), high <= TIE * values[best].mean()
        verdicts.append("does not hold" if p < DISTINCT else "holds" if near else "undecided")
        shown = "" if scheme == best or np.isnan(p) else f", {format_p(p)}"
        gap = values[scheme].mean() - values[best].mean()
        texts.append(f"{scheme} {gap:+.1f} [{low:+.1f}, {high:+.1f}]{shown}")
    here = f"{title(setting)} above the lowest N̄ ({best} {values[best].mean():.1f}): {'; '.join(texts)}"
    return here, combined(verdicts)


def _listed(schemes: Sequence[str]) -> str:
    return ", ".join(schemes) or "–"


NONE_SETTLES = "none of our methods settles in every seed at both"


def waiting_pays(alpha: float, gamma: float, visits: int) -> bool:
    """Say whether standing still for some time beats going on: 1 − γ^t < Σ_{t'<t} α γ^t' / (n + t' + 1).

    (`procrastination_condition`). Of the steps of waiting the first gains most, so that it decides for any t.

    >>> waiting_pays(0.02, 0.995, visits=2), waiting_pays(0.02, 0.995, visits=3)
    (True, False)
    """
    # 1e-12: at equality, which is not strictly preferred, rounding must not decide.
    return 1 - gamma < alpha / (visits + 1) - 1e-12


def altered_more_often(evidence: Evidence) -> Decision:
    """Decide by arithmetic whether the condition is met for more visits the larger α and γ are."""
    counts = {k: sum(waiting_pays(*PAIRS[k], visits=n) for n in range(1, 641)) for k in SETTINGS}
    here = ", ".join(f"{title(k)} {count}" for k, count in counts.items())
    rising = np.diff(list(counts.values())) > 0
    return f"visits n after which waiting pays: {here}", "holds" if rising.all() else "does not hold"


def gains_more_speed(evidence: Evidence) -> Decision:
    """Decide whether the factor by which our methods settle before IM is larger at α = 0.025 than at 0.02."""
    ours = _steady(evidence)
    if not ours:
        return NONE_SETTLES, "undecided"
    value, low, high = _growth(evidence, ours, SETTLED, np.log)
    bounded = {k: any(unsettled(run) for run in evidence.cells[k, "im"]) for k in HARD}
    verdict: Verdict = positive(low, high)
    # A bound on one side only leaves open what is on the other.
    if (verdict == "holds" and bounded[MIDDLE]) or (verdict == "does not hold" and bounded[HIGH]):
        verdict = "undecided"
    shown = f"{np.exp(value):.2f} times as much [{np.exp(low):.2f}, {np.exp(high):.2f}]"
    return f"{shown}. {format_cells(evidence, SETTLED, _cells(ours))}", verdict


def gains_more_length(evidence: Evidence) -> Decision:
    """Decide whether our methods' N̄ lies further below IM's at α = 0.025 than at 0.02."""
    ours = _steady(evidence)
    if not ours:
        return NONE_SETTLES, "undecided"
    value, low, high = _growth(evidence, ours, LENGTH, lambda mean: mean)
    here = f"gap to IM larger by {value:.1f} [{low:.1f}, {high:.1f}]. {format_cells(evidence, LENGTH, _cells(ours))}"
    return here, positive(low, high)


def _growth(
    evidence: Evidence, ours: list[str], measure: Measure, scale: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, float, float]:
    """Return by how much IM lies further above our methods at α = 0.025 than at 0.02, and its interval.

    How far is the mean over our methods of scale(IM) − scale(method): with the logarithm for a scale, a factor.
    """
    strata = [evidence.values(cell, measure) for cell in _cells(ours)]

    def growth(draws: list[np.ndarray]) -> np.ndarray:
        means = [scale(draw.mean(1)) for draw in draws]
        half = len(means) // 2
        gaps = [np.mean([part[0] - m for m in part[1:]], axis=0) for part in (means[:half], means[half:])]
        return gaps[1] - gaps[0]

    low, high = stratified_interval(strata, growth)
    return float(growth([stratum[None] for stratum in strata])[0]), float(low), float(high)


def _steady(evidence: Evidence) -> list[str]:
    """Name those of our methods that settle in every seed at both settings, because the others have no factor."""
    return [s for s in MATCHED if not any(unsettled(run) for k in HARD for run in evidence.cells[k, s])]


def _cells(ours: list[str]) -> tuple[Cell, ...]:
    return cells(HARD, ("im", *ours))
