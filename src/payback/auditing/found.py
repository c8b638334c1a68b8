"""What an audit returns: every finished episode's sum, the worst leaks, and how many of each cause."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.cause import Cause


class Episodes(NamedTuple):
    """Every finished episode of the log, one entry each."""

    environment: np.ndarray
    first: np.ndarray
    """Index of its first row among its environment's valid rows."""
    length: np.ndarray
    leak: np.ndarray
    """Σ γ^t F'_t: 0 where the law is kept."""
    size: np.ndarray
    """Σ γ^t |F'_t|."""
    verdict: np.ndarray
    """KEPT, BROKEN or UNJUDGED."""
    truncated: np.ndarray
    """Whether it ended by truncation, as far as the log says."""


KEPT, BROKEN, UNJUDGED = 0, 1, 2


@dataclass(frozen=True)
class Leak:
    """One episode that breaks the law."""

    environment: Any
    episode: int
    """Which of its environment's episodes, from 0; −1 for invalid rows."""
    step: int
    """The step to look at."""
    length: int
    amount: float
    """Σ γ^t F'_t: what the episode was paid too much."""
    relative: float
    """The same against Σ γ^t |F'_t|."""
    missing: float
    """Σ γ^(t−N+1) F'_t: what the last step still had to repay."""
    cause: Cause
    detail: str
    """The cause's sentence, with the numbers of this log."""
    first: int = 0
    """Index of the episode's first row among its environment's valid rows."""


@dataclass
class Audit:
    """What was found. `ok` is true only if every finished episode was judged and keeps the law.

    >>> import numpy as np, payback
    >>> found = payback.audit(np.array([1.0, 1.0, -2.0]), np.array([False, False, True]), gamma=1.0)
    >>> found.ok, found.unjudged, len(found.episodes.length)
    (True, 0, 1)
    """

    gamma: float
    rows: int
    episodes: Episodes
    unfinished: int
    """Environments whose last episode has no end in the log: not judged."""
    carried: int = 0
    """Truncated episodes whose debt is left to the learner's bootstrapped value (`on_truncation="carry"`)."""
    invalid_rows_paid: int = 0
    leaks: list[Leak] = field(default_factory=list[Leak])
    """The worst, worst first."""
    causes: Counter[Cause] = field(default_factory=lambda: Counter())
    """How many broken episodes look like each cause."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def broken(self) -> int:
        """How many finished episodes break the law."""
        return int((self.episodes.verdict == BROKEN).sum())

    @property
    def unjudged(self) -> int:
        """How many finished episodes are too long, for the digits of the log, to show whether their end settles."""
        return int((self.episodes.verdict == UNJUDGED).sum())

    @property
    def ok(self) -> bool:
        """Whether every finished episode was judged and keeps the law, and no invalid row was paid."""
        return not (self.broken or self.unjudged or self.invalid_rows_paid)
