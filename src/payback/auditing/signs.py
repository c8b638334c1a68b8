"""Suppositions that cannot be put right from the log alone, but leave a sign in it."""

from __future__ import annotations

import numpy as np

from payback.auditing.cause import Cause
from payback.auditing.evidence import Episode, Evidence
from payback.auditing.repairs import Supposition

SIGN = 0.05
"""The share of a leak that counts as left where a sign, not an amount, speaks for a cause."""


def suppositions(evidence: Evidence) -> list[Supposition]:
    """Return what the log shows signs of."""
    clipped = _clipped(evidence)
    found = [] if clipped is None else [clipped]
    if evidence.episodes[0].bonus is None:
        return [*found, *_without_bonus(evidence)]
    return [*found, _never_repaid(evidence), _unpaid_end(evidence), _never_reset(evidence), _changed(evidence)]


def _never_repaid(evidence: Evidence) -> Supposition:
    """Every step is paid its own bonus."""

    def left(e: Episode) -> float:
        assert e.bonus is not None
        off = e.shaped - (e.bonus - evidence.mean)
        return float(np.abs(off).mean() / max(np.abs(e.shaped).mean(), 1e-300))

    return Supposition(Cause.NEVER_REPAID, np.array([left(e) for e in evidence.episodes]), "", 0, -0.2)


def _unpaid_end(evidence: Evidence) -> Supposition:
    """The last step is paid its own bonus, or nothing, or what any other step would be paid."""

    def left(e: Episode) -> float:
        assert e.bonus is not None
        wanted = [0.0, float(e.bonus[-1] - evidence.mean), float(e.bonus[-1])]
        plain = evidence.predicted(e, across=False)
        if plain is not None:
            wanted.append(float(plain[-1]))
        off = min(abs(float(e.shaped[-1]) - x) for x in wanted)
        return off / max(abs(evidence.missing(e)), 1e-300)

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
        stale = float(weights @ (steady - plain))
        return float(min(abs(weights @ off), abs(e.leak - stale)) / max(abs(e.leak), 1e-300))

    shares = np.array([left(e) for e in evidence.episodes])
    known = np.isfinite(shares)
    fill = float(np.median(shares[known])) if known.any() else 1.0
    return Supposition(Cause.NEVER_RESET, np.where(known, shares, fill), step=0)


def _changed(evidence: Evidence) -> Supposition:
    """First rows, where nothing is owed, are paid another multiple of their bonus than 1."""
    first = np.array([[e.shaped[0], e.bonus[0]] for e in evidence.episodes if e.bonus is not None])
    paid, bonus = first.T
    spread = float(np.abs(bonus - np.median(bonus)).mean())
    slope = float(np.polyfit(bonus, paid, 1)[0]) if len(paid) > 2 and spread > 1e-9 else 1.0
    sign = abs(slope - 1) > 0.02 and abs(slope) > 1e-3
    numbers = f"first steps are paid {slope:.3g} times their bonus"
    return Supposition(
        Cause.CHANGED_AFTER_MATCHING, np.full(len(evidence.episodes), SIGN if sign else 1.0), numbers, 0
    )


def _clipped(evidence: Evidence) -> Supposition | None:
    """Many payments lie at one bound that first rows, where nothing is owed, do not reach."""
    values = np.concatenate([e.shaped for e in evidence.episodes])
    first = np.array([e.shaped[0] for e in evidence.episodes])
    for bound in (float(values.min()), float(values.max())):
        if bound == 0:
            continue
        at = _near(values, bound)
        below = (values / bound > 0.9) & ~at
        natural = _near(first, bound).mean() >= 0.5 * at.mean()
        if at.sum() < FEW_AT_BOUND or natural or at.sum() < 3 * below.sum() or at.mean() > 0.9:
            continue
        touched = np.array([_near(e.shaped, bound).any() for e in evidence.episodes])
        if np.average(touched, weights=evidence.weights) > 0.7:
            left = np.where(touched, 0.01, 1.0)
            return Supposition(Cause.CLIPPED, left, f"{at.sum():,} steps are paid {bound:.4g}")
    return None


FEW_AT_BOUND = 3


def _near(values: np.ndarray, bound: float) -> np.ndarray:
    """Whether payments lie at a bound, a noise of half a per cent allowed for."""
    return np.abs(values / bound - 1) < 0.01


def _without_bonus(evidence: Evidence) -> list[Supposition]:
    """Tell the causes at the last step apart by how much is missing there, in first rows' payments."""
    episodes, n = evidence.episodes, len(evidence.episodes)
    first = np.array([e.shaped[0] for e in episodes])
    missing = np.array([evidence.missing(e) for e in episodes])
    last = np.array([e.shaped[-1] for e in episodes])
    values = np.concatenate([e.shaped for e in episodes])
    signs = []
    if (values >= 0).all() or (values <= 0).all():
        signs.append((Cause.NEVER_REPAID, 0.01))
    elif np.mean(np.abs(last) < 0.5 * np.abs(last - missing)) > 0.6:
        ratio = np.median(missing) / (np.median(first) or np.inf)
        signs.append((Cause.LAST_REWARD_KEPT if 0.6 < ratio < 1.5 else Cause.UNPAID_END, SIGN))
    elif 0.6 < np.median(missing) / (np.median(first) or np.inf) < 1.5:
        signs.append((Cause.LAST_REWARD_KEPT, SIGN))
    before = np.array([np.nan if e.paid_before is None else e.paid_before[-1] for e in episodes])
    known = np.isfinite(before)
    if known.sum() >= 5:
        leaks = np.array([e.leak for e in episodes])[known]
        with np.errstate(invalid="ignore", divide="ignore"):
            together = np.corrcoef(before[known], leaks)[0, 1]
        if together > 0.8:
            signs.append((Cause.NEVER_RESET, 0.02))
    return [Supposition(cause, np.full(n, left)) for cause, left in signs]
