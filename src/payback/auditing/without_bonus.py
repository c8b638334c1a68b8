"""The causes of a leak in a log without the bonus F: how first, inner and last payments differ."""

from __future__ import annotations

import numpy as np

from payback.auditing.hypotheses import SIGN, TINY, Cause, Evidence, Hypothesis, LeakyEpisode

DECLINED = 5
"""Age at which most of a loan is repaid that is repaid in many shares."""


def without_bonus(evidence: Evidence) -> list[Hypothesis]:
    """Distinguish causes without F: by what is missing at the last step, and how first rows differ from later ones."""
    episodes, first, last, missing = evidence.episodes, evidence.first, evidence.last, evidence.missing
    values = np.concatenate([e.shaped for e in episodes])
    inner = np.concatenate([e.shaped[1:-1] for e in episodes])
    kept = 0.6 < np.median(np.abs(missing)) / (np.median(np.abs(first)) or np.inf) < 1.5
    kept = kept and bool((first.min() < 0) | (np.mean(missing > 0) > 0.9))
    settles = _settles(first, inner, last)
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
    # Repayments on the way leave few loans to the end: if more is missing there, something else is wrong.
    if lag and np.median(np.abs(missing)) > 3 * (lag + 4) * float(np.quantile(np.abs(values), 0.99)):
        signs.append((Cause.CHANGED_AFTER_MATCHING, 0.04))
    if (np.abs(missing) < 0.2 * np.abs(last - missing)).mean() > 0.5:
        signs.append((Cause.CHANGED_AFTER_MATCHING, 2 * SIGN))
    across = _repaid_across(episodes, lag) if lag else False
    if across or (across is None and len(episodes) >= 15 and _like_later_rows(first, episodes, lag)):
        signs.append((Cause.NEVER_RESET, 0.02 if across else 0.03))
    return [Hypothesis(cause, np.full(len(episodes), left)) for cause, left in signs]


def _settles(first: np.ndarray, inner: np.ndarray, last: np.ndarray) -> bool:
    """Whether last payments look like settlements of several loans.

    These are larger than one bonus (a first row) and than the payments on the way. If nearly all have one sign, the
    loans have the other.
    """
    if len(inner) < 50:
        return False
    sign, usual = float(np.sign(last).mean()), max(float(np.median(np.abs(rows))) for rows in (first, inner))
    opposite = abs(sign) < 0.8 or sign * float(np.sign(first).mean()) < -0.4
    return float(np.median(np.abs(last))) > 2 * usual and opposite


def _declines(episodes: list[LeakyEpisode]) -> bool:
    """Whether later rows are paid far less than first ones, where nothing is owed: then they repay on the way."""
    first = np.array([e.shaped[0] for e in episodes])
    later = np.concatenate([e.shaped[DECLINED:-1] for e in episodes])
    if len(first) < 10 or len(later) < 30:
        return False
    unsure = 3 * float(np.hypot(first.std() / len(first) ** 0.5, later.std() / len(later) ** 0.5))
    mean = float(first.mean())
    return abs(mean) > unsure and (mean - float(later.mean())) * np.sign(mean) > 0.5 * abs(mean) + unsure


def _together(last: np.ndarray, owed: np.ndarray) -> bool:
    """Whether last payments follow the debt: then something is settled."""
    if len(last) < 5 or last.std() == 0 or owed.std() == 0:
        return bool((np.sign(last) == np.sign(owed)).mean() > 0.9)
    return float(np.corrcoef(last, owed)[0, 1]) > 0.4


def _repaid_across(episodes: list[LeakyEpisode], lag: int) -> bool | None:
    """Whether first rows repay what was paid `lag` rows earlier, in the previous episode; None if that is unclear."""
    x: list[float] = []
    y: list[float] = []
    for e in episodes:
        if len(e.paid_before) >= lag:
            # The last row of the episode before is left out, because it may be a settlement.
            several = range(min(lag - 1, len(e.shaped) - 1))
            x += [float(e.paid_before[t - lag]) for t in several]
            y += [float(e.shaped[t]) for t in several]
    n = len(x)
    if n < 30 or np.std(x) == 0 or np.std(y) == 0:
        return None
    together = float(np.corrcoef(x, y)[0, 1])
    return True if together < -max(0.1, 3 / n**0.5) else False if n >= 200 and together > -0.05 else None


def _like_later_rows(first: np.ndarray, episodes: list[LeakyEpisode], lag: int) -> bool:
    """Whether first rows, where nothing should be owed, are paid like later ones, which have repayments subtracted."""
    rows = np.concatenate([e.shaped[lag:-1] for e in episodes])
    if len(rows) < 50:
        return False
    spread = float(rows.std()) or TINY
    return abs(first.mean() - rows.mean()) < 0.3 * spread and first.std() > 0.85 * spread


def _repaid_after(episodes: list[LeakyEpisode]) -> int:
    """Return the lag of the most negative autocorrelation within episodes, the mark of repayments; 0 if none."""
    best, at = 0.0, 0
    for lag in range(1, 41):
        pairs = [(e.shaped[:-1][:-lag], e.shaped[:-1][lag:]) for e in episodes if len(e.shaped) > lag + 2]
        n = sum(len(x) for x, _ in pairs)
        if n >= 50:
            x, y = (np.concatenate(side) for side in zip(*pairs, strict=True))
            against = np.corrcoef(x, y)[0, 1] if x.std() > 0 and y.std() > 0 else 0.0
            if against < min(best, -max(0.1, 4 / n**0.5)):
                best, at = float(against), lag
    return at
