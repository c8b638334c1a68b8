"""Infer what a log does not state: the digits it keeps, γ, whether environments are interleaved, and the matching."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from payback.auditing.rows import Batch

SAMPLE, MOST_DECIMALS = 1000, 6  # values that are looked at; with more decimals they are printed float32, not rounded


class Resolution(NamedTuple):
    """The rounding error of one logged payment, relative · |F'| + absolute, and the decimals of a rounded log."""

    relative: float
    absolute: float = 0.0
    decimals: int | None = None


def resolution_of(values: np.ndarray) -> Resolution:
    """Return how exactly the values are held.

    float64 columns often hold less: float32 numbers, or text rounded to a few decimals. A rounded log cannot sum to
    zero more exactly than its digits allow.
    """
    if values.dtype.kind == "f" and values.dtype.itemsize < 4:
        return Resolution(4.88e-4)
    sample = values[values != 0][:SAMPLE] if len(values) < 10 * SAMPLE else values[: 10 * SAMPLE]
    sample = sample[sample != 0][:SAMPLE].astype(np.float64)
    decimals = _decimals(sample)
    if decimals is not None:
        return Resolution(5.96e-8, 0.5 * 10.0**-decimals, decimals)
    with np.errstate(over="ignore", under="ignore"):
        single = bool((sample.astype(np.float32) == sample).all())
    # float32 numbers are also what is printed with nine digits and read again.
    single = single or all(float(f"{x:.9g}") == x for x in sample[:100].tolist())
    return Resolution(5.96e-8 if values.dtype.itemsize == 4 or single else 1.11e-16)


def _decimals(sample: np.ndarray) -> int | None:
    """Return the 1 to 6 decimals that all values share, None if there are more, or too few distinct values to tell."""
    if len(sample) < 50 or len(np.unique(sample)) < 20:
        return None
    scaled = [sample * 10.0**decimals for decimals in range(MOST_DECIMALS + 1)]
    whole = [np.abs(x - np.rint(x)).max() <= 1e-6 for x in scaled]
    return whole.index(True) or None if True in whole else None


EXACT = 3e-6  # the relative residual below which a γ fits
LONGEST = 2000  # longer episodes are left out if there are shorter ones: they say less about γ and cost more


def estimate_gamma(head: Batch) -> float:
    """Return the γ at which the first episodes sum to zero; raise if there is none, or no F to go by."""
    if head.rewards is None and head.lent is None:
        raise ValueError("gamma is not given and cannot be estimated without F; pass gamma, or the rewards column")
    bounds, ids = [0, *(np.flatnonzero(head.ends)[:400] + 1).tolist()], head.ids
    episodes = [head.shaped[a:b].astype(np.float64) for a, b in pairwise(bounds) if ids[a] == ids[b - 1]][:100]
    several = [x for x in episodes if len(x) > 1 and np.any(x != 0)]
    gamma, residual = best_gamma(several) if several else (0.0, np.inf)
    if residual >= EXACT:
        raise ValueError("no γ makes this log's episodes sum to zero; pass the γ that the learner used")
    return gamma


def best_gamma(episodes: list[np.ndarray]) -> tuple[float, float]:
    """Return the γ in [0.3, 1] with the smallest median |Σ γ^t x_t| / Σ γ^t |x_t|, and that median."""
    short = [x for x in episodes if len(x) <= LONGEST] or [min(episodes, key=len)]
    ages = np.arange(max(map(len, short)), dtype=np.float64)
    table = np.array([np.pad(x, (0, len(ages) - len(x))) for x in short])
    sizes = np.abs(table)

    def residual(gamma: float) -> float:
        weights = gamma**ages
        return float(np.median(np.abs(table @ weights) / np.maximum(sizes @ weights, 1e-300)))

    grid = np.unique(np.concatenate((np.linspace(0.3, 0.9, 121), 1 - np.geomspace(0.1, 1e-5, 161), [1.0])))
    for _ in range(12):  # each finer grid is five times as dense
        best = int(np.argmin([residual(g) for g in grid]))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
        grid = np.linspace(low, high, 11)
    gamma = min((round(float(grid[5]), 6), float(grid[5])), key=residual)
    return gamma, residual(gamma)


def discounted(x: np.ndarray, gamma: float) -> float:
    """Return Σ γ^t x_t."""
    return float(np.float64(gamma) ** np.arange(len(x)) @ x)


MOST_ENVIRONMENTS, INTERLEAVED_ROWS, INTERLEAVED_EPISODES = 128, 50_000, 8
"""Environments that are tried, rows that are looked at, and episodes of each supposed environment."""


def refuse_interleaved(log: str, head: Batch, gamma: float, tolerance: float) -> None:
    """Raise if every B-th row belongs to one environment although no column says so: then most episodes cancel."""
    if len(np.unique(head.ids)) > 1 or head.ends.sum() < 4:
        return
    paid, ends = head.shaped[:INTERLEAVED_ROWS].astype(np.float64), head.ends[:INTERLEAVED_ROWS]
    for B in range(2, min(MOST_ENVIRONMENTS, len(paid) // 4) + 1):
        cancel: list[bool] = []
        for b in range(B):
            cancel += _cancel(paid[b::B], ends[b::B], gamma, tolerance)
            if len(cancel) >= 4 and np.mean(cancel) < 0.9:
                break
        if len(cancel) >= 4 and np.mean(cancel) >= 0.9:
            why = f"the rows are those of {B} environments in turn, because every {B}th row together sums to zero"
            raise ValueError(f"{log}: {why}, but no column says which; add one, or name it with --environment")


def _cancel(paid: np.ndarray, ends: np.ndarray, gamma: float, tolerance: float) -> list[bool]:
    """Return whether some finished episodes of several steps sum to zero."""
    stops = np.flatnonzero(ends)[: INTERLEAVED_EPISODES + 1] + 1
    parts = [paid[a:b] for a, b in pairwise([0, *stops.tolist()]) if b > a + 1]
    return [abs(discounted(x, gamma)) <= tolerance * discounted(np.abs(x), gamma) for x in parts if x.any()]


TAIL = 2048  # rows kept of a long episode; delays up to half of it are found
LAGS = 64  # ages at which repayments are fitted together
LATEST = 128  # rows before the last from which F̄ is read, because it moves in the course of training
FIT, NEAR, COARSE = 0.02, 1e-3, 0.1
"""How well a matching must fit, relative to the bonus; how close the settlement must then be, relative to the loans."""


class Span(NamedTuple):
    """Consecutive rows of one environment. The last one may settle a debt, so it is not fitted."""

    paid: np.ndarray
    bonus: np.ndarray  # F − F̄ if the log has it, else F
    before: np.ndarray | None = None  # the bonuses before the first row, None if unknown


class MatchingFit(NamedTuple):
    """How loans are repaid: γ⁻ᵏ m_k for k = 1, 2, …, the F̄ that is subtracted, and the mean absolute error."""

    repaid: np.ndarray
    mean: float
    error: float


def bonus_size(spans: list[Span]) -> float:
    """Return the mean |F|, beside which errors are small or large."""
    return float(np.mean([np.abs(span.bonus).mean() for span in spans]))


def one_delay(spans: list[Span], gamma: float) -> MatchingFit | None:
    """Return the best fit of a repayment at one age (`match_after`); F̄ is what is left over."""
    best, longest = (np.inf, 0, 0.0), max(len(span.paid) for span in spans)
    exact = 1e-6 * bonus_size(spans)
    for D in range(1, min(TAIL // 2, longest // 2 if len(spans) == 1 else longest - 1)):
        parts = [(F - paid)[D:-1] - gamma**-D * F[: -1 - D] for paid, F, _ in spans if len(paid) - 1 > D]
        constant, error = _left_over(parts)
        best = min(best, (error, D, constant))
        if error <= exact or error == np.inf:
            break
    error, delay, constant = best
    repaid = np.append(np.zeros(max(delay - 1, 0)), gamma**-delay)
    return None if error == np.inf else MatchingFit(repaid, _mean(constant, repaid), error)


def _left_over(parts: list[np.ndarray]) -> tuple[float, float]:
    """Return the constant that the repayments leave over and its mean error, infinite if there are too few rows."""
    over = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])
    if len(over) < 8:
        return 0.0, np.inf
    constant = float(np.median(over))
    return constant, float(np.abs(over - constant).mean())


def by_ages(spans: list[Span], gamma: float, centred: bool = False) -> MatchingFit | None:
    """Return the least-squares fit of the shares of ages 1 … 64, and F̄ unless `centred`; None if rows are too few."""
    columns, target = list[np.ndarray](), list[np.ndarray]()
    for paid, bonus, before in spans:
        line = bonus if before is None else np.concatenate((before[len(before) - LAGS :], bonus))
        if (before is not None and len(before) < LAGS) or len(line) <= LAGS + 1:
            continue
        columns.append(np.lib.stride_tricks.sliding_window_view(line[:-2], LAGS)[:, ::-1])
        target.append((bonus - paid)[len(bonus) - (len(line) - LAGS) : -1])
    unknown = any(span.before is None for span in spans)
    if sum(map(len, target)) < (4 if unknown else 2) * LAGS:
        return None
    lagged, wanted = np.concatenate(columns), np.concatenate(target)
    table = lagged if centred else np.column_stack((lagged, np.ones(len(lagged))))
    solved, _, rank, _ = np.linalg.lstsq(table, wanted, rcond=1e-6 if unknown else 1e-8)
    repaid = solved[:LAGS]
    shares = repaid * gamma ** np.arange(1.0, LAGS + 1)
    if unknown and (rank < LAGS or abs(shares.sum() - 1) > FIT):
        return None
    error = float(np.abs(table @ solved - wanted).mean())
    return MatchingFit(repaid, 0.0 if centred else _mean(float(solved[-1]), repaid), error)


def _mean(constant: float, repaid: np.ndarray) -> float:
    """Return F̄ from what the repayments leave over: F̄ · (1 − Σ γ⁻ᵏ m_k)."""
    rest = 1 - float(repaid.sum())
    return constant / rest if abs(rest) > 1e-6 * LAGS else 0.0


def measured(fit: MatchingFit, spans: list[Span]) -> MatchingFit:
    """Return the same repayments with F̄ and the error of other rows, an infinite one if these are too few."""
    K = len(fit.repaid)
    shares, parts = np.concatenate(([0.0], fit.repaid)), list[np.ndarray]()
    for paid, bonus, _ in spans:
        if len(paid) > K + 1:
            parts.append((bonus - paid - np.convolve(bonus, shares)[: len(paid)])[K:-1][-LATEST:])
    constant, error = _left_over(parts)
    return MatchingFit(fit.repaid, _mean(constant, fit.repaid), error)


def settles(span: Span, gamma: float, known: MatchingFit | None) -> tuple[bool | None, MatchingFit | None]:
    """Return whether the last of these rows settles the debt (None if that cannot be seen), and the fit.

    From the start, a debt that is left after N steps weighs γ^N, which rounding hides in a long episode. The last rows
    show it. The shares m_k that are repaid at age k are read off the steps before the last one,

        F_t − F'_t = Σ_{k≥1} γ⁻ᵏ m_k F_{t−k}                                                         (drawer)

    and with them the debt at the last step N−1, where policy invariance asks for

        F'_{N−1} = −Σ_{j≥1} γ⁻ʲ F_{N−1−j} (1 − Σ_{k<j} m_k)

    `known` is the fit of an earlier episode, tried first because one log has one matching.
    """
    if bonus_size([span]) == 0:
        return (None if span.paid.any() else True), known
    fit = fitted([span], gamma, known)
    return (None, known) if fit is None else (_last_settles(fit, span, gamma), fit)


def fitted(spans: list[Span], gamma: float, known: MatchingFit | None) -> MatchingFit | None:
    """Return the first that fits the rows: the known matching, one delay, shares of many ages; None if none does."""
    limit, longest = FIT * bonus_size(spans), max(len(span.paid) for span in spans)
    known = known if known is not None and longest >= 2 * len(known.repaid) + 8 else None
    for fit_to in (lambda: known, lambda: one_delay(spans, gamma), lambda: by_ages(spans, gamma)):
        fit = fit_to()
        if fit is not None and (fit := measured(fit, spans)).error <= limit:
            return fit
    return None


def _last_settles(fit: MatchingFit, span: Span, gamma: float) -> bool | None:
    K = min(len(fit.repaid), len(span.bonus) - 1)
    # γ⁻ʲ (1 − Σ_{k<j} m_k) as Σ_{k≥j} γ^(k−j) γ⁻ᵏ m_k, because the first form makes small errors of the shares large.
    left, total = np.empty(K), 0.0
    for k in range(K - 1, -1, -1):
        total = left[k] = fit.repaid[k] + gamma * total
    loans = left * (span.bonus[-2 : -2 - K : -1] - fit.mean)
    mean = float(np.abs(span.bonus).mean())
    size = float(np.abs(loans).sum()) + mean
    off = abs(span.paid[-1] + loans.sum()) / size
    # F̄ is known to about error / |1 − Σ γ⁻ᵏ m_k|, and stands in every loan.
    unsure = 0.3 * left.sum() * fit.error / max(abs(1 - fit.repaid.sum()), 1e-3) / size
    near = np.clip(20 * fit.error / mean, NEAR, COARSE) + unsure
    return True if off <= near else False if off > 3 * near else None
