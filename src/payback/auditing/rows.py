"""The rows of a log, made ready to be summed: invalid rows taken out, environments brought together, time in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback.core.arrays import plain

Table = dict[str, np.ndarray]
"""Columns by our names: shaped, done or both terminated and truncated, and where the log has them environment, reward,
lent, truncated, valid, step and gamma. All are one-dimensional and of one length."""
FLAGS = ("done", "terminated", "truncated", "valid")


@dataclass(frozen=True)
class Log:
    """A log that can be read more than once: the one form in which arrays, files and folders are audited."""

    name: str
    """How errors call it."""
    read: Callable[[], Iterator[tuple[int, Table]]]
    """Yields the number of the first row and the columns, batch by batch."""


@dataclass
class Batch:
    """Some valid rows of a log, grouped by environment."""

    ids: np.ndarray
    shaped: np.ndarray
    ends: np.ndarray
    rewards: np.ndarray | None
    """The bonus before shaping, F."""
    lent: np.ndarray | None
    """What was lent of it, G = F − F̄."""
    truncated: np.ndarray | None
    gamma: float | None
    invalid_rows_paid: np.ndarray
    """Numbers, in the log, of invalid rows that were paid."""
    row: int
    """Number, in the log, of the first row."""
    order: np.ndarray | None
    """Where in the log each row stands, counted from `row`; None for as they come."""

    def row_of(self, k: Any) -> int:
        """Return the number, in the log, of row k of the batch."""
        return self.row + int(k if self.order is None else self.order[k])


def batches(log: Log) -> Iterator[Batch]:
    """Yield the valid rows of a log, each batch grouped by environment; raise on what cannot be judged."""
    last_step: dict[Any, float] = {}
    gamma: float | None = None
    for row, table in log.read():
        count = len(table["shaped"])
        ids = table.get("environment")
        ids = np.zeros(count, dtype=np.int8) if ids is None else ids
        flags = {name: _flags(log, row, name, table[name]) for name in FLAGS if name in table}
        if "done" not in flags:
            flags["done"] = flags["terminated"] | flags["truncated"]
        gamma = _same_gamma(log, row, table.get("gamma"), gamma)
        order, paid_invalid = _order(ids, flags.get("valid"), table["shaped"])
        picked = {**table, **flags, "environment": ids}
        if order is not None:
            picked = {name: column[order] for name, column in picked.items()}
        batch = Batch(
            picked["environment"],
            picked["shaped"],
            picked["done"],
            picked.get("reward"),
            picked.get("lent"),
            picked.get("truncated"),
            gamma,
            row + paid_invalid,
            row,
            order,
        )
        for name in ("environment", "reward", "lent"):
            _refuse_not_finite(log, batch, name, picked.get(name))
        if "step" in picked:
            _refuse_not_finite(log, batch, "step", picked["step"])
            _refuse_unordered(log, batch, picked["step"], last_step)
        yield batch


def _order(ids: np.ndarray, valid: np.ndarray | None, shaped: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Return which rows to take, in which order (None for all as they are), and the invalid rows that were paid."""
    if valid is None or valid.all():
        return grouping(ids), np.empty(0, dtype=np.int64)
    paid = np.flatnonzero(~valid & (shaped != 0) & np.isfinite(shaped))
    rows = np.flatnonzero(valid)
    order = grouping(ids[rows])
    return rows if order is None else rows[order], paid


def run_starts(ids: np.ndarray) -> np.ndarray:
    """Return the rows at which another environment begins, the first one included."""
    return np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1) if len(ids) else np.empty(0, dtype=np.int64)


def grouping(ids: np.ndarray) -> np.ndarray | None:
    """Return the order that brings each environment's rows together, keeping time; None where they are already."""
    if not len(ids):
        return None
    keys = ids[run_starts(ids)]
    if len(np.unique(keys)) == len(keys):
        return None
    # Most logs hold the environments in the same order at every step: then no sorting is needed.
    again = np.flatnonzero(ids[1:] == ids[0])
    B = int(again[0]) + 1 if len(again) else len(ids)
    if len(ids) % B == 0 and len(np.unique(ids[:B])) == B and (ids.reshape(-1, B) == ids[:B]).all():
        return np.arange(len(ids)).reshape(-1, B).T.reshape(-1)
    return np.argsort(ids, kind="stable")


def refuse_shapes(log: str, columns: dict[str, tuple[tuple[int, ...], np.dtype]], shape: tuple[int, ...]) -> None:
    """Refuse columns that have not the `shape` of `shaped`, or hold no numbers; ids of environments may be texts."""
    for name, (found, dtype) in columns.items():
        if found != shape:
            raise ValueError(f"{log}: {name} has shape {found}, shaped has {shape}; they must agree")
        if dtype.kind not in "fiub" and name not in ("environment", "environments"):
            raise ValueError(f"{log}: {name} holds {dtype}, not numbers")
    if len(shape) not in (1, 2):
        raise ValueError(f"{log}: shaped has shape {shape}; give (rows,) or (steps, environments)")


def _flags(log: Log, row: int, name: str, column: np.ndarray) -> np.ndarray:
    """Return booleans; numbers other than 0 and 1 are refused."""
    if column.dtype == np.bool_:
        return column
    wrong = np.flatnonzero((column != 0) & (column != 1))
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(f"{log.name}: row {row + k} has {name} {column[k]}; a flag is true or false, 1 or 0")
    return column.astype(bool)


def _same_gamma(log: Log, row: int, column: np.ndarray | None, before: float | None) -> float | None:
    if column is None or not len(column):
        return before
    gamma = float(column[0]) if before is None else before
    other = np.flatnonzero(~np.isclose(column, gamma, rtol=1e-6, atol=0))
    if len(other):
        k = int(other[0])
        raise ValueError(
            f"{log.name}: γ is {gamma:.6g} at first and {column[k]:.6g} in row {row + k}; audit one γ at a time"
        )
    return gamma


def _refuse_not_finite(log: Log, batch: Batch, name: str, column: np.ndarray | None) -> None:
    if column is None or column.dtype.kind not in "fO":
        return
    # Among Python objects, which ids may be, NaN is what is unequal to itself.
    wrong = np.flatnonzero(column != column if column.dtype.kind == "O" else ~np.isfinite(column))
    if not len(wrong):
        return
    k = int(wrong[0])
    raise ValueError(f"{log.name}: row {batch.row_of(k)} has {name} {column[k]}; fix the log, no row is skipped")


def _refuse_unordered(log: Log, batch: Batch, step: np.ndarray, last: dict[Any, float]) -> None:
    """Refuse steps that do not rise within an episode; `last` is where each environment's open episode stands."""
    ids, ends, runs = batch.ids, batch.ends, run_starts(batch.ids)
    if not len(ids):
        return
    before = np.append(-np.inf, step[:-1].astype(np.float64))
    before[1:][ends[:-1]] = -np.inf
    keys = [plain(x) for x in ids[runs]]
    before[runs] = [last.get(key, -np.inf) for key in keys]
    bad = np.flatnonzero(~(step > before))
    if len(bad):
        k = int(bad[0])
        raise ValueError(
            f"{log.name}: row {batch.row_of(k)} (environment {ids[k]}) has step {step[k]} after step {before[k]:g}; "
            "sort the log by time, and mark where episodes end"
        )
    stops = np.append(runs[1:], len(ids)) - 1
    last.update({key: -np.inf if ends[s] else float(step[s]) for key, s in zip(keys, stops, strict=True)})


def not_finite(batch: Batch, starts: np.ndarray, leak: np.ndarray) -> str:
    """Say which row was paid NaN or infinity, or which of the segments from `starts` on overflows."""
    rows = np.flatnonzero(~np.isfinite(batch.shaped))
    if len(rows):
        k = rows[0]
        return f"row {batch.row_of(k)} (environment {batch.ids[k]}) was paid {batch.shaped[k]}; fix the log"
    k = starts[np.flatnonzero(~np.isfinite(leak))[0]]
    return (
        f"the episode from row {batch.row_of(k)} (environment {batch.ids[k]}) is paid so much that its sum overflows; "
        "fix the log"
    )


def merged(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return two sorted lists of rows as one, each row once."""
    at = np.searchsorted(many, few)
    there = np.append(many, -1)[at] == few
    return np.insert(many, at[~there], few[~there])
