"""Finding the episodes of a log that leak: sums carried from batch to batch, and a look at the worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from payback.audit_causes import Episode, common_cause, likely_cause
from payback.audit_scan import segment_sums


class Episodes(NamedTuple):
    """Every finished episode of the log, one entry each."""

    environment: np.ndarray
    first: np.ndarray
    """Index of its first row among its environment's rows."""
    length: np.ndarray
    leak: np.ndarray
    """Σ γ^t F'_t: 0 where the law is kept."""
    size: np.ndarray
    """Σ γ^t |F'_t|."""


@dataclass(frozen=True)
class Leak:
    """One episode that breaks the law."""

    environment: Any
    episode: int
    """Which of its environment's episodes, from 0."""
    step: int
    """The step to look at."""
    length: int
    amount: float
    """Σ γ^t F'_t: what the episode was paid too much."""
    relative: float
    """The same against Σ γ^t |F'_t|."""
    cause: str
    """What it looks like."""
    first: int = 0
    """Index of the episode's first row among its environment's rows."""


@dataclass
class Audit:
    """What was found. `ok` is true only if every finished episode keeps the law.

    >>> import numpy as np, payback
    >>> found = payback.audit(np.array([1.0, 1.0, -2.0]), np.array([False, False, True]), gamma=1.0)
    >>> found.ok, len(found.episodes.length)
    (True, 1)
    """

    gamma: float
    rows: int
    episodes: Episodes
    broken: int
    """How many episodes break the law."""
    unfinished: int
    """Environments whose last episode has no end in the log: not judged."""
    leaks: list[Leak] = field(default_factory=list)
    """The worst, worst first."""
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every finished episode keeps the law."""
        return self.broken == 0 and not any(leak.cause.startswith("autoreset") for leak in self.leaks)


Wanted = tuple[Any, int, int]
"""An episode by its environment, first row and length."""
Fetch = Callable[[list[Wanted]], list[tuple[np.ndarray, np.ndarray | None]]]
"""Episodes → what was paid in each, and F where the log has it."""


class Scan:
    """Running sums over a log that comes in batches, each grouped by environment and in the order of time."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.rows = 0
        self.open: dict[Any, tuple[int, int, float, float]] = {}
        """environment → rows seen, and age, leak and size of the episode that is open."""
        self.found: list[Episodes] = []

    def feed(self, ids: np.ndarray, values: np.ndarray, ends: np.ndarray, runs: np.ndarray | None = None) -> None:
        """Take in a batch of rows; `runs` are the rows at which another environment begins, if they are known."""
        n, gamma = len(values), self.gamma
        if not n:
            return
        runs = run_starts(ids) if runs is None else runs
        starts = _merged(np.flatnonzero(ends[:-1]) + 1, runs)
        leak, size = segment_sums(values, starts, gamma)
        if not np.isfinite(leak).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"row {row} (environment {ids[row]}) was paid {values[row]}; mend the log")
        stops = np.append(starts[1:], n)
        length, closed = stops - starts, ends[stops - 1]
        begins = np.searchsorted(starts, runs)
        first = starts - np.repeat(runs, np.diff(np.append(begins, len(starts))))
        lasts = np.append(begins[1:], len(starts)) - 1
        for run, (begin, last) in enumerate(zip(begins.tolist(), lasts.tolist(), strict=True)):
            key = ids[runs[run]].item() if hasattr(ids[runs[run]], "item") else ids[runs[run]]
            seen, age, old_leak, old_size = self.open.get(key, (0, 0, 0.0, 0.0))
            first[begin : last + 1] += seen
            weight = np.float64(gamma) ** age
            leak[begin], size[begin] = old_leak + weight * leak[begin], old_size + weight * size[begin]
            first[begin], length[begin] = first[begin] - age, length[begin] + age
            seen += int(stops[last] - starts[begin])
            if closed[last]:
                self.open[key] = (seen, 0, 0.0, 0.0)
            else:
                self.open[key] = (seen, int(length[last]), float(leak[last]), float(size[last]))
        self.found.append(Episodes(ids[starts[closed]], *(x[closed] for x in (first, length, leak, size))))
        self.rows += n

    def judge(self, fetch: Fetch, bounds: tuple[float, float], tolerance: float, worst: int) -> Audit:
        """Say which of the finished episodes break the law, and look at the worst of them."""
        if not self.rows:
            raise ValueError("the log is empty: there is nothing to audit")
        episodes = Episodes(*(np.concatenate(x) for x in zip(*self.found, strict=True)))
        if not len(episodes.leak):
            raise ValueError(f"none of the log's {self.rows} rows ends an episode; is `done` the right column?")
        bad = np.flatnonzero(~(np.abs(episodes.leak) <= tolerance * episodes.size))
        relative = np.abs(episodes.leak[bad]) / np.maximum(episodes.size[bad], 1e-300)
        chosen = bad[np.lexsort((bad, -np.round(relative, 6)))][:worst]
        unfinished = sum(1 for _, age, _, _ in self.open.values() if age)
        found = Audit(self.gamma, self.rows, episodes, len(bad), unfinished)
        found.leaks = _leaks(episodes, chosen, self.gamma, fetch, bounds)
        return found


def _leaks(
    episodes: Episodes, chosen: np.ndarray, gamma: float, fetch: Fetch, bounds: tuple[float, float]
) -> list[Leak]:
    keys = [x.item() if hasattr(x, "item") else x for x in episodes.environment[chosen]]
    wanted = [(key, int(episodes.first[k]), int(episodes.length[k])) for key, k in zip(keys, chosen, strict=True)]
    looked = []
    for k, (key, first, _), (x, f) in zip(chosen.tolist(), wanted, fetch(wanted), strict=True):
        mine = np.flatnonzero(episodes.environment == episodes.environment[k])
        before = mine[episodes.first[mine] + episodes.length[mine] == first]
        leak_before = float(episodes.leak[before[0]]) if len(before) else None
        length_before = int(episodes.length[before[0]]) if len(before) else 0
        number = int((episodes.first[mine] < first).sum())
        looked.append((k, key, number, Episode(x, f, float(episodes.leak[k]), leak_before, length_before)))
    common = common_cause([e for *_, e in looked], gamma)
    leaks = []
    for k, key, number, e in looked:
        cause, step = (common, len(e.shaped) - 1) if common else likely_cause(e, gamma, *bounds)
        relative = e.leak / max(float(episodes.size[k]), 1e-300)
        leaks.append(Leak(key, number, step, len(e.shaped), e.leak, relative, cause, int(episodes.first[k])))
    return leaks


def run_starts(ids: np.ndarray) -> np.ndarray:
    """Return the rows at which another environment begins, the first one included."""
    return np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)


def _merged(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return two sorted lists of rows as one, each row once."""
    at = np.searchsorted(many, few)
    there = np.append(many, -1)[at] == few
    return np.insert(many, at[~there], few[~there])


def grouping(ids: np.ndarray) -> np.ndarray | None:
    """Return the order that brings each environment's rows together, keeping time; None where they are already."""
    if not len(ids):
        return None
    runs = ids[run_starts(ids)]
    return None if len(np.unique(runs)) == len(runs) else np.argsort(ids, kind="stable")
