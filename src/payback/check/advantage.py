"""What `payback.grm_adv` estimates, from its definition: slow loops to hold any implementation to."""

from __future__ import annotations

from typing import Any

import numpy as np


def advantage_by_loops(
    bonuses: Any,
    dones: Any,
    *,
    gamma: float,
    delay: int | None,
    lam: float,
    center: bool = True,
    earlier: Any = (),
    truncated: Any = None,
    on_truncation: str = "settle",
    valid: Any = None,
    values: Any = None,
    next_values: Any = None,
    gae_lambda: float = 0.95,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return A^I of a (T, B) rollout, and what the second critic is regressed on, in float64.

    `earlier`: the valid bonuses of earlier rollouts, for F̄. `next_values`: V of what followed each row, (T, B): the
    episode's own last observation where it ended. The rest is as in `AdvantageEstimator.estimate`.

    >>> advantage_by_loops([[1.0], [1.0]], [[False], [True]], gamma=0.9, delay=2, lam=0.5, center=False)[0][:, 0]
    array([0.5, 0. ])
    """
    F = np.asarray(bonuses, np.float64)
    none = np.zeros(F.shape, bool)
    cut = none if truncated is None else np.asarray(truncated, bool)
    ended, carried = np.asarray(dones, bool) | cut, cut if on_truncation == "carry" else none
    counts = ~none if valid is None else np.asarray(valid, bool)
    f, advantage = np.zeros(F.shape), np.zeros(F.shape)
    seen: list[float] = [float(x) for x in np.ravel(earlier)]
    for t in range(len(F)):
        mean = float(np.mean(seen)) if center and seen else 0.0
        for b in np.flatnonzero(counts[t]).tolist():
            share, rows = 1.0, _rows_of_episode(t, b, ended, counts)
            if delay is not None:
                in_sight = ended[rows[-1], b] and not carried[rows[-1], b]
                share -= lam ** (min(delay, len(rows) - 1) if in_sight else delay)
            f[t, b] = share * (F[t, b] - mean)
        seen += F[t, counts[t]].tolist()
    term, factor = f, gamma * lam
    if values is not None:
        after = np.where(ended & ~carried, 0.0, np.asarray(next_values, np.float64))
        term, factor = f + gamma * lam * after - np.asarray(values, np.float64), gamma * lam * gae_lambda
    for t, b in np.argwhere(counts).tolist():
        advantage[t, b] = sum(factor**k * term[n, b] for k, n in enumerate(_rows_of_episode(t, b, ended, counts)))
    return advantage, None if values is None else np.where(counts, advantage + np.asarray(values, np.float64), 0.0)


def _rows_of_episode(t: int, b: int, ended: np.ndarray, counts: np.ndarray) -> list[int]:
    """Return the valid rows from t to the episode's last, or the rollout's."""
    ends = np.flatnonzero(ended[t:, b] & counts[t:, b])
    last = t + int(ends[0]) if len(ends) else len(ended) - 1
    return [n for n in range(t, last + 1) if counts[n, b]]
