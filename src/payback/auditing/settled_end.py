"""Does the last step of a long episode settle? Told from its last rows and the bonus F, however long it is.

From the start, a debt that is left after N steps weighs γ^N, which rounding hides in a long episode. The last rows show
it: the shares m_k that are repaid at age k are read off the steps before the last one,

    F_t − F'_t = Σ_{k≥1} γ⁻ᵏ m_k F_{t−k}                                                         (drawer)

and with them what is outstanding at the last step N−1, where the law asks for

    F'_{N−1} = −Σ_{j≥1} γ⁻ʲ F_{N−1−j} (1 − Σ_{k<j} m_k)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TAIL = 2048
"""Rows kept of each episode; delays up to half of it are found."""
LAGS = 64
"""Ages that a matching other than one delay is fitted with."""
LATEST = 128
"""Rows before the last from which F̄ is read."""
FIT, EXACT, COARSE = 0.02, 1e-3, 0.1
"""How well the shares must fit, beside the rewards; how near the settlement must then be, beside the loans."""


class Fit(NamedTuple):
    """Shares m_1 … m_K by age, the mean F̄ that was taken off the bonus, and how far the rows are from both."""

    shares: np.ndarray
    mean: float
    error: float


def settles(paid: np.ndarray, rewards: np.ndarray, gamma: float, known: Fit | None) -> tuple[bool | None, Fit | None]:
    """Return whether the last of these rows settles what is owed, None where that cannot be told, and the fit.

    `known` is the fit of an episode before, tried first because one log has one matching.
    """
    size = float(np.abs(rewards).mean())
    if size == 0 and not paid.any():
        return True, known
    if size == 0:
        return None, known
    for attempt in (lambda: _again(known, paid, rewards, gamma), lambda: _one_delay(paid, rewards, gamma),
                    lambda: _ages(paid, rewards, gamma)):  # fmt: skip
        fit = attempt()
        if fit is not None and fit.error <= FIT * size:
            return _last_settles(fit, paid, rewards, gamma), fit
    return None, known


def _last_settles(fit: Fit, paid: np.ndarray, rewards: np.ndarray, gamma: float) -> bool | None:
    K = min(len(fit.shares), len(rewards) - 1)
    ages = np.arange(1.0, K + 1)
    # γ⁻ʲ (1 − Σ_{k<j} m_k) as Σ_{k≥j} γ^(k−j) γ⁻ᵏ m_k, because the first form makes small errors of the shares large.
    repaid = fit.shares[:K] * gamma**-ages
    left = np.empty(K)
    total = 0.0
    for k in range(K - 1, -1, -1):
        total = left[k] = repaid[k] + gamma * total
    loans = left * (rewards[-2 : -2 - K : -1] - fit.mean)
    mean = float(np.abs(rewards).mean())
    size = float(np.abs(loans).sum()) + mean
    off = abs(paid[-1] + loans.sum()) / size
    # F̄ is known to about error / |1 − Σ γ⁻ᵏ m_k|, and stands in every loan.
    unsure = 0.3 * left.sum() * fit.error / max(abs(1 - repaid.sum()), 1e-3) / size
    near = np.clip(20 * fit.error / mean, EXACT, COARSE) + unsure
    return True if off <= near else False if off > 3 * near else None


def _again(known: Fit | None, paid: np.ndarray, rewards: np.ndarray, gamma: float) -> Fit | None:
    if known is None or len(paid) < 2 * len(known.shares) + 8:
        return None
    return _measured(known.shares, paid, rewards, gamma)


def _measured(shares: np.ndarray, paid: np.ndarray, rewards: np.ndarray, gamma: float) -> Fit:
    """Return the fit of given shares: F̄ from what is left over, the error from how much that varies."""
    K, n = len(shares), len(paid)
    weights = shares * gamma ** -np.arange(1.0, K + 1)
    back = np.convolve(rewards, np.concatenate(([0.0], weights)))[:n]
    over = (rewards - paid - back)[K : n - 1]
    # F̄ moves in the course of training, so that its latest value is what counts.
    constant = float(np.median(over[-LATEST:]))
    rest = 1 - float(weights.sum())
    return Fit(shares, constant / rest if abs(rest) > 1e-9 else 0.0, float(np.abs(over - constant)[-LATEST:].mean()))


def _one_delay(paid: np.ndarray, rewards: np.ndarray, gamma: float) -> Fit | None:
    """Return the best fit of all at one age (`match_after`)."""
    n, repaid = len(paid), rewards - paid
    best, delay = np.inf, 0
    for D in range(1, n // 2):
        over = repaid[D : n - 1] - gamma**-D * rewards[: n - 1 - D]
        error = float(np.abs(over - np.median(over)).mean())
        if error < best:
            best, delay = error, D
    if not delay:
        return None
    shares = np.zeros(delay)
    shares[-1] = 1
    return _measured(shares, paid, rewards, gamma)


def _ages(paid: np.ndarray, rewards: np.ndarray, gamma: float) -> Fit | None:
    """Return the shares of ages 1 … 64 by least squares, None where the rows do not determine them."""
    n = len(paid)
    if n < 4 * LAGS:
        return None
    lagged = np.stack([rewards[LAGS - k : n - 1 - k] for k in range(1, LAGS + 1)], axis=1)
    columns = np.column_stack((lagged, np.ones(len(lagged))))
    found, _, rank, _ = np.linalg.lstsq(columns, (rewards - paid)[LAGS : n - 1], rcond=1e-6)
    shares = found[:-1] * gamma ** np.arange(1.0, LAGS + 1)
    if rank < LAGS or abs(shares.sum() - 1) > FIT:
        return None
    return _measured(shares, paid, rewards, gamma)
