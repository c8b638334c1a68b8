"""The causes of a leak, and how well each explains the episodes that leak.

A cause that can be undone is judged by how much of each leak is left without it; another by a sign that it leaves.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from payback.auditing.infer import (
    FIT,
    LAGS,
    MatchingFit,
    Span,
    best_gamma,
    bonus_size,
    by_ages,
    discounted,
    fitted,
)

TINY = 1e-300


class Cause(Enum):
    """Why an episode's shaped rewards do not cancel, as far as its numbers show it.

    >>> Cause.WRONG_GAMMA.value
    'wrong γ'
    >>> Cause.NEVER_REPAID.explanation
    'the bonus is paid as it is and nothing is repaid: is the shaping applied at all?'
    """

    NEVER_REPAID = "never repaid"
    WRONG_GAMMA = "wrong γ"
    CLIPPED = "clipped"
    CONSTANT_ADDED = "constant added"
    CONSTANT_FACTOR = "constant factor"
    AUTORESET_ROW = "autoreset row"
    LATE_RESET = "late reset"
    NEVER_RESET = "never reset"
    LAST_REWARD_KEPT = "last reward kept"
    UNPAID_END = "unpaid end"
    UNSETTLED_TRUNCATION = "unsettled truncation"
    CHANGED_AFTER_MATCHING = "changed after matching"
    ONE_STEP_EPISODE = "one-step episode"
    INVALID_ROW_PAID = "invalid row paid"
    UNKNOWN = "unknown"

    @property
    def explanation(self) -> str:
        """What happened, and what to look at."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Cause.NEVER_REPAID: "the bonus is paid as it is and nothing is repaid: is the shaping applied at all?",
    Cause.WRONG_GAMMA: "the episodes cancel at another γ: give the matching and the learner the same one",
    Cause.CLIPPED: "payments are cut off at a bound: clip the bonus before matching, never after",
    Cause.CONSTANT_ADDED: "the same amount is added to every step: add it to the environment's reward instead",
    Cause.CONSTANT_FACTOR: "every settlement is the same multiple of the debt",
    Cause.AUTORESET_ROW: "without its first row the episode cancels: mark autoreset rows as invalid",
    Cause.LATE_RESET: "the episodes cancel if each ends one row later: `done` must mark the episode's last step",
    Cause.NEVER_RESET: "loans of the previous episode are repaid in this one: the state must be reset at `done`",
    Cause.LAST_REWARD_KEPT: "the debt is settled, but the last step keeps its own bonus: repay it at once",
    Cause.UNPAID_END: "the last step does not settle the debt: `done` must reach the matching",
    Cause.UNSETTLED_TRUNCATION: "only episodes that are truncated, or follow one that is, leak: pass `terminated | "
    "truncated` as `done`; if the learner bootstraps there and the debt is carried, audit with on_truncation='carry'",
    Cause.CHANGED_AFTER_MATCHING: "payments were changed after matching, for example divided by a running scale",
    Cause.ONE_STEP_EPISODE: "its only bonus is lent and repaid at once, so 0 must be paid",
    Cause.INVALID_ROW_PAID: "rows that are marked as invalid are paid; they must be paid 0",
    Cause.UNKNOWN: "the numbers fit none of the causes that the auditor knows",
}


NONE = np.empty(0)
"""A column that the log does not have."""
FITTED_EPISODES = 60
"""Episodes to which a matching is fitted."""
SIGN = 0.05
"""The share of a leak that counts as left if a sign, not an amount, speaks for a cause."""
FEW = 3
"""Episodes to which a number can be fitted."""
FITTED = 0.4
"""What a fitted number costs: a hypothesis without one that explains as much is preferred."""
FEW_AT_BOUND = 3
"""Payments that must lie at a bound."""


class LeakyEpisode(NamedTuple):
    """One finished episode that leaks.

    `bonus` is F − F̄ if the log has it (`centred`), else F; empty if it has neither. `leak` is Σ γ^t F'_t. Of the rows
    around the episode: up to 64 before it, none if it is its environment's first, and one after it, NaN if it is last.
    """

    shaped: np.ndarray
    bonus: np.ndarray
    centred: bool
    leak: float
    paid_before: np.ndarray
    bonus_before: np.ndarray
    paid_after: float


class Hypothesis(NamedTuple):
    """A cause, and which share of each episode's leak is left without it."""

    cause: Cause
    left: np.ndarray
    numbers: str = ""
    step: int | None = None
    handicap: float = 0.0
    """Powers of ten subtracted from its score."""


class Evidence:
    """Leaking episodes of one environment, all longer than one step, and one number of each in an array.

    `known` is the matching, if long episodes have shown it already.
    """

    def __init__(self, episodes: list[LeakyEpisode], gamma: float, known: MatchingFit | None = None) -> None:
        self.episodes, self.gamma, self.known = episodes, gamma, known
        self.leaks = np.array([e.leak for e in episodes])
        self.lengths = np.array([len(e.shaped) for e in episodes])
        self.first, self.last = (np.array([e.shaped[k] for e in episodes]) for k in (0, -1))
        """What the first and the last step are paid."""
        self.follows = np.array([len(e.paid_before) > 0 for e in episodes])
        """Whether there is an episode before it."""
        with np.errstate(over="ignore"):
            self.missing = self.leaks * np.float64(gamma) ** (1 - self.lengths)
        """Σ γ^(t−N+1) F'_t: what the last step still had to repay."""
        sizes = np.array([discounted(np.abs(e.shaped), gamma) for e in episodes])
        self.relative = np.abs(self.leaks) / np.maximum(sizes, TINY)
        """|Σ γ^t F'_t| / Σ γ^t |F'_t|."""
        self.weights = np.minimum(self.relative / max(float(np.quantile(self.relative, 0.9)), TINY), 1.0) + 1e-9
        """How much each episode counts: those that leak far less than others may leak by noise alone."""

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
        several = self.episodes[:FITTED_EPISODES]
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


def from_payments(evidence: Evidence) -> list[Hypothesis]:
    """Test the causes that show in the payments alone."""
    tested = [_autoreset_row(evidence), _late_reset(evidence), *_clipped(evidence)]
    if len(evidence.episodes) >= FEW:
        tested += [_constant_added(evidence), _constant_factor(evidence), _wrong_gamma(evidence)]
    return tested


def from_bonus(evidence: Evidence) -> list[Hypothesis]:
    """Test the causes that show beside the bonus F."""
    return [test(evidence) for test in (_last_reward_kept, _never_repaid, _unpaid_end, _never_reset, _changed)]


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
        piled = exact >= FEW_AT_BOUND or at.sum() >= max(2 * FEW_AT_BOUND, 2 * beyond)
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
    """First rows, where nothing is owed, are paid a multiple of their bonus other than 1.

    Estimated from the differences between neighbouring episodes, because F̄ moves while it is learnt.
    """
    paid, bonus = np.diff(evidence.first), np.diff([e.bonus[0] for e in evidence.episodes])
    squares = float(bonus @ bonus)
    slope = float(paid @ bonus) / squares if len(paid) > 1 and squares > 1e-18 else 1.0
    rest = paid - slope * bonus
    unsure = float(rest @ rest / max(len(rest), 1)) ** 0.5 / max(squares, TINY) ** 0.5
    sign = abs(slope - 1) > max(0.02, 3 * unsure) and abs(slope) > 1e-3
    numbers = f"first steps are paid {slope:.3g} times their bonus"
    left = np.full(len(evidence.episodes), 2 * SIGN if sign else 1.0)
    return Hypothesis(Cause.CHANGED_AFTER_MATCHING, left, numbers, 0)
