"""One whole episode under any matching, and the potential that is the same shaping seen from the other side."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from payback.core.conditions import Matching, check_end_blind, check_matrix, matrix_of
from payback.core.validate import read_gamma

Rewards = np.ndarray | Sequence[Any]


def match_episode(rewards: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Shape one episode's rewards by any matching: the definition that the streaming matches are held against.

        F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i)                                   (drawer)

    `matching` is an (N, N) array of m(t, i) or a function m(t, i, N). One that does not repay every loan
    exactly once, repays early, or depends on the coming end is refused, naming the row or column. With
    `fractions.Fraction` for γ or the rewards the arithmetic is exact.

    >>> match_episode([1.0, 3.0, 9.0], lambda t, i, N: float(t == min(i + 1, N - 1)), gamma=0.5)
    array([ 1.,  1., -6.])
    >>> match_episode([Fraction(1), Fraction(1)], [[0, 0], [1, 1]], Fraction(1, 3)).tolist()
    [Fraction(1, 1), Fraction(-3, 1)]
    """
    F, gamma = _read_episode("rewards", rewards, gamma)
    m = _read_matching(matching, F)
    return F - _repaid(F, m, gamma)


def potential_of(rewards: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Return the potential Φ_0 … Φ_N whose differences are the matched rewards, with Φ_N = 0.

        Φ_t = Σ_{j=t}^{N−1} Σ_{i≤j} γ^(i−t) F_i m(j,i) − Σ_{i=t}^{N−1} γ^(i−t) F_i      (pot_4_m_f, C = 0)
        γΦ_{t+1} − Φ_t = F'_t                                                          (PBGRM_theorem)

    Φ_t is the debt at step t. It is found from the end, Φ_t = γΦ_{t+1} − F'_t, where no power of γ grows.

    >>> potential_of([1.0, 3.0, 9.0], lambda t, i, N: float(t == N - 1), gamma=0.5)
    array([ 0.,  2., 10.,  0.])
    """
    F, gamma = _read_episode("rewards", rewards, gamma)
    shaped = match_episode(F, matching, gamma)
    potential = np.zeros(len(F) + 1, dtype=F.dtype)
    if F.dtype == object:
        potential[:] = Fraction(0)
    for t in reversed(range(len(F))):
        potential[t] = gamma * potential[t + 1] - shaped[t]
    return potential


def reward_of(potential: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Return rewards F that, matched, become the potential's own shaping γΦ_{t+1} − Φ_t.

        F_t = (γΦ_{t+1} − Φ_t + Σ_{i<t} γ^(i−t) F_i m(t,i)) / (1 − m(t,t))    t < N−1     (f_from_m_phi, proof1)
        F_{N−1} = 0                                                         it is free: lent and repaid at once

    Departs from the paper's print: γ^(i−t) F_i, and m(t,t) ≠ 1 for t < N−1 only, since Condition1 forces
    m(N−1,N−1) = 1. What is matched sums to zero over an episode, γΦ_{t+1} − Φ_t to γᴺΦ_N − Φ_0: where that
    constant is not 0 it is missing, and the error names it.

    >>> reward_of([0.0, 2.0, 10.0, 0.0], lambda t, i, N: float(t == N - 1), gamma=0.5)
    array([1., 3., 0.])
    """
    phi, gamma = _read_episode("potential", potential, gamma, least=2)
    N = len(phi) - 1
    m = _read_matching(matching, phi[:-1])
    missing = gamma**N * phi[N] - phi[0]
    # Rounding is judged against the largest of the terms that telescope, each valued at t = 0.
    scale = max(abs(gamma**t * phi[t]) for t in range(N + 1))
    if missing != 0 if phi.dtype == object else abs(missing) > 1e-9 * scale:
        raise ValueError(
            f"this potential's shaping is not that of any matched reward: γᴺΦ_N − Φ_0 = {missing} is paid over the "
            f"episode, where what is matched sums to 0; pay that constant at t = 0, or choose Φ_N = Φ_0/γᴺ"
        )
    target = gamma * phi[1:] - phi[:-1]
    F = np.zeros_like(target) if target.dtype != object else np.array([Fraction(0)] * N)
    for t in range(N - 1):
        if m[t, t] == 1:
            raise ValueError(
                f"m({t}, {t}) = 1 repays that loan at once, so no reward can pay Φ's step {t}; choose m(t, t) ≠ 1"
            )
        repaid = sum((gamma ** (i - t) * F[i] * m[t, i] for i in range(t) if m[t, i] != 0), start=target[t] * 0)
        F[t] = (target[t] + repaid) / (1 - m[t, t])
    return F


def _repaid(F: np.ndarray, m: np.ndarray, gamma: float | Fraction) -> np.ndarray:
    """Σ_{i≤t} γ^(i−t) F_i m(t,i) for every t."""
    N = len(F)
    if F.dtype == object:
        rows = [sum((gamma ** (i - t) * F[i] * m[t, i] for i in range(t + 1)), start=0 * F[0]) for t in range(N)]
        return np.array(rows, dtype=object)
    step = np.arange(N, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        interest = np.float64(gamma) ** (step[None, :] - step[:, None])
        repaid = np.where(m != 0, m * interest, 0.0) @ F
    if not np.isfinite(repaid).all():
        t = int(np.flatnonzero(~np.isfinite(repaid))[0])
        raise OverflowError(
            f"the repayment at step {t} overflows float64: the interest γ^(i−t) at γ = {gamma} is too large; "
            "repay sooner (a smaller delay), or use fractions.Fraction for γ"
        )
    return repaid


def _read_episode(name: str, values: Rewards, gamma: Any, least: int = 1) -> tuple[np.ndarray, Any]:
    """Return (values, γ): both exact if either holds a Fraction, else float64 and float."""
    read_gamma(gamma)
    plain: Any = np.asarray(values)
    if plain.ndim != 1 or len(plain) < least:
        raise ValueError(f"{name} must be one episode's numbers, shape (N,) with N ≥ {least}, got shape {plain.shape}")
    if isinstance(gamma, Fraction) or plain.dtype == object:
        exact = np.empty(len(plain), dtype=object)
        exact[:] = [Fraction(x) for x in plain.tolist()]
        return exact, gamma if isinstance(gamma, Fraction) else Fraction(float(gamma))
    numbers: Any = plain.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"{name}: step {bad[0]} is {numbers[bad[0]]}; fix it before it is shaped")
    return numbers, float(gamma)


def _read_matching(matching: Matching, F: np.ndarray) -> np.ndarray:
    """Return the matching's matrix, checked, exact where F is."""
    m = matrix_of(matching, len(F))
    check_matrix(m)
    if callable(matching):
        check_end_blind(m, matrix_of(matching, len(F) + 1))
    if F.dtype == object:
        return np.array([[Fraction(x) for x in row] for row in m.tolist()], dtype=object)
    return m.astype(np.float64)
