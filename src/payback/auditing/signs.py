"""Suppositions that cannot be put right from the log alone, but leave a sign in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

    shares = np.array([left(e) for e in evidence.episodes])
    known = np.isfinite(shares)
    fill = float(np.median(shares[known])) if known.any() else 1.0
    return Supposition(Cause.NEVER_RESET, np.where(known, shares, fill), step=0)


def _changed(evidence: Evidence) -> Supposition:
    """First rows, where nothing is owed, are paid another multiple of their bonus than 1.

    Told from the differences between neighbouring episodes, because F̄ moves while it is learnt.
    """
    first = np.array([[e.shaped[0], e.bonus[0]] for e in evidence.episodes if e.bonus is not None])
    moved: NDArray[np.float64] = np.diff(first, axis=0)
    squares = float(moved[:, 1] @ moved[:, 1])
    slope = float(moved[:, 0] @ moved[:, 1]) / squares if len(moved) > 1 and squares > 1e-18 else 1.0
    unsure = float((moved[:, 0] - slope * moved[:, 1]).std()) / max(squares, 1e-300) ** 0.5
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


def _without_bonus(evidence: Evidence) -> list[Supposition]:
    """Tell causes apart by how much is missing at the last step, and how first rows differ from later ones."""
    episodes = evidence.episodes
    first, last = (np.array([e.shaped[k] for e in episodes]) for k in (0, -1))
    missing = np.array([evidence.missing(e) for e in episodes])
    values = np.concatenate([e.shaped for e in episodes])
    inner = np.concatenate([e.shaped[1:-1] for e in episodes])
    kept = 0.6 < np.median(np.abs(missing)) / (np.median(np.abs(first)) or np.inf) < 1.5
    kept = kept and bool((first.min() < 0) | (np.mean(missing > 0) > 0.9))
    # Settlements of several loans are larger than one bonus, as first rows show it, and than what is paid on the way.
    usual = max(float(np.median(np.abs(rows))) for rows in (first, inner)) if len(inner) >= 50 else np.inf
    settles = float(np.median(np.abs(last))) > 2 * usual
    unpaid = not settles and np.mean(np.abs(last) < 0.5 * np.abs(last - missing)) > 0.6
    signs: list[tuple[Cause, float]] = []
    if (values >= 0).all() or (values <= 0).all():
        signs.append((Cause.NEVER_REPAID, 0.005))
    lag = _repaid_after(episodes) if len(inner) >= 50 else 0
    repaid = bool(lag) or _declines(episodes)
    follows = _together(last, last - missing)
    if not repaid and not follows and not settles:
        signs.append((Cause.NEVER_REPAID, 0.02))
    if kept:
        signs.append((Cause.LAST_REWARD_KEPT, SIGN))
    elif unpaid:
        signs.append((Cause.UNPAID_END, SIGN))
    elif (repaid or settles) and not follows:
        signs.append((Cause.CHANGED_AFTER_MATCHING if settles else Cause.UNPAID_END, 2 * SIGN))
    # What is repaid on the way leaves few loans to the end: more cannot be missing there, so something else is wrong.
    if lag and np.median(np.abs(missing)) > 3 * (lag + 4) * float(np.quantile(np.abs(values), 0.99)):
        signs.append((Cause.CHANGED_AFTER_MATCHING, 0.04))
    owed = last - missing
    near = np.abs(missing) < 0.2 * np.abs(owed)
    if near.mean() > 0.5:
        signs.append((Cause.CHANGED_AFTER_MATCHING, 2 * SIGN))
    across = _repaid_across(episodes, lag) if lag else False
    if across or (across is None and len(episodes) >= 15 and _like_later_rows(first, episodes, lag)):
        signs.append((Cause.NEVER_RESET, 0.02 if across else 0.03))
    return [Supposition(cause, np.full(len(episodes), left)) for cause, left in signs]


def _declines(episodes: list[Episode]) -> bool:
    """Whether later rows are paid far less than first ones, where nothing is owed: then they repay on the way."""
    first = np.array([e.shaped[0] for e in episodes])
    later = np.concatenate([e.shaped[DECLINED:-1] for e in episodes])
    if len(first) < 10 or len(later) < 30:
        return False
    unsure = 3 * float(np.hypot(first.std() / len(first) ** 0.5, later.std() / len(later) ** 0.5))
    mean = float(first.mean())
    return abs(mean) > unsure and (mean - float(later.mean())) * np.sign(mean) > 0.5 * abs(mean) + unsure


DECLINED = 5
"""Age from which most of a loan that is repaid in many shares is repaid."""


def _together(last: np.ndarray, owed: np.ndarray) -> bool:
    """Whether last payments follow what was owed: then something is settled."""
    if len(last) < 5 or last.std() == 0 or owed.std() == 0:
        return bool((np.sign(last) == np.sign(owed)).mean() > 0.9)
    return float(np.corrcoef(last, owed)[0, 1]) > 0.4


def _repaid_across(episodes: list[Episode], lag: int) -> bool | None:
    """Whether first rows repay what was paid `lag` rows earlier, in the episode before; None where that is unclear."""
    x: list[float] = []
    y: list[float] = []
    for e in episodes:
        if e.paid_before is not None and len(e.paid_before) >= lag:
            # The last row of the episode before is left out, because it may be a settlement.
            several = range(min(lag - 1, len(e.shaped) - 1))
            x += [float(e.paid_before[t - lag]) for t in several]
            y += [float(e.shaped[t]) for t in several]
    n = len(x)
    if n < 30 or np.std(x) == 0 or np.std(y) == 0:
        return None
    together = float(np.corrcoef(x, y)[0, 1])
    return True if together < -max(0.1, 3 / n**0.5) else False if n >= 200 and together > -0.05 else None


def _like_later_rows(first: np.ndarray, episodes: list[Episode], lag: int) -> bool:
    """Whether first rows, where nothing should be owed, are paid like later ones, of which repayments are taken off."""
    rows = np.concatenate([e.shaped[lag:-1] for e in episodes])
    if len(rows) < 50:
        return False
    spread = float(rows.std()) or 1e-300
    return abs(first.mean() - rows.mean()) < 0.3 * spread and first.std() > 0.85 * spread


def _repaid_after(episodes: list[Episode]) -> int:
    """Return the lag at which payments go most against earlier ones of the same episode, 0 if at none.

    Repayments on the way show so; last steps are left out.
    """
    best, found = 0.0, 0
    for lag in range(1, 41):
        pairs = [(e.shaped[:-1][:-lag], e.shaped[:-1][lag:]) for e in episodes if len(e.shaped) > lag + 2]
        n = sum(len(x) for x, _ in pairs)
        if n >= 50:
            x, y = (np.concatenate(side) for side in zip(*pairs, strict=True))
            against = np.corrcoef(x, y)[0, 1] if x.std() > 0 and y.std() > 0 else 0.0
            if against < min(best, -max(0.1, 4 / n**0.5)):
                best, found = float(against), lag
    return found
