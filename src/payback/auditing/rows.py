"""Prepare the rows of a log: check them, leave invalid rows out, group environments, keep the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import plain

Table = dict[str, np.ndarray]
"""Columns by our names: shaped, done or both terminated and truncated, and if the log has them environment, reward,
lent, truncated, valid, step and gamma. All are one-dimensional and of one length."""
FLAGS = ("done", "terminated", "truncated", "valid")
HEAD = 100_000  # first rows, from which γ and the digits of a log are inferred


class Log(NamedTuple):
    """A log that can be read more than once: the one form in which arrays, files and folders are audited."""

    name: str  # for errors
    read: Callable[[], Iterator[tuple[int, Table]]]  # yields the number of the first row and the columns of each batch


class Batch(NamedTuple):
    """Some valid rows of a log, grouped by environment."""

    ids: np.ndarray
    shaped: np.ndarray
    ends: np.ndarray
    rewards: np.ndarray | None  # F
    lent: np.ndarray | None  # F − F̄
    truncated: np.ndarray | None
    gamma: float | None
    invalid_rows_paid: np.ndarray  # the numbers of these rows in the log
    row: int  # the number of the first row
    order: np.ndarray | None  # where each row was, counted from `row`; None if they are as they came

    @property
    def bonus(self) -> np.ndarray | None:
        """F − F̄ if the log has it, else F."""
        return self.rewards if self.lent is None else self.lent

    def row_of(self, k: Any) -> int:
        """Return the number, in the log, of row k of the batch."""
        return self.row + int(k if self.order is None else self.order[k])

    def place(self, k: Any) -> str:
        """Name row k of the batch in an error."""
        return f"row {self.row_of(k)} (environment {printable(self.ids[k])})"


def open_batches(log: Log) -> tuple[Batch, Iterator[Batch]]:
    """Return the first rows as one batch, which are the same however the log is cut, and all batches."""
    tables, first, count = log.read(), list[tuple[int, Table]](), 0
    while count < HEAD and (batch := next(tables, None)):
        first.append(batch)
        count += len(batch[1]["shaped"])
    if not count:
        raise ValueError(f"{log.name}: the log is empty, there is nothing to audit")
    head = {name: np.concatenate([table[name][:HEAD] for _, table in first])[:HEAD] for name in first[0][1]}
    return next(batches(log.name, [(0, head)])), batches(log.name, chain(first, tables))


def batches(name: str, tables: Iterable[tuple[int, Table]]) -> Iterator[Batch]:
    """Yield the valid rows, each batch grouped by environment; raise on what cannot be judged."""
    last_step: dict[Any, float] = {}
    gamma: float | None = None
    for row, table in tables:
        ids = table.get("environment", np.zeros(len(table["shaped"]), dtype=np.int8))
        flags = {flag: _flags(name, row, flag, table[flag]) for flag in FLAGS if flag in table}
        if "done" not in flags:
            flags["done"] = flags["terminated"] | flags["truncated"]
        gamma = _same_gamma(name, row, table.get("gamma"), gamma)
        valid, order, paid_invalid = flags.get("valid"), None, np.empty(0, dtype=np.int64)
        if valid is None or valid.all():
            order = grouping(ids)
        else:
            paid_invalid = np.flatnonzero(~valid & (table["shaped"] != 0) & np.isfinite(table["shaped"]))
            rows = np.flatnonzero(valid)
            within = grouping(ids[rows])
            order = rows if within is None else rows[within]
        picked = {**table, **flags, "environment": ids}
        if order is not None:
            picked = {column: values[order] for column, values in picked.items()}
        ids, shaped, ends = (picked[column] for column in ("environment", "shaped", "done"))
        rewards, lent, truncated = (picked.get(column) for column in ("reward", "lent", "truncated"))
        batch = Batch(ids, shaped, ends, rewards, lent, truncated, gamma, row + paid_invalid, row, order)
        for column in ("environment", "reward", "lent", "step"):
            _refuse_not_finite(name, batch, column, picked.get(column))
        if "step" in picked and len(ids):
            _refuse_unordered(name, batch, picked["step"], last_step)
        yield batch


def run_starts(ids: np.ndarray) -> np.ndarray:
    """Return the rows at which another environment begins, the first one included."""
    return np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1) if len(ids) else np.empty(0, dtype=np.int64)


def grouping(ids: np.ndarray) -> np.ndarray | None:
    """Return the order that brings each environment's rows together, keeping time; None if they are already."""
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
    """Refuse columns that differ in shape from `shaped`, or hold no numbers; ids of environments may be texts."""
    for name, (given, dtype) in columns.items():
        if given != shape:
            raise ValueError(f"{log}: {name} has shape {given}, shaped has {shape}; they must agree")
        if dtype.kind not in "fiub" and name not in ("environment", "environments"):
            raise ValueError(f"{log}: {name} holds {dtype}, not numbers")
    if len(shape) not in (1, 2):
        raise ValueError(f"{log}: shaped has shape {shape}; give (rows,) or (steps, environments)")


def printable(key: Any, most: int = 24) -> str:
    """Return a text for a terminal: control characters as escapes, so that they do nothing; long texts are cut."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(key)[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def _flags(log: str, row: int, name: str, column: np.ndarray) -> np.ndarray:
    """Return booleans; numbers other than 0 and 1 are refused."""
    if column.dtype == np.bool_:
        return column
    for k in np.flatnonzero((column != 0) & (column != 1))[:1]:
        raise ValueError(f"{log}: row {row + k} has {name} {column[k]}; a flag is true or false, 1 or 0")
    return column.astype(bool)


def _same_gamma(log: str, row: int, column: np.ndarray | None, before: float | None) -> float | None:
    if column is None or not len(column):
        return before
    gamma = float(column[0]) if before is None else before
    for k in np.flatnonzero(~np.isclose(column, gamma, rtol=1e-6, atol=0))[:1]:
        what = f"γ is {gamma:.6g} at first and {column[k]:.6g} in row {row + k}"
        raise ValueError(f"{log}: {what}; audit one γ at a time")
    return gamma


def _refuse_not_finite(log: str, batch: Batch, name: str, column: np.ndarray | None) -> None:
    if column is None or column.dtype.kind not in "fO":
        return
    # Among Python objects, which ids may be, NaN is what differs from itself.
    for k in np.flatnonzero(column != column if column.dtype.kind == "O" else ~np.isfinite(column))[:1]:
        raise ValueError(f"{log}: row {batch.row_of(k)} has {name} {column[k]}; fix the log, no row is skipped")


def _refuse_unordered(log: str, batch: Batch, step: np.ndarray, last: dict[Any, float]) -> None:
    """Refuse steps that do not rise within an episode; `last` holds the last step of each open episode."""
    ids, ends, runs = batch.ids, batch.ends, run_starts(batch.ids)
    before = np.append(-np.inf, step[:-1].astype(np.float64))
    before[1:][ends[:-1]] = -np.inf
    keys = [plain(x) for x in ids[runs]]
    before[runs] = [last.get(key, -np.inf) for key in keys]
    for k in np.flatnonzero(~(step > before))[:1]:
        what = f"has step {step[k]} after step {before[k]:g}; sort the log by time, and mark where episodes end"
        raise ValueError(f"{log}: {batch.place(k)} {what}")
    stops = np.append(runs[1:], len(ids)) - 1
    last.update({key: -np.inf if ends[s] else float(step[s]) for key, s in zip(keys, stops, strict=True)})


def not_finite(batch: Batch, starts: np.ndarray, leak: np.ndarray) -> str:
    """Name the row that was paid NaN or infinity, or the segment (they begin at `starts`) whose sum overflows."""
    for k in np.flatnonzero(~np.isfinite(batch.shaped))[:1]:
        return f"{batch.place(k)} was paid {batch.shaped[k]}; fix the log"
    k = starts[np.flatnonzero(~np.isfinite(leak))[0]]
    return f"the episode from {batch.place(k)} is paid so much that its sum overflows; fix the log"
