"""The conditions on a matching m(t, i, N): each loan is repaid once, never early, and blind to the coming end."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from payback.core.errors import LawBroken

Matching = Callable[[int, int, int], Any] | np.ndarray
"""m(t, i, N), or the (N, N) array of m(t, i): the share of the loan of step i that is repaid at step t."""

TOLERANCE = 1e-9
"""How far a column of floats may miss 1. Fractions and integers must hit it."""


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
