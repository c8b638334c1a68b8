"""What a cause is told from: broken episodes of one environment, and the matching that their rows show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from payback.auditing.fitting_gamma import discounted

LEAD = 64
"""Rows before an episode that are looked at: loans of the episode before."""
LAGS = 40
"""Ages at which repayments are looked for together; a single delay is looked for up to half an episode."""
FITTED = 60
"""Episodes that a matching is fitted to."""
FITS = 0.02
"""How well a matching must explain the steps before the last, relative to the bonus."""


@dataclass(frozen=True)
class Episode:
    """One finished episode that leaks."""

    shaped: np.ndarray
    """(N,) what was paid."""
    rewards: np.ndarray | None
    """(N,) the bonus F, where the log has it."""
    leak: float
    """Σ γ^t F'_t."""
    lent: np.ndarray | None = None
    """(N,) F − F̄, where the log has it."""
    paid_before: np.ndarray | None = None
    """Payments of up to 64 rows before the episode, None if it is its environment's first."""
    rewards_before: np.ndarray | None = None
    """The bonus of these rows: F − F̄ where the log has it, else F."""
    paid_after: float | None = None
    """The payment of the row after it."""

    @property
    def bonus(self) -> np.ndarray | None:
        """F − F̄ where the log has it, else F."""
        return self.rewards if self.lent is None else self.lent


class Matching(NamedTuple):
    """γ⁻ᵏ m_k for k = 1, 2, …, the mean F̄ that is taken off the bonus, and how far the rows are from both."""

    repaid: np.ndarray
    mean: float
    error: float


@dataclass(frozen=True)
class Evidence:
    """Broken episodes of one environment, all longer than one step."""

    episodes: list[Episode]
    gamma: float

    def missing(self, e: Episode) -> float:
        """Return Σ γ^(t−N+1) F'_t: what the last step still had to repay."""
        with np.errstate(over="ignore"):
            return float(e.leak * np.float64(self.gamma) ** (1 - len(e.shaped)))

    @cached_property
    def weights(self) -> np.ndarray:
        """How much each episode counts: those that leak far less than others may leak by noise alone."""
        relative = np.array(
            [abs(e.leak) / max(discounted(np.abs(e.shaped), self.gamma), 1e-300) for e in self.episodes]
        )
        return np.minimum(relative / max(float(np.quantile(relative, 0.9)), 1e-300), 1.0) + 1e-9

    @cached_property
    def mean(self) -> float:
        """Return the F̄ that was taken off the bonus: first rows of an episode are paid F − F̄, for nothing is owed."""
        if self.episodes[0].lent is not None or self.episodes[0].rewards is None:
            return 0.0
        off = np.array([e.rewards[0] - e.shaped[0] for e in self.episodes if e.rewards is not None])
        center = float(np.median(off))
        sizes = np.median([np.abs(e.rewards).mean() for e in self.episodes if e.rewards is not None])
        spread = float(np.median(np.abs(off - center)))
        # Of a mean, the first rows of most episodes tell the same; otherwise something else is wrong with them.
        return center if abs(center) > 1e-3 * sizes and spread < 0.25 * abs(center) else 0.0

    @cached_property
    def matching(self) -> Matching | None:
        """Return how loans are repaid, as the steps before the last show it; None where no matching fits."""
        if any(e.bonus is None for e in self.episodes):
            return None
        size = float(np.mean([np.abs(e.bonus).mean() for e in self.episodes if e.bonus is not None]))
        fits = [self._ages(across) for across in (False, True)]
        best = min((f for f in fits if f is not None), key=lambda f: f.error, default=None)
        if best is None or best.error > FITS * size:
            best = self._one_delay()
        return best if best is not None and best.error <= FITS * size else None

    def predicted(self, e: Episode, across: bool) -> np.ndarray | None:
        """Return what each step is paid if none settles; `across` repays the loans of the episode before as well."""
        if self.matching is None or e.bonus is None:
            return None
        bonus, before = e.bonus - self.matching.mean, np.empty(0)
        if across and e.rewards_before is not None:
            before = e.rewards_before - self.matching.mean
        together = np.concatenate((before, bonus))
        back = np.convolve(together, np.concatenate(([0.0], self.matching.repaid)))[: len(together)]
        return bonus - back[len(before) :]

    def _one_delay(self) -> Matching | None:
        longest = max(len(e.shaped) for e in self.episodes)
        best: Matching | None = None
        for D in range(LAGS + 1, max(LAGS + 2, longest - 1)):
            errors, rows = 0.0, 0
            for e in self.episodes[:FITTED]:
                assert e.bonus is not None
                if len(e.shaped) - 1 <= D:
                    continue
                over = (e.bonus - e.shaped - self.mean)[D:-1] - self.gamma**-D * (e.bonus[: -1 - D] - self.mean)
                errors, rows = errors + float(np.abs(over).sum()), rows + len(over)
            if rows >= 8 and (best is None or errors / rows < best.error):
                repaid = np.zeros(D)
                repaid[-1] = self.gamma**-D
                best = Matching(repaid, self.mean, errors / rows)
        return best

    def _ages(self, across: bool) -> Matching | None:
        """Return the least squares of all ages up to 40, over the steps before the last.

        `across` takes the rows before an episode in; then F̄ is found as well, as a constant.
        """
        lagged: list[np.ndarray] = []
        target: list[np.ndarray] = []
        mean = 0.0 if across else self.mean
        for e in self.episodes[:FITTED]:
            assert e.bonus is not None
            before = np.zeros(LAGS)
            if across:
                if e.rewards_before is None or len(e.rewards_before) < LAGS:
                    continue
                before = e.rewards_before[-LAGS:]
            line = np.concatenate((before, e.bonus - mean))
            n = len(e.shaped) - 1
            lagged.append(np.stack([line[LAGS - k : LAGS - k + n] for k in range(1, LAGS + 1)], axis=1))
            target.append((e.bonus - mean - e.shaped)[:-1])
        if sum(map(len, target)) < 2 * LAGS:
            return None
        columns, repaid = np.concatenate(lagged), np.concatenate(target)
        if across:
            columns = np.column_stack((columns, np.ones(len(columns))))
        found = np.linalg.lstsq(columns, repaid, rcond=1e-8)[0]
        error = float(np.abs(columns @ found - repaid).mean())
        rest = 1 - float(found[:LAGS].sum())
        if across and abs(rest) > 1e-6 * LAGS:
            mean = float(found[-1]) / rest
        return Matching(found[:LAGS], mean, error)
