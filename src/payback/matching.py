"""Matchings as functions m(t, i, N) or matrices, and whether they keep the paper's two conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from payback.inputs import read_count

Matching = Callable[[int, int, int], Any] | np.ndarray
"""m(t, i, N), or the (N, N) array of m(t, i): the share of the loan of step i that is repaid at step t."""

TOLERANCE = 1e-9
"""How far a column of floats may miss 1. Fractions and integers must hit it."""

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 13, 21, 34)
"""Episode lengths over which a matching is looked at, short ones in full: the last step is where most slip."""


class LawBroken(AssertionError, ValueError):  # noqa: N818  the contract names it so
    """A matching, or rewards shaped by it, would change the optimal policy. The message shows where.

    >>> import payback
    >>> try:
    ...     payback.check_transform(payback.scale(1), gamma=0.9)
    ... except LawBroken as broken:
    ...     print(broken.law, broken.step, len(broken.rewards))
    zero sum 0 1
    """

    def __init__(
        self,
        message: str,
        *,
        law: str | None = None,
        rewards: np.ndarray | None = None,
        step: int | None = None,
        paid: float | None = None,
        owed: float | None = None,
    ) -> None:
        super().__init__(message)
        self.law = law
        """Which law: "zero sum", "causality", "the law", "invalid rows", "purity", "rollout", "precision" …"""
        self.rewards = rewards
        """The smallest counter-example found: (N,) rewards of one episode, or (T, B) of a stream."""
        self.step = step
        """The step at which the law is seen to be broken."""
        self.paid = paid
        """What was paid there."""
        self.owed = owed
        """What should have been paid there."""


def matrix_of(matching: Matching, N: int) -> np.ndarray:
    """Return the (N, N) matrix of a matching for an episode of N steps: floats, or objects where it is exact."""
    if callable(matching):
        rows = [[matching(t, i, N) for i in range(N)] for t in range(N)]
    else:
        rows = np.asarray(matching)
        if rows.shape != (N, N):
            raise ValueError(
                f"the matching has shape {rows.shape}, the episode {N} steps; "
                f"give an ({N}, {N}) array or a function m(t, i, N)"
            )
        rows = rows.tolist()
    exact = any(isinstance(m, Fraction) for row in rows for m in row)
    return np.array(rows, dtype=object if exact else np.float64).reshape(N, N)


def check_matching(matching: Matching, lengths: Iterable[int] = LENGTHS) -> None:
    """Raise `LawBroken` unless the matching repays each loan exactly once, never early, and blind to the end.

        Σ_{j≥i} m(j,i) = 1 for every i                                             (Condition1)
        m(t,i) = 0 for i > t                                                       (Condition2)
        m(t,i,N) = m(t,i,N') for t < min(N,N') − 1          missing from the paper: no peek at the coming end

    A bare matrix cannot be checked for the last: give a function of (t, i, N).

    >>> check_matching(lambda t, i, N: float(t == N - 1))
    >>> check_matching(lambda t, i, N: 1 / (N - i) if t >= i else 0.0)
    Traceback (most recent call last):
    payback.matching.LawBroken: the matching depends on the coming end: m(0, 0) is 0.5 in an episode of 2 steps ...
    """
    if not callable(matching):
        matrix = np.asarray(matching)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise ValueError(f"a matching as a matrix is (N, N) with N ≥ 1, got shape {matrix.shape}")
        check_matrix(matrix_of(matching, len(matrix)))
        return
    wanted = sorted({read_count("a length", N, least=1) for N in lengths})
    if not wanted:
        raise ValueError("check_matching was given no lengths, so nothing would be checked; give at least two")
    seen: dict[int, np.ndarray] = {}
    for N in wanted:
        seen[N] = matrix_of(matching, N)
        check_matrix(seen[N])
    for N, later in zip(list(seen)[:-1], list(seen)[1:], strict=True):
        check_end_blind(seen[N], seen[later])


def check_matrix(matrix: np.ndarray) -> None:
    """Raise `LawBroken` at the first row that repays early, or the first column that does not add up to 1."""
    N = len(matrix)
    for t in range(N):
        early = np.flatnonzero(matrix[t, t + 1 :] != 0)
        if early.size:
            i = t + 1 + int(early[0])
            raise LawBroken(
                f"the matching looks ahead (Condition2): row {t} repays {matrix[t, i]} of the loan of step {i}, "
                f"which is not lent yet, in an episode of {N} steps; m(t, i) must be 0 for i > t"
            )
    sums = matrix.sum(axis=0)
    for i in range(N):
        exact = isinstance(sums[i], (Fraction, int))
        if not (sums[i] == 1 if exact else abs(sums[i] - 1) <= TOLERANCE):
            raise LawBroken(
                f"the matching does not repay every loan exactly once (Condition1): column {i} adds up to {sums[i]}, "
                f"not 1, in an episode of {N} steps; what is left at the last step must be repaid there"
            )


def check_end_blind(short: np.ndarray, long: np.ndarray) -> None:
    """Raise `LawBroken` at the first entry that differs between two lengths before the shorter one's last step."""
    n = len(short) - 1
    differ = np.argwhere(short[:n, :n] != long[:n, :n])
    if len(differ):
        t, i = (int(x) for x in differ[0])
        raise LawBroken(
            f"the matching depends on the coming end: m({t}, {i}) is {short[t, i]} in an episode of {len(short)} steps "
            f"and {long[t, i]} in one of {len(long)}; before the last step it may not depend on N, "
            "or ending early would be rewarded"
        )
