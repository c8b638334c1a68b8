"""The causes of a leak, and how well each explains the episodes that leak.

A cause that can be undone is judged by how much of each leak is left without it; another by a sign that it leaves.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from payback.auditing.infer import FIT, LAGS, MatchingFit, Span, best_gamma, bonus_size, by_ages, discounted, fitted

TINY = 1e-300


class Cause(Enum):
    """Why an episode's shaped rewards do not cancel, as far as its numbers show it.

    >>> Cause.WRONG_GAMMA.value
    'wrong γ'
    >>> Cause.NEVER_REPAID.explanation
    'the bonus is paid as it is and nothing is repaid: is the shaping applied at all?'
    """

    explanation: str  # what happened, and what to look at

    def __new__(cls, value: str, explanation: str) -> Cause:
        """Make a cause whose value is its name for users."""
        cause = object.__new__(cls)
        cause._value_, cause.explanation = value, explanation
        return cause

    NEVER_REPAID = "never repaid", "the bonus is paid as it is and nothing is repaid: is the shaping applied at all?"
    WRONG_GAMMA = "wrong γ", "the episodes cancel at another γ: give the matching and the learner the same one"
    CLIPPED = "clipped", "payments are cut off at a bound: clip the bonus before matching, never after"
    CONSTANT_ADDED = "constant added", "every step is paid the same amount more: add it to the environment's reward"
    CONSTANT_FACTOR = "constant factor", "every settlement is the same multiple of the debt"
    AUTORESET_ROW = "autoreset row", "without its first row the episode cancels: mark autoreset rows as invalid"
    LATE_RESET = "late reset", "the episodes cancel if each ends one row later: `done` must mark its last step"
    NEVER_RESET = "never reset", "loans of the previous episode are repaid in this one: reset the state at `done`"
    LAST_REWARD_KEPT = "last reward kept", "the debt is settled, but the last step keeps its bonus: repay it at once"
    UNPAID_END = "unpaid end", "the last step does not settle the debt: `done` must reach the matching"
    UNSETTLED_TRUNCATION = (
        "unsettled truncation",
        "only episodes that are truncated, or follow one that is, leak: pass `terminated | truncated` as `done`; if "
        "the learner bootstraps there and the debt is carried, audit with on_truncation='carry'",
    )
    CHANGED_AFTER_MATCHING = "changed after matching", "payments were changed, for example divided by a running scale"
    ONE_STEP_EPISODE = "one-step episode", "its only bonus is lent and repaid at once, so 0 must be paid"
    INVALID_ROW_PAID = "invalid row paid", "rows that are marked as invalid are paid; they must be paid 0"
    UNKNOWN = "unknown", "the numbers fit none of the causes that the auditor knows"


NONE = np.empty(0)  # a column that the log does not have
SIGN = 0.05  # the share of a leak that counts as left if a sign, not an amount, speaks for a cause
FITTED = 0.4  # what a fitted number costs: a hypothesis without one that explains as much is preferred
FEW, MANY = 3, 60
"""Episodes to which a number can be fitted, or payments that must lie at a bound; episodes that show the matching."""
DECLINED = 5  # age at which most of a loan is repaid that is repaid in many shares


class LeakyEpisode(NamedTuple):
    """One finished episode that leaks."""

    shaped: np.ndarray
    bonus: np.ndarray  # F − F̄ if the log has it (`centred`), else F; empty if it has neither
    centred: bool
    leak: float  # Σ γ^t F'_t
    paid_before: np.ndarray  # the rows before it, up to 64; none if it is its environment's first episode
    bonus_before: np.ndarray
    paid_after: float  # the row after it, NaN if there is none


class Hypothesis(NamedTuple):
    """A cause, which share of each episode's leak is left without it, and the step to look at; None for the last."""

    cause: Cause
    left: np.ndarray = NONE
    numbers: str = ""
    step: int | None = None
    handicap: float = 0.0  # powers of ten that are subtracted from its score

    @property
    def detail(self) -> str:
        """The cause's explanation and, in parentheses, the numbers of this log."""
        return f"{self.cause.explanation} ({self.numbers})" if self.numbers else self.cause.explanation


class Evidence:
    """Leaking episodes of one environment, all longer than one step, and one number of each in an array."""

    def __init__(self, episodes: list[LeakyEpisode], gamma: float, known: MatchingFit | None = None) -> None:
        self.episodes, self.gamma, self.known = episodes, gamma, known  # the matching, if long episodes have shown it
        self.leaks = np.array([e.leak for e in episodes])
        self.lengths = np.array([len(e.shaped) for e in episodes])
        self.first, self.last = (np.array([e.shaped[k] for e in episodes]) for k in (0, -1))
        self.follows = np.array([len(e.paid_before) > 0 for e in episodes])
        with np.errstate(over="ignore"):  # Σ γ^(t−N+1) F'_t, what the last step still had to repay
            self.missing = self.leaks * np.float64(gamma) ** (1 - self.lengths)
        sizes = np.array([discounted(np.abs(e.shaped), gamma) for e in episodes])
        self.relative = np.abs(self.leaks) / np.maximum(sizes, TINY)
        # Episodes that leak far less than others may leak by noise alone.
        self.weights = np.minimum(self.relative / max(float(np.quantile(self.relative, 0.9)), TINY), 1.0) + 1e-9

    def shares(self, left: np.ndarray) -> np.ndarray:
        """Return amounts that are left, valued at the episode's start, as shares of the leaks."""
        return np.abs(left) / np.maximum(np.abs(self.leaks), TINY)

    @cached_property
    def mean(self) -> float:
        """The F̄ that was subtracted: the first row of an episode is paid F − F̄, because nothing is owed."""
        if self.episodes[0].centred or not len(self.episodes[0].bonus):
            return 0.0
        off = np.array([e.bonus[0] - e.shaped[0] for e in self.episodes])
        center, size = float(np.median(off)), np.median([np.abs(e.bonus).mean() for e in self.episodes])
        spread = float(np.median(np.abs(off - center)))
        # With a mean, most first rows agree; otherwise something else is wrong with them.
        return center if abs(center) > 1e-3 * size and spread < 0.25 * abs(center) else 0.0

    @cached_property
    def matching(self) -> MatchingFit | None:
        """How loans are repaid, as the steps before the last show it; None if no matching fits."""
        if not all(len(e.bonus) for e in self.episodes):
            return None
        several = self.episodes[:MANY]
        plain = [Span(e.shaped, e.bonus) for e in several]
        fit = fitted(plain, self.gamma, self.known)
        if fit is not None:
            return fit
        # Either nothing is owed at the start of an episode, or the loans of the one before are.
        within = [Span(e.shaped, e.bonus - self.mean, np.zeros(LAGS)) for e in several]
        across = [Span(e.shaped, e.bonus, e.bonus_before) for e in several if len(e.bonus_before)]
        inner = by_ages(within, self.gamma, centred=True)
        fits = [inner and inner._replace(mean=self.mean), by_ages(across, self.gamma) if across else None]
        best = min((fit for fit in fits if fit is not None), key=lambda fit: fit.error, default=None)
        return best if best is not None and best.error <= FIT * bonus_size(plain) else None

    def predicted(self, e: LeakyEpisode, across: bool) -> np.ndarray | None:
        """Return what each step is paid if none settles; `across` also repays the loans of the previous episode."""
        if self.matching is None:
            return None
        before = e.bonus_before if across else NONE
        together = np.concatenate((before, e.bonus)) - self.matching.mean
        back = np.convolve(together, np.concatenate(([0.0], self.matching.repaid)))[: len(together)]
        return (together - back)[len(before) :]


def causes_of(evidence: Evidence) -> list[Hypothesis]:
    """Test the causes that show in the payments alone, and those that show beside the bonus F, or without it."""
    tested = [_autoreset_row(evidence), _late_reset(evidence), *_clipped(evidence)]
    if len(evidence.episodes) >= FEW:
        tested += [_constant_added(evidence), _constant_factor(evidence), _wrong_gamma(evidence)]
    if not len(evidence.episodes[0].bonus):
        return tested + _without_bonus(evidence)
    beside = (_last_reward_kept, _never_repaid, _unpaid_end, _never_reset, _changed)
    return tested + [test(evidence) for test in beside]


def _with_median(shares: np.ndarray) -> np.ndarray:
    """Replace unknown shares by the median of the known ones, by 1 if none is known."""
    known = np.isfinite(shares)
    return np.where(known, shares, np.median(shares[known]) if known.any() else 1.0)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def _autoreset_row(evidence: Evidence) -> Hypothesis:
    """The first row is the autoreset row of the previous episode, and is paid."""
    left = np.where(evidence.follows, evidence.leaks - evidence.first, np.inf)
    return Hypothesis(Cause.AUTORESET_ROW, evidence.shares(left), step=0)


def _late_reset(evidence: Evidence) -> Hypothesis:
    """Every episode ends one row later than the log says."""
    after = np.array([e.paid_after for e in evidence.episodes])
    left = evidence.leaks - np.where(evidence.follows, evidence.first, 0.0)
    left += np.float64(evidence.gamma) ** evidence.lengths * after
    return Hypothesis(Cause.LATE_RESET, _with_median(evidence.shares(left)), step=0)


def _constant_added(evidence: Evidence) -> Hypothesis:
    """One constant, fitted, makes all leaks vanish."""
    weights = np.array([discounted(np.ones(len(e.shaped)), evidence.gamma) for e in evidence.episodes])
    constant = _weighted_median(evidence.leaks / weights, evidence.weights)
    left, numbers = evidence.shares(evidence.leaks - constant * weights), f"{constant:.4g} at each of them"
    return Hypothesis(Cause.CONSTANT_ADDED, left, numbers, 0, FITTED)


def _constant_factor(evidence: Evidence) -> Hypothesis:
    """The last payment is one multiple, fitted, of the debt."""
    last, missing = evidence.last, evidence.missing
    owed = last - missing
    indebted = np.abs(owed) > 0
    factor = _weighted_median(last[indebted] / owed[indebted], evidence.weights[indebted]) if indebted.any() else 0.0
    if not np.isfinite(factor) or abs(factor) < 1e-2:
        return Hypothesis(Cause.CONSTANT_FACTOR, np.ones(len(last)))
    # Beside a large debt every small payment would seem to fit, so the smaller of the two is the measure.
    with np.errstate(over="ignore"):  # beside a last payment of 0 everything is too much
        left = np.abs(last - factor * owed) / np.maximum(np.minimum(np.abs(missing), np.abs(last)), TINY)
    return Hypothesis(Cause.CONSTANT_FACTOR, left, f"{factor:.4g} times", None, FITTED)


def _wrong_gamma(evidence: Evidence) -> Hypothesis:
    """At another γ, fitted, the episodes cancel."""
    several = [e.shaped for e in evidence.episodes]
    gamma, _ = best_gamma([x for x, w in zip(several, evidence.weights, strict=True) if w > 0.05][:60] or several)
    after = np.array([abs(discounted(x, gamma)) / max(discounted(np.abs(x), gamma), TINY) for x in several])
    numbers = f"γ = {gamma:.6g}, not {evidence.gamma:.6g}"
    return Hypothesis(Cause.WRONG_GAMMA, after / np.maximum(evidence.relative, TINY), numbers, None, FITTED)


def _clipped(evidence: Evidence) -> list[Hypothesis]:
    """Many payments lie at one bound that first rows, where nothing is owed, do not reach."""
    values = np.concatenate([e.shaped for e in evidence.episodes])
    touched, numbers = np.zeros(len(evidence.episodes), dtype=bool), list[str]()
    for bound in (float(values.min()), float(values.max())):
        if bound == 0:
            continue
        at, exact = _near(values, bound), int((values == bound).sum())
        beyond = int(((values / bound > 0.9) & ~at).sum())
        natural = _near(evidence.first, bound).mean() >= 0.5 * at.mean()
        piled = exact >= FEW or at.sum() >= max(2 * FEW, 2 * beyond)
        if piled and not natural and at.mean() < 0.9:
            touched |= np.array([_near(e.shaped, bound).any() for e in evidence.episodes])
            numbers.append(f"{at.sum():,} steps are paid {bound:.4g}")
    if np.average(touched, weights=evidence.weights) < 0.7:
        return []
    return [Hypothesis(Cause.CLIPPED, np.where(touched, 0.003, 1.0), ", ".join(numbers))]


def _near(values: np.ndarray, bound: float) -> np.ndarray:
    """Whether payments lie at a bound, a noise of half a per cent allowed for."""
    return np.abs(values / bound - 1) < 0.01


def _last_reward_kept(evidence: Evidence) -> Hypothesis:
    """What is missing is the last step's own bonus, centred or not."""
    kept, uncentred = (np.array([e.bonus[k] for e in evidence.episodes]) for k in (-1, 0))
    # F̄ moves while it is learnt; an episode's first step, where nothing is owed, is paid F − F̄ of its own time.
    own = 0.0 if evidence.episodes[0].centred else uncentred - evidence.first
    off = [np.abs(evidence.missing - kept + mean) for mean in (0.0, evidence.mean, own)]
    left = np.minimum.reduce(off) / np.maximum(np.abs(evidence.missing), TINY)
    return Hypothesis(Cause.LAST_REWARD_KEPT, left)


def _never_repaid(evidence: Evidence) -> Hypothesis:
    """Every step is paid its own bonus, up to a constant F̄."""

    def left(e: LeakyEpisode) -> float:
        off = e.shaped - e.bonus
        return float(np.abs(off - np.median(off)).mean() / max(np.abs(e.shaped).mean(), TINY))

    shares = np.array([left(e) for e in evidence.episodes])
    # Episodes shorter than the delay repay nothing before their end, so nearly all must agree with the bonus; then
    # their rows say more than one last row does.
    if np.average(shares < SIGN, weights=evidence.weights) < 0.9:
        return Hypothesis(Cause.NEVER_REPAID, np.ones(len(shares)))
    return Hypothesis(Cause.NEVER_REPAID, np.where(shares < SIGN, shares**2, 1.0), "", 0, -0.5)


def _unpaid_end(evidence: Evidence) -> Hypothesis:
    """The last step is paid its own bonus, or nothing, or what any other step would be paid."""
    # If all is repaid at age 1, any other step settles the debt and is paid its own bonus: `LAST_REWARD_KEPT`.
    fit = evidence.matching
    at_age_one = fit is not None and float(np.abs(fit.repaid[1:]).sum()) < 0.02 * abs(float(fit.repaid[0]))

    def left(e: LeakyEpisode, missing: float) -> float:
        bonus = e.bonus
        wanted = [0.0, float(bonus[-1] - evidence.mean), float(bonus[-1])]
        plain = evidence.predicted(e, across=False)
        if plain is not None and not at_age_one:
            wanted.append(float(plain[-1]))
        off = min(abs(float(e.shaped[-1]) - x) for x in wanted)
        # The first step, where nothing is owed, must be right; otherwise loans of the previous episode are repaid.
        size = float(np.abs(bonus).mean())
        start = abs(float(e.shaped[0] - bonus[0]) + evidence.mean)
        # Beside a large debt every small payment would seem to fit, so the bonus is the measure.
        return max(off / max(min(abs(missing), size), TINY), 0.1 * start / max(size, TINY))

    return Hypothesis(Cause.UNPAID_END, np.array([*map(left, evidence.episodes, evidence.missing)]))


def _never_reset(evidence: Evidence) -> Hypothesis:
    """Loans of the previous episode are repaid in this one, whether or not its end settles."""

    def left(e: LeakyEpisode) -> float:
        steady, plain = (evidence.predicted(e, across) for across in (True, False))
        if steady is None or plain is None or not len(e.bonus_before):
            return np.nan
        weights = np.float64(evidence.gamma) ** np.arange(len(e.shaped))
        stale = weights * (steady - plain)
        amounts = (weights @ (e.shaped - steady), e.leak - stale.sum(), e.leak - stale[:-1].sum())
        return float(np.abs(amounts).min() / max(abs(e.leak), TINY))

    return Hypothesis(Cause.NEVER_RESET, _with_median(np.array([left(e) for e in evidence.episodes])), step=0)


def _changed(evidence: Evidence) -> Hypothesis:
    """First rows, where nothing is owed, are paid a multiple of their bonus other than 1."""
    # Differences between neighbouring episodes leave out F̄, which moves while it is learnt.
    paid, bonus = np.diff(evidence.first), np.diff([e.bonus[0] for e in evidence.episodes])
    squares = float(bonus @ bonus)
    slope = float(paid @ bonus) / squares if len(paid) > 1 and squares > 1e-18 else 1.0
    rest = paid - slope * bonus
    unsure = float(rest @ rest / max(len(rest), 1)) ** 0.5 / max(squares, TINY) ** 0.5
    sign = abs(slope - 1) > max(0.02, 3 * unsure) and abs(slope) > 1e-3
    numbers = f"first steps are paid {slope:.3g} times their bonus"
    left = np.full(len(evidence.episodes), 2 * SIGN if sign else 1.0)
    return Hypothesis(Cause.CHANGED_AFTER_MATCHING, left, numbers, 0)


def _without_bonus(evidence: Evidence) -> list[Hypothesis]:
    """Distinguish causes without F: by what is missing at the last step, and how first rows differ from later ones."""
    episodes, first, last, missing = evidence.episodes, evidence.first, evidence.last, evidence.missing
    values = np.concatenate([e.shaped for e in episodes])
    inner = np.concatenate([e.shaped[1:-1] for e in episodes])
    kept = 0.6 < np.median(np.abs(missing)) / (np.median(np.abs(first)) or np.inf) < 1.5
    kept = kept and bool((first.min() < 0) | (np.mean(missing > 0) > 0.9))
    settles, follows = _settles(first, inner, last), _together(last, last - missing)
    unpaid = not kept and not settles and np.mean(np.abs(last) < 0.5 * np.abs(last - missing)) > 0.6
    lag = _repaid_after(episodes) if len(inner) >= 50 else 0
    repaid = bool(lag) or _declines(episodes)
    late = not (kept or unpaid or follows) and (repaid or settles)
    across = _repaid_across(episodes, lag) if lag else False
    # Repayments on the way leave few loans to the end: if more is missing there, something else is wrong.
    too_much = lag and np.median(np.abs(missing)) > 3 * (lag + 4) * float(np.quantile(np.abs(values), 0.99))
    signs = [
        (Cause.NEVER_REPAID, 0.005, (values >= 0).all() or (values <= 0).all()),
        (Cause.NEVER_REPAID, 0.02, not (repaid or follows or settles)),
        (Cause.LAST_REWARD_KEPT, SIGN, kept),
        (Cause.UNPAID_END, SIGN, unpaid),
        (Cause.CHANGED_AFTER_MATCHING if settles else Cause.UNPAID_END, 2 * SIGN, late),
        (Cause.CHANGED_AFTER_MATCHING, 0.04, too_much),
        (Cause.CHANGED_AFTER_MATCHING, 2 * SIGN, (np.abs(missing) < 0.2 * np.abs(last - missing)).mean() > 0.5),
        (Cause.NEVER_RESET, 0.02, across),
        (Cause.NEVER_RESET, 0.03, across is None and len(episodes) >= 15 and _like_later_rows(first, episodes, lag)),
    ]
    return [Hypothesis(cause, np.full(len(episodes), left)) for cause, left, sign in signs if sign]


def _settles(first: np.ndarray, inner: np.ndarray, last: np.ndarray) -> bool:
    """Whether last payments look like settlements of several loans: larger than a first row or those on the way."""
    if len(inner) < 50:
        return False
    sign, usual = float(np.sign(last).mean()), max(float(np.median(np.abs(rows))) for rows in (first, inner))
    # If nearly all have one sign, the loans have the other.
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
    # The last row of the episode before is left out, because it may be a settlement.
    long = [(e, min(lag, len(e.shaped)) - 1) for e in episodes if len(e.paid_before) >= lag]
    x = np.concatenate([NONE, *(e.paid_before[-lag:][:m] for e, m in long)])
    y = np.concatenate([NONE, *(e.shaped[:m] for e, m in long)])
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
