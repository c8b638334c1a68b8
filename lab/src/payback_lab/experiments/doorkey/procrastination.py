"""How often the bonus alters the optimal policy of DoorKey, and whether our methods gain more the oftener it does."""

from collections.abc import Callable

import numpy as np

from payback_lab.claims.claim import Verdict
from payback_lab.claims.evidence import Cell, Evidence, Measure, cells
from payback_lab.claims.sentence import Decision
from payback_lab.claims.verdicts import positive
from payback_lab.claims.wording import said
from payback_lab.experiments.doorkey.measures import LENGTH, SETTLED, unsettled
from payback_lab.experiments.doorkey.printed import HARD, HIGH, MIDDLE, PAIRS, SETTINGS, title
from payback_lab.methods import MATCHED
from payback_lab.statistics import stratified_interval

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
    return f"{shown}. {said(evidence, SETTLED, _cells(ours))}", verdict


def gains_more_length(evidence: Evidence) -> Decision:
    """Decide whether our methods' N̄ lies further below IM's at α = 0.025 than at 0.02."""
    ours = _steady(evidence)
    if not ours:
        return NONE_SETTLES, "undecided"
    value, low, high = _growth(evidence, ours, LENGTH, lambda mean: mean)
    here = f"gap to IM larger by {value:.1f} [{low:.1f}, {high:.1f}]. {said(evidence, LENGTH, _cells(ours))}"
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
