"""Suppositions that cannot be put right from the log alone, but leave a sign in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from payback.auditing.cause import Cause
from payback.auditing.evidence import Episode, Evidence
from payback.auditing.repairs import SIGN, Supposition, with_median
from payback.auditing.signs_without_bonus import signs_without_bonus


def suppositions(evidence: Evidence) -> list[Supposition]:
    """Return what the log shows signs of."""
    clipped = _clipped(evidence)
    found = [] if clipped is None else [clipped]
    if evidence.episodes[0].bonus is None:
        return [*found, *signs_without_bonus(evidence)]
    return [*found, _never_repaid(evidence), _unpaid_end(evidence), _never_reset(evidence), _changed(evidence)]


def _never_repaid(evidence: Evidence) -> Supposition:
    """Every step is paid its own bonus, but for a constant F̄."""

    def left(e: Episode) -> float:
        assert e.bonus is not None
        off = e.shaped - e.bonus
        return float(np.abs(off - np.median(off)).mean() / max(np.abs(e.shaped).mean(), 1e-300))

    shares = np.array([left(e) for e in evidence.episodes])
    # Episodes shorter than the delay repay nothing before their end, so that nearly all must agree with the bonus; then
    # their rows say more than one last row does.
    if np.average(shares < SIGN, weights=evidence.weights) < 0.9:
        return Supposition(Cause.NEVER_REPAID, np.ones(len(shares)))
    return Supposition(Cause.NEVER_REPAID, np.where(shares < SIGN, shares**2, 1.0), "", 0, -0.5)


def _unpaid_end(evidence: Evidence) -> Supposition:
    """The last step is paid its own bonus, or nothing, or what any other step would be paid."""
    # Where all is repaid at age 1, any other step settles what is owed and is paid its own bonus: `LAST_REWARD_KEPT`.
    fit = evidence.matching
    at_age_one = fit is not None and float(np.abs(fit.repaid[1:]).sum()) < 0.02 * abs(float(fit.repaid[0]))

    def left(e: Episode) -> float:
        assert e.bonus is not None
        wanted = [0.0, float(e.bonus[-1] - evidence.mean), float(e.bonus[-1])]
        plain = evidence.predicted(e, across=False)
        if plain is not None and not at_age_one:
            wanted.append(float(plain[-1]))
        off = min(abs(float(e.shaped[-1]) - x) for x in wanted)
        # The first step, where nothing is owed, must be right; otherwise loans of the episode before are repaid.
        size = float(np.abs(e.bonus).mean())
        start = abs(float(e.shaped[0] - e.bonus[0]) + evidence.mean)
        # Beside a large debt every small payment would seem to fit, so that the bonus is the measure.
        return max(off / max(min(abs(evidence.missing(e)), size), 1e-300), 0.1 * start / max(size, 1e-300))

    return Supposition(Cause.UNPAID_END, np.array([left(e) for e in evidence.episodes]))


def _never_reset(evidence: Evidence) -> Supposition:
    """Loans of the episode before are repaid in this one, whether or not its end settles."""
    gamma = evidence.gamma

    def left(e: Episode) -> float:
        steady = evidence.predicted(e, across=True)
        if steady is None or e.rewards_before is None:
            return np.nan
        off = e.shaped - steady
        weights = np.float64(gamma) ** np.arange(len(off))
        plain = evidence.predicted(e, across=False)
        assert plain is not None
        stale = weights * (steady - plain)
        left = min(abs(weights @ off), abs(e.leak - stale.sum()), abs(e.leak - stale[:-1].sum()))
        return float(left / max(abs(e.leak), 1e-300))

    return Supposition(Cause.NEVER_RESET, with_median(np.array([left(e) for e in evidence.episodes])), step=0)


def _changed(evidence: Evidence) -> Supposition:
    """First rows, where nothing is owed, are paid another multiple of their bonus than 1.

    Told from the differences between neighbouring episodes, because F̄ moves while it is learnt.
    """
    first = np.array([[e.shaped[0], e.bonus[0]] for e in evidence.episodes if e.bonus is not None])
    moved: NDArray[np.float64] = np.diff(first, axis=0)
    squares = float(moved[:, 1] @ moved[:, 1])
    slope = float(moved[:, 0] @ moved[:, 1]) / squares if len(moved) > 1 and squares > 1e-18 else 1.0
    rest: NDArray[np.float64] = moved[:, 0] - slope * moved[:, 1]
    unsure = float(rest @ rest / max(len(rest), 1)) ** 0.5 / max(squares, 1e-300) ** 0.5
    sign = abs(slope - 1) > max(0.02, 3 * unsure) and abs(slope) > 1e-3
    numbers = f"first steps are paid {slope:.3g} times their bonus"
    return Supposition(
        Cause.CHANGED_AFTER_MATCHING, np.full(len(evidence.episodes), 2 * SIGN if sign else 1.0), numbers, 0
    )


def _clipped(evidence: Evidence) -> Supposition | None:
    """Many payments lie at one bound that first rows, where nothing is owed, do not reach."""
    values = np.concatenate([e.shaped for e in evidence.episodes])
    first = np.array([e.shaped[0] for e in evidence.episodes])
    touched, numbers = np.zeros(len(evidence.episodes), dtype=bool), list[str]()
    for bound in (float(values.min()), float(values.max())):
        if bound == 0:
            continue
        at, exact = _near(values, bound), int((values == bound).sum())
        beyond = int(((values / bound > 0.9) & ~at).sum())
        natural = _near(first, bound).mean() >= 0.5 * at.mean()
        piled = exact >= FEW_AT_BOUND or at.sum() >= max(2 * FEW_AT_BOUND, 2 * beyond)
        if piled and not natural and at.mean() < 0.9:
            touched |= np.array([_near(e.shaped, bound).any() for e in evidence.episodes])
            numbers.append(f"{at.sum():,} steps are paid {bound:.4g}")
    if np.average(touched, weights=evidence.weights) < 0.7:
        return None
    return Supposition(Cause.CLIPPED, np.where(touched, 0.003, 1.0), ", ".join(numbers))


FEW_AT_BOUND = 3


def _near(values: np.ndarray, bound: float) -> np.ndarray:
    """Whether payments lie at a bound, a noise of half a per cent allowed for."""
    return np.abs(values / bound - 1) < 0.01
