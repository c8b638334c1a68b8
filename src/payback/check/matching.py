"""`check_matching`: does a matching repay each loan exactly once, never early, and blind to the coming end?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from payback.core.conditions import Matching, check_end_blind, check_matrix, matrix_of
from payback.core.validate import read_count

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 13, 21, 34)
"""Episode lengths over which a matching is looked at, short ones in full: the last step is where most slip."""


def check_matching(matching: Matching, lengths: Iterable[int] = LENGTHS) -> None:
    """Raise `LawBroken` unless the matching repays each loan exactly once, never early, and blind to the end.

        Σ_{j≥i} m(j,i) = 1 for every i                                             (Condition1)
        m(t,i) = 0 for i > t                                                       (Condition2)
        m(t,i,N) = m(t,i,N') for t < min(N,N') − 1          missing from the paper: no peek at the coming end

    A bare matrix cannot be checked for the last: give a function of (t, i, N).

    >>> check_matching(lambda t, i, N: float(t == N - 1))
    >>> check_matching(lambda t, i, N: 1 / (N - i) if t >= i else 0.0)
    Traceback (most recent call last):
    payback.LawBroken: the matching depends on the coming end: m(0, 0) is 0.5 in an episode of 2 steps ...
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
    for shorter, longer in pairwise(seen.values()):
        check_end_blind(shorter, longer)
