"""Auditing a log on disk, batch by batch: a file may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.audit import TOLERANCE, estimate_gamma
from payback.auditing.episodes import Audit, Scan, Wanted, grouping
from payback.auditing.read import read_batches
from payback.core.validate import read_gamma


@dataclass(frozen=True)
class Columns:
    """What the columns of a log are called."""

    shaped: str = "shaped"
    """The reward the learner was paid, F'."""
    done: str = "done"
    """Whether this transition ended its episode; `terminated` and `truncated` together will do."""
    environment: str = "env"
    """Which environment the row is of; without it, the whole log is one."""
    reward: str = "reward"
    """The intrinsic reward F, if the log has it."""
    gamma: str = "gamma"
    """γ, if the log has it; the same in every row."""
    valid: str = "valid"
    """Whether the row is a transition (false on autoreset rows), if the log has it."""
    step: str = "step"
    """A clock that must rise within an episode, if the log has it."""


@dataclass
class Batch:
    """Some rows of a log, grouped by environment."""

    ids: np.ndarray
    shaped: np.ndarray
    ends: np.ndarray
    rewards: np.ndarray | None
    paid_autoreset: list[int]
    """Rows of the file that are no transition and were paid."""
    gamma: float | None


def audit_file(
    path: str | Path,
    gamma: float | None = None,
    columns: Columns = Columns(),  # noqa: B008
    tolerance: float = TOLERANCE,
    worst: int = 20,
) -> Audit:
    """Audit a Parquet, CSV or NPZ log, see `audit`. It is read twice if it leaks: once to find, once to look.

    >>> audit_file("no-such-log.csv")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    path = Path(path)
    notes: list[str] = []
    if gamma is None:
        gamma = _gamma_of(path, columns, notes)
    scan = Scan(read_gamma(gamma))
    low, high, autoreset = np.inf, -np.inf, []
    for batch in _batches(path, columns):
        scan.feed(batch.ids, batch.shaped, batch.ends)
        if len(batch.shaped):
            low, high = min(low, float(batch.shaped.min())), max(high, float(batch.shaped.max()))
        autoreset += batch.paid_autoreset[:1]
    found = scan.judge(lambda wanted: _fetch(path, columns, wanted), lambda: (low, high), tolerance, worst)
    found.notes = notes
    if autoreset:
        found.broken += 1
        found.notes.append(f"autoreset rows are paid although they are no transition, first in row {autoreset[0]}")
    return found


def _gamma_of(path: Path, columns: Columns, notes: list[str]) -> float:
    """Read γ from its column, or find the one that fits the first episodes."""
    first = next(_batches(path, columns), None)
    if first is None:
        raise ValueError(f"{path} is empty: there is nothing to audit")
    if first.gamma is not None:
        return first.gamma
    gamma = estimate_gamma(first.shaped, first.ends, first.ids, first.rewards)
    notes.append(f"γ was not given; the first episodes sum to zero at γ = {gamma:.6g}")
    return gamma


def episode_of(path: str | Path, columns: Columns, wanted: Wanted) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what was paid in one episode, and F where the log has it."""
    return _fetch(Path(path), columns, [wanted])[0]


def _fetch(path: Path, columns: Columns, wanted: list[Wanted]) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Read the log again for the rows of a few episodes."""
    parts: list[list[tuple[np.ndarray, np.ndarray | None]]] = [[] for _ in wanted]
    seen: dict[Any, int] = {}
    by_env: dict[Any, list[int]] = {}
    for k, (env, _, _) in enumerate(wanted):
        by_env.setdefault(env, []).append(k)
    for batch in _batches(path, columns) if wanted else ():
        runs = np.append(0, np.flatnonzero(batch.ids[1:] != batch.ids[:-1]) + 1)
        for start, stop in zip(runs, np.append(runs[1:], len(batch.ids)), strict=True):
            env = batch.ids[start].item() if hasattr(batch.ids[start], "item") else batch.ids[start]
            base = seen.get(env, 0)
            for k in by_env.get(env, ()):
                _, first, length = wanted[k]
                a, b = max(first - base, 0), min(first + length - base, stop - start)
                if a < b:
                    rows = slice(start + a, start + b)
                    parts[k].append((batch.shaped[rows], None if batch.rewards is None else batch.rewards[rows]))
            seen[env] = base + int(stop - start)
    return [_joined(pieces) for pieces in parts]


def _joined(pieces: list[tuple[np.ndarray, np.ndarray | None]]) -> tuple[np.ndarray, np.ndarray | None]:
    paid = np.concatenate([x for x, _ in pieces]).astype(np.float64)
    rewards = [f for _, f in pieces if f is not None]
    return paid, np.concatenate(rewards).astype(np.float64) if len(rewards) == len(pieces) else None


def _batches(path: Path, columns: Columns) -> Iterator[Batch]:
    last_step: dict[Any, float] = {}
    gamma: float | None = None
    for row, table in read_batches(path, vars(columns)):
        count = len(table["shaped"])
        ids = table.get("environment", np.zeros(count, dtype=np.int64))
        gamma = _same_gamma(path, row, table.get("gamma"), gamma)
        live = table["valid"].astype(bool) if "valid" in table else None
        rows = np.arange(count)
        paid_autoreset: list[int] = []
        if live is not None:
            paid_autoreset = (row + np.flatnonzero(~live & (table["shaped"] != 0))).tolist()
            rows, ids = rows[live], ids[live]
        order = grouping(ids)
        if order is not None:
            rows, ids = rows[order], ids[order]
        picked = {name: column[rows] for name, column in table.items()}
        ends = picked["done"].astype(bool, copy=False)
        if "step" in picked:
            _rising(path, row, rows, ids, ends, picked["step"], last_step)
        yield Batch(ids, picked["shaped"], ends, picked.get("reward"), paid_autoreset, gamma)


def _same_gamma(path: Path, row: int, column: np.ndarray | None, before: float | None) -> float | None:
    if column is None or not len(column):
        return before
    gamma = float(column[0]) if before is None else before
    other = np.flatnonzero(~np.isclose(column, gamma, rtol=1e-6, atol=0))
    if len(other):
        k = int(other[0])
        raise ValueError(
            f"{path}: γ is {gamma:.6g} at first and {column[k]:.6g} in row {row + k}; audit one γ at a time"
        )
    return gamma


def _rising(
    path: Path, row: int, rows: np.ndarray, ids: np.ndarray, ends: np.ndarray, step: np.ndarray, last: dict[Any, float]
) -> None:
    """Refuse steps that do not rise within an episode; `last` is where each environment's open episode stands."""
    if not len(ids):
        return
    runs = np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)
    before = np.append(-np.inf, step[:-1].astype(np.float64))
    before[1:][ends[:-1]] = -np.inf
    keys = [x.item() if hasattr(x, "item") else x for x in ids[runs]]
    before[runs] = [last.get(key, -np.inf) for key in keys]
    bad = np.flatnonzero(~(step > before))
    if len(bad):
        k = int(bad[0])
        raise ValueError(
            f"{path}: row {row + int(rows[k])} (environment {ids[k]}) has step {step[k]} after step {before[k]:g}; "
            "sort the log by time, and mark where episodes end"
        )
    stops = np.append(runs[1:], len(ids)) - 1
    last.update({key: -np.inf if ends[s] else float(step[s]) for key, s in zip(keys, stops, strict=True)})
