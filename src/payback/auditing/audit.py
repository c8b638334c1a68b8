"""Auditing what a finished training run was paid: which episodes sum to zero, and where the others leak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.causes import fitting_gamma
from payback.auditing.episodes import Audit, Episodes, Leak, Scan, Wanted, grouping, run_starts
from payback.core.validate import read_gamma

__all__ = ["Audit", "Episodes", "Leak", "audit"]

TOLERANCE = 1e-5
"""|Σ γ^t F'_t| ≤ 1e-5 · Σ γ^t |F'_t|: what float32 can hold."""


def audit(
    shaped: Any,
    dones: Any,
    gamma: float | None = None,
    *,
    environments: Any = None,
    rewards: Any = None,
    valid: Any = None,
    tolerance: float = TOLERANCE,
    worst: int = 20,
) -> Audit:
    """Say which episodes of a log keep the law, and where and how the others break it.

        |Σ_t γ^t F'_t| ≤ tolerance · Σ_t γ^t |F'_t|                              in every finished episode

    `shaped` and `dones` are columns with `environments` naming each row's, or (T, B) blocks. Rows of an environment
    are in the order of time; they need not be next to each other. `rewards` is F: with it the causes are told
    better, and γ is found where it is not given. `valid` marks the rows that are transitions.

    >>> import numpy as np
    >>> found = audit([1.0, -2.0, 1.0, 1.0], [False, True, False, True], gamma=0.5)
    >>> found.ok, len(found.episodes.leak), found.leaks[0].episode, found.leaks[0].amount
    (False, 2, 1, 1.5)
    """
    rows = _columns(shaped, dones, environments, rewards, valid)
    notes: list[str] = []
    autoreset = _paid_autoreset_rows(rows.paid, rows.ids, rows.live)
    if rows.live is not None:
        live = rows.live
        rows = rows.each(lambda x: x[live])
    paid, ends, ids, F, _, runs = rows
    if gamma is None:
        gamma = estimate_gamma(paid, ends, ids, F)
        notes.append(f"γ was not given; the episodes sum to zero at γ = {gamma:.6g}")
    scan = Scan(read_gamma(gamma))
    runs = run_starts(ids) if runs is None else runs
    scan.feed(ids, paid, ends, runs)
    base = dict(zip(ids[runs].tolist(), runs.tolist(), strict=True))

    def fetch(wanted: list[Wanted]) -> list[tuple[np.ndarray, np.ndarray | None]]:
        spans = [slice(base[env] + first, base[env] + first + length) for env, first, length in wanted]
        return [(paid[r].astype(np.float64), None if F is None else F[r].astype(np.float64)) for r in spans]

    found = scan.judge(fetch, lambda: (float(paid.min()), float(paid.max())), tolerance, worst)
    found.leaks, found.notes = autoreset + found.leaks, notes
    return found


def estimate_gamma(paid: np.ndarray, ends: np.ndarray, ids: np.ndarray, F: np.ndarray | None) -> float:
    """Return the γ at which the log's episodes sum to zero; refuse where there is none, or F to go by."""
    if F is None:
        raise ValueError("gamma is not given, and cannot be told without F; give gamma, or the rewards column")
    last = np.flatnonzero(ends)[:400] + 1
    first = np.concatenate(([0], last[:-1]))
    episodes = [paid[a:b].astype(np.float64) for a, b in zip(first, last, strict=True) if ids[a] == ids[b - 1]]
    gamma = fitting_gamma(episodes[:100])
    if gamma is None:
        raise ValueError("no γ makes this log's episodes sum to zero; give the γ that the learner used")
    return gamma


def _paid_autoreset_rows(paid: np.ndarray, ids: np.ndarray, live: np.ndarray | None) -> list[Leak]:
    rows = np.flatnonzero(~live & (paid != 0)) if live is not None else np.empty(0, dtype=int)
    if not len(rows):
        return []
    k = int(rows[0])
    text = f"autoreset row: {len(rows)} rows that are no transition are paid, first row {k}"
    key = ids[k].item() if hasattr(ids[k], "item") else ids[k]
    return [Leak(key, -1, k, 1, float(paid[k]), 1.0, text)]


class _Rows(NamedTuple):
    """The columns of a log, grouped by environment."""

    paid: np.ndarray
    ends: np.ndarray
    ids: np.ndarray
    F: np.ndarray | None
    live: np.ndarray | None
    runs: np.ndarray | None = None
    """Rows at which another environment begins, where they are known."""

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> _Rows:
        """Return the log with every column changed alike."""
        F, live = (None if x is None else change(x) for x in (self.F, self.live))
        return _Rows(change(self.paid), change(self.ends), change(self.ids), F, live)


def _columns(shaped: Any, dones: Any, environments: Any, rewards: Any, valid: Any) -> _Rows:
    """Read the columns, and bring the rows of each environment together."""
    paid = np.asarray(shaped)
    names = {"dones": dones, "rewards": rewards, "valid": valid, "environments": environments}
    for name, column in names.items():
        if column is not None and np.shape(column) != paid.shape:
            raise ValueError(f"audit: {name} has shape {np.shape(column)}, shaped has {paid.shape}; they must agree")
    if paid.dtype.kind not in "fiu":
        raise ValueError(f"audit: shaped holds {paid.dtype}, not numbers; give the rewards the learner was paid")
    if paid.size == 0:
        raise ValueError("the log is empty: there is nothing to audit")
    ends = np.asarray(dones).astype(bool, copy=False)
    F, live = None if rewards is None else np.asarray(rewards), None if valid is None else np.asarray(valid, dtype=bool)
    ids = np.asarray(environments) if environments is not None else _own_ids(paid.shape)
    rows = _Rows(paid, ends, ids, F, live)
    if paid.ndim == 2:
        rows = rows.each(lambda x: x.T.reshape(-1))
    runs = run_starts(rows.ids)
    order = grouping(rows.ids, runs)
    return rows._replace(runs=runs) if order is None else rows.each(lambda x: x[order])


def _own_ids(shape: tuple[int, ...]) -> np.ndarray:
    """Number the environments: one for each column of a block, one for a single column."""
    return np.broadcast_to(np.arange(shape[1]) if len(shape) == 2 else 0, shape)
