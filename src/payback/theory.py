"""The theory on one finished episode: any matching, its equivalent potential, and the conditions on both.

Tests compare the streaming code with these definitions; with `fractions.Fraction` they are exact. The second half has
potential-based shaping as its authors wrote it, on NumPy, Torch and JAX arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from payback.core.arrays import Array, namespace
from payback.core.errors import InvarianceError
from payback.core.validate import read_count, read_gamma

Rewards = np.ndarray | Sequence[Any]
Matching = Callable[[int, int, int], Any] | np.ndarray
"""m(t, i, N), or the (N, N) array of m(t, i): the share of the loan of step i that is repaid at step t."""
Episode = Sequence[Any]  # s_0, a_0, s_1, a_1, …, s_N in one flat sequence

TOLERANCE = 1e-9  # largest error of a column sum of floats; fractions and integers must add up to 1 exactly
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 13, 21, 34)  # most mistakes show at the last step of short episodes


def match_episode(rewards: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Shape one episode's rewards by any matching: the definition that the streaming matches are tested against.

        F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i)                                   (drawer)

    `matching`: an (N, N) array of m(t, i), or a function m(t, i, N). Raises `InvarianceError` as `check_matching` does.
    With `fractions.Fraction` for γ or the rewards the arithmetic is exact.

    >>> match_episode([1.0, 3.0, 9.0], lambda t, i, N: float(t == min(i + 1, N - 1)), gamma=0.5)
    array([ 1.,  1., -6.])
    >>> match_episode([Fraction(1), Fraction(1)], [[0, 0], [1, 1]], Fraction(1, 3)).tolist()
    [Fraction(1, 1), Fraction(-3, 1)]
    """
    F, gamma = _read_episode("rewards", rewards, gamma)
    return F - _repaid(F, _read_matching(matching, F), gamma)


def potential_of(rewards: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Return the potential Φ_0 … Φ_N whose differences are the matched rewards, with Φ_N = 0.

        Φ_t = Σ_{j=t}^{N−1} Σ_{i≤j} γ^(i−t) F_i m(j,i) − Σ_{i=t}^{N−1} γ^(i−t) F_i      (pot_4_m_f, C = 0)
        γΦ_{t+1} − Φ_t = F'_t                                                          (PBGRM_theorem)

    Φ_t is the debt at step t, computed from the end, Φ_t = γΦ_{t+1} − F'_t, so that no power of γ grows.

    >>> potential_of([1.0, 3.0, 9.0], lambda t, i, N: float(t == N - 1), gamma=0.5)
    array([ 0.,  2., 10.,  0.])
    """
    F, gamma = _read_episode("rewards", rewards, gamma)
    shaped = match_episode(F, matching, gamma)
    potential = np.zeros(len(F) + 1) if F.dtype != object else np.array([Fraction(0)] * (len(F) + 1))
    for t in reversed(range(len(F))):
        potential[t] = gamma * potential[t + 1] - shaped[t]
    return potential


def reward_of(potential: Rewards, matching: Matching, gamma: float | Fraction) -> np.ndarray:
    """Return rewards F that, matched, become the potential's own shaping γΦ_{t+1} − Φ_t.

        F_t = (γΦ_{t+1} − Φ_t + Σ_{i<t} γ^(i−t) F_i m(t,i)) / (1 − m(t,t))    t < N−1     (f_from_m_phi, proof1)
        F_{N−1} = 0                                                         any value would do: it is repaid at once

    Departs from the paper as printed: γ^(i−t) F_i, and m(t,t) ≠ 1 for t < N−1 only, since Condition1 forces
    m(N−1,N−1) = 1. Where γᴺΦ_N − Φ_0 is not 0, no rewards exist, because matched rewards sum to zero.

    >>> reward_of([0.0, 2.0, 10.0, 0.0], lambda t, i, N: float(t == N - 1), gamma=0.5)
    array([1., 3., 0.])
    """
    phi, gamma = _read_episode("potential", potential, gamma, least=2)
    N = len(phi) - 1
    m = _read_matching(matching, phi[:-1])
    missing = gamma**N * phi[N] - phi[0]
    # The tolerance is relative to the largest of the telescoping terms, each valued at t = 0.
    scale = max(abs(gamma**t * phi[t]) for t in range(N + 1))
    if missing != 0 if phi.dtype == object else abs(missing) > 1e-9 * scale:
        raise ValueError(
            f"no matched rewards have this potential: its shaping adds up to γᴺΦ_N − Φ_0 = {missing} over the episode, "
            f"and matched rewards to 0; pay that constant at t = 0, or choose Φ_N = Φ_0/γᴺ"
        )
    target = gamma * phi[1:] - phi[:-1]
    F = np.zeros_like(target) if target.dtype != object else np.array([Fraction(0)] * N)
    for t in range(N - 1):
        if m[t, t] == 1:
            raise ValueError(f"m({t}, {t}) = 1 repays that loan at once: no reward can pay Φ_{t}; choose m(t, t) ≠ 1")
        repaid = sum((gamma ** (i - t) * F[i] * m[t, i] for i in range(t) if m[t, i] != 0), start=target[t] * 0)
        F[t] = (target[t] + repaid) / (1 - m[t, t])
    return F


def check_matching(matching: Matching, lengths: Iterable[int] = LENGTHS) -> None:
    """Raise `InvarianceError` unless the matching repays each loan once, never early, whenever the episode ends.

        Σ_{j≥i} m(j,i) = 1 for every i                                             (Condition1)
        m(t,i) = 0 for i > t                                                       (Condition2)
        m(t,i,N) = m(t,i,N') for t < min(N,N') − 1               missing from the paper; not checked for a matrix

    >>> check_matching(lambda t, i, N: float(t == N - 1))
    >>> check_matching(lambda t, i, N: 1 / (N - i) if t >= i else 0.0)
    Traceback (most recent call last):
    payback.InvarianceError: the matching depends on the coming end: m(0, 0) is 0.5 in an episode of 2 steps ...
    """
    if not callable(matching):
        _check_matrix(_matrix_of(matching, len(np.atleast_1d(matching))))
        return
    wanted = sorted({read_count("a length", N, least=1) for N in lengths})
    if not wanted:
        raise ValueError("check_matching got no lengths to check; pass at least two")
    matrices = [_matrix_of(matching, N) for N in wanted]
    for matrix in matrices:
        _check_matrix(matrix)
    for shorter, longer in pairwise(matrices):
        _check_end_blind(shorter, longer)


def check_boundary(
    potential: Callable[[Episode, int], float], episodes: Iterable[Episode], gamma: float, *, tolerance: float = 1e-9
) -> None:
    """Raise `InvarianceError` if the shaping γΦ_{t+1} − Φ_t would favour one action over another.

        γ^(N−t) Φ_N − Φ_t = Φ'_t, constant with respect to a_t, for every t            (boundary_condition)

    `episodes` are flat: s_0, a_0, s_1, …, s_N; `payback.mdp.episodes` yields all of a small MDP's. `potential(episode,
    t)` is Φ_t, t = 0 … N, and may read the whole episode. Wherever two episodes have the same past up to s_t, the left
    side must be the same: on every trajectory, although the paper asks for it in expectation.

    >>> episodes = [("s", 0, "left"), ("s", 1, "right")]
    >>> check_boundary(lambda episode, t: 1.0 if t == 0 else 0.0, episodes, gamma=0.9)
    >>> check_boundary(lambda episode, t: float(episode[2 * t] == "left"), episodes, gamma=0.9)
    Traceback (most recent call last):
    payback.InvarianceError: boundary_condition: after ('s',), γ^(N−t)Φ_N − Φ_t is 0.9 if the episode goes on ...
    """
    gamma = read_gamma(gamma)
    seen: dict[tuple[Any, ...], tuple[float, Episode]] = {}
    flat = sorted((tuple(e) for e in episodes), key=len)
    if not flat:
        raise ValueError("check_boundary got no episodes to check")
    for episode in flat:
        if len(episode) % 2 == 0 or len(episode) < 3:
            raise ValueError(f"an episode is s_0, a_0, …, s_N: an odd number of at least 3 entries, got {len(episode)}")
        N = len(episode) // 2
        last = float(potential(episode, N))
        for t in range(N):
            phi = float(potential(episode, t))
            value = gamma ** (N - t) * last - phi
            if not math.isfinite(value):
                raise ValueError(f"the potential is not finite at step {t} of {_short(episode)}")
            past = episode[: 2 * t + 1]
            other, before = seen.setdefault(past, (value, episode))
            if abs(value - other) > tolerance * (1 + abs(last) + abs(phi) + abs(other)):
                text = (
                    f"boundary_condition: after {_short(past)}, γ^(N−t)Φ_N − Φ_t is {other:.6g} if the episode goes on "
                    f"as {_short(before[2 * t + 1 :])} and {value:.6g} if as {_short(episode[2 * t + 1 :])} (t = {t}); "
                    "set Φ = 0 after the last step, and let Φ_t depend on nothing but the past"
                )
                raise InvarianceError(text, violated="boundary_condition", step=t, paid=value, owed=other)


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
        exact = np.array([Fraction(x) for x in plain.tolist()], dtype=object)
        return exact, gamma if isinstance(gamma, Fraction) else Fraction(float(gamma))
    numbers: Any = plain.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"{name}: step {bad[0]} is {numbers[bad[0]]}; pass finite numbers")
    return numbers, float(gamma)


def _read_matching(matching: Matching, F: np.ndarray) -> np.ndarray:
    """Return the matching's matrix, checked, exact where F is."""
    m = _matrix_of(matching, len(F))
    _check_matrix(m)
    if callable(matching):
        _check_end_blind(m, _matrix_of(matching, len(F) + 1))
    if F.dtype == object:
        return np.array([[Fraction(x) for x in row] for row in m.tolist()], dtype=object)
    return m.astype(np.float64)


def _matrix_of(matching: Matching, N: int) -> np.ndarray:
    """Return the (N, N) matrix of a matching for an episode of N steps: floats, or objects where it is exact."""
    if callable(matching):
        rows = [[matching(t, i, N) for i in range(N)] for t in range(N)]
    elif (shape := np.shape(matching)) == (N, N):
        rows = np.asarray(matching).tolist()
    else:
        what = f"the matching has shape {shape}, the episode {N} steps"
        raise ValueError(f"{what}; pass an (N, N) array or a function m(t, i, N)")
    exact = any(isinstance(m, Fraction) for row in rows for m in row)
    return np.array(rows, dtype=object if exact else np.float64).reshape(N, N)


def _check_matrix(matrix: np.ndarray) -> None:
    """Raise `InvarianceError` at the first row that repays early, or the first column that does not add up to 1."""
    of = f"in an episode of {len(matrix)} steps"
    for t, i in np.argwhere(np.triu(matrix != 0, 1)).tolist():
        raise InvarianceError(
            f"the matching looks ahead (Condition2): row {t} repays {matrix[t, i]} of the loan of step {i}, "
            f"which is not lent yet, {of}; m(t, i) must be 0 for i > t"
        )
    for i, total in enumerate(matrix.sum(axis=0)):
        exact = isinstance(total, (Fraction, int))
        if not (total == 1 if exact else abs(total - 1) <= TOLERANCE):
            raise InvarianceError(
                f"the matching does not repay every loan exactly once (Condition1): column {i} adds up to {total}, "
                f"not 1, {of}; what is left at the last step must be repaid there"
            )


def _check_end_blind(short: np.ndarray, long: np.ndarray) -> None:
    """Raise `InvarianceError` at the first entry that differs before the shorter episode's last step."""
    n = len(short) - 1
    for t, i in np.argwhere(short[:n, :n] != long[:n, :n]).tolist():
        raise InvarianceError(
            f"the matching depends on the coming end: m({t}, {i}) is {short[t, i]} in an episode of {len(short)} steps "
            f"and {long[t, i]} in one of {len(long)}; before the last step it may not depend on N, "
            "or ending early would be rewarded"
        )


def _short(part: Sequence[Any]) -> str:
    shown = repr(tuple(part))
    return shown if len(shown) <= 100 else f"{shown[:60]} … {shown[-30:]}"


# Potentials as their authors wrote them, of arrays that the caller has looked up; `done` marks the last transition.


def shape_by_potential(phi: Array, phi_next: Array, gamma: float) -> Array:
    """Add the difference of a state's potential (Ng, Harada & Russell 1999).

        F = γΦ(s') − Φ(s)                                                        (Ng_potential)

    Not exact in episodes that may end in different states or at different times, because γᴺΦ(s_N) remains.

    >>> import numpy as np
    >>> shape_by_potential(np.array([1.0]), np.array([4.0]), 0.5)
    array([1.])
    """
    return gamma * phi_next - phi


def shape_episodic(phi: Array, phi_next: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential that is 0 after the last step (Grześ 2017).

        F = γΦ(s') − Φ(s),   Φ(s_N) = 0                                          (grzes_potential)

    Preserves the optimal policies if Φ is fixed before a_t. It may depend on time if each Φ is read at its own (Devlin
    & Kudenko 2012), on the belief (Eck et al. 2016), on the actions so far (Goyal et al. 2019). A Φ(s, a) that looks
    ahead must be added back where actions are chosen, argmax_a Q(s,a) + Φ(s,a) (Wiewiora, Cottrell & Elkan 2003).

    >>> import numpy as np
    >>> shape_episodic(np.array([1.0, 1.0]), np.array([4.0, 4.0]), np.array([False, True]), 0.5)
    array([ 1., -1.])
    """
    xp = namespace(phi, phi_next, done)
    return gamma * xp.where(done, 0.0, phi_next) - phi


def look_back(phi: Array, phi_before: Array, first: Array, gamma: float) -> Array:
    """Add the difference of a potential of state and action, looking back (Wiewiora, Cottrell & Elkan 2003).

        F = Φ(s_t, a_t) − γ⁻¹ Φ(s_{t−1}, a_{t−1})

    `first` marks an episode's first step. For on-policy learning. In episodes the last potential remains:
    `match_after(gamma, 1)` is this with Φ = F and a settlement at the end.

    >>> import numpy as np
    >>> look_back(np.array([1.0, 1.0]), np.array([9.0, 4.0]), np.array([True, False]), 0.5)
    array([ 1., -7.])
    """
    xp = namespace(phi, phi_before, first)
    return phi - xp.where(first, 0.0, phi_before) / gamma


def advise(phi: Array, phi_next: Array, advice: Array, done: Array, gamma: float, rate: float) -> Array:
    """Learn the potential whose differences are a given reward R† (Harutyunyan et al. 2015, DPBA): the new Φ(s, a).

        Φ(s,a) ← Φ(s,a) + β(−R† + γΦ(s',a') − Φ(s,a))                            (harutyanyun_potential)

    The shaping is then `shape_episodic` with Φ_t for (s, a) and the newer Φ_{t+1} for (s', a'). At Φ's fixed point it
    pays R† itself in expectation, so the optimal policies change as with the raw reward (Behboudian et al. 2022).

    >>> import numpy as np
    >>> advise(np.array([0.0]), np.array([2.0]), np.array([3.0]), np.array([False]), gamma=0.5, rate=0.1)
    array([-0.2])
    """
    xp = namespace(phi, phi_next, advice, done)
    return phi + rate * (-advice + gamma * xp.where(done, 0.0, phi_next) - phi)
