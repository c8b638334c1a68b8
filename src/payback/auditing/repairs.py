"""Suppositions that can be put right exactly: undo the cause and see how much of each leak is left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from payback.auditing.cause import Cause
from payback.auditing.evidence import Episode, Evidence
from payback.auditing.fitting_gamma import best_gamma, discounted

SIGN = 0.05
"""The share of a leak that counts as left where a sign, not an amount, speaks for a cause."""
FEW = 3
"""Episodes from which a number can be fitted."""
FITTED = 0.4
"""What a fitted number costs: where a supposition without one explains as much, it is preferred."""


class Supposition(NamedTuple):
    """A cause, and which share of each episode's leak is left if that cause is put right."""

    cause: Cause
    left: np.ndarray
    numbers: str = ""
    step: int | None = None
    handicap: float = 0.0
    """Powers of ten taken off its score."""


def suppositions(evidence: Evidence) -> list[Supposition]:
    """Return every supposition that can be put right exactly."""
    found = [_autoreset_row(evidence), _late_reset(evidence)]
    if evidence.episodes[0].bonus is not None:
        found.append(_last_reward_kept(evidence))
    if len(evidence.episodes) >= FEW:
        found += [_constant_added(evidence), _constant_factor(evidence), _wrong_gamma(evidence)]
    return found


def _shares(evidence: Evidence, left: list[float]) -> np.ndarray:
    """Return amounts left over, valued at the episode's start, as shares of the leaks."""
    leaks = np.array([abs(e.leak) for e in evidence.episodes])
    return np.abs(left) / np.maximum(leaks, 1e-300)


def _autoreset_row(evidence: Evidence) -> Supposition:
    """The first row is the autoreset row of the episode before, and is paid."""
    left = [np.inf if e.paid_before is None else e.leak - float(e.shaped[0]) for e in evidence.episodes]
    return Supposition(Cause.AUTORESET_ROW, _shares(evidence, left), step=0)


def _late_reset(evidence: Evidence) -> Supposition:
    """Every episode ends one row later than the log says."""

    def left(e: Episode) -> float:
        if e.paid_after is None:
            return np.nan
        first = 0.0 if e.paid_before is None else float(e.shaped[0])
        return e.leak - first + float(np.float64(evidence.gamma) ** len(e.shaped)) * e.paid_after

    shares = _shares(evidence, [left(e) for e in evidence.episodes])
    return Supposition(Cause.LATE_RESET, with_median(shares), step=0)


def _last_reward_kept(evidence: Evidence) -> Supposition:
    """What is missing is the last step's own bonus, centred or not."""

    def left(e: Episode) -> float:
        assert e.bonus is not None
        missing, kept = evidence.missing(e), float(e.bonus[-1])
        # F̄ moves while it is learnt; an episode's first step, where nothing is owed, is paid F − F̄ of its own time.
        means = (0.0, evidence.mean, float(e.bonus[0] - e.shaped[0]) if e.lent is None else 0.0)
        return min(abs(missing - kept + mean) for mean in means) / max(abs(missing), 1e-300)

    return Supposition(Cause.LAST_REWARD_KEPT, np.array([left(e) for e in evidence.episodes]))


def _constant_added(evidence: Evidence) -> Supposition:
    weights = np.array([discounted(np.ones(len(e.shaped)), evidence.gamma) for e in evidence.episodes])
    leaks = np.array([e.leak for e in evidence.episodes])
    constant = _weighted_median(leaks / weights, evidence.weights)
    numbers = f"{constant:.4g} at each of them"
    return Supposition(Cause.CONSTANT_ADDED, _shares(evidence, list(leaks - constant * weights)), numbers, 0, FITTED)


def _constant_factor(evidence: Evidence) -> Supposition:
    last = np.array([e.shaped[-1] for e in evidence.episodes])
    missing = np.array([evidence.missing(e) for e in evidence.episodes])
    owed = last - missing
    some = np.abs(owed) > 0
    if not some.any():
        return Supposition(Cause.CONSTANT_FACTOR, np.ones(len(last)))
    factor = _weighted_median(last[some] / owed[some], evidence.weights[some])
    if not np.isfinite(factor) or abs(factor) < 1e-2:
        return Supposition(Cause.CONSTANT_FACTOR, np.ones(len(last)))
    # Beside a large debt every small payment would seem to fit, so that the smaller of the two is the measure.
    with np.errstate(over="ignore"):  # beside a last payment of 0 everything is too much
        left = np.abs(last - factor * owed) / np.maximum(np.minimum(np.abs(missing), np.abs(last)), 1e-300)
    return Supposition(Cause.CONSTANT_FACTOR, left, f"{factor:.4g} times", None, FITTED)


def _wrong_gamma(evidence: Evidence) -> Supposition:
    several = [e.shaped for e in evidence.episodes]
    gamma, _ = best_gamma([x for x, w in zip(several, evidence.weights, strict=True) if w > 0.05][:60] or several)
    before, after = (
        np.array([abs(discounted(x, g)) / max(discounted(np.abs(x), g), 1e-300) for x in several])
        for g in (evidence.gamma, gamma)
    )
    numbers = f"γ = {gamma:.6g}, not {evidence.gamma:.6g}"
    return Supposition(Cause.WRONG_GAMMA, after / np.maximum(before, 1e-300), numbers, None, FITTED)


def with_median(shares: np.ndarray) -> np.ndarray:
    """Return the shares with the median of those that are known in the place of the others, 1 where none is known."""
    known = np.isfinite(shares)
    return np.where(known, shares, np.median(shares[known]) if known.any() else 1.0)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
