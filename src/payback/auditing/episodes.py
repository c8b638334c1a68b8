"""Finding the episodes of a log that leak: sums carried from batch to batch, and a look at the worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.causes import Episode, common_cause, likely_cause
from payback.auditing.scan import segment_sums


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
Bounds = Callable[[], tuple[float, float]]
"""The least and the most that was ever paid; asked for only where something leaks."""


class _Open(NamedTuple):
    """How far the scan has come in one environment."""

    rows: int = 0
    """Rows seen."""
    age: int = 0
    """Steps of the episode that is open, 0 if none is."""
    leak: float = 0.0
    size: float = 0.0


class Scan:
    """Running sums over a log that comes in batches, each grouped by environment and in the order of time."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.rows = 0
        self.open: dict[Any, _Open] = {}
        """environment → where it stands."""
        self.found: list[Episodes] = []

    def feed(self, ids: np.ndarray, values: np.ndarray, ends: np.ndarray, runs: np.ndarray | None = None) -> None:
        """Take in a batch of rows; `runs` are the rows at which another environment begins, if they are known."""
        n = len(values)
        if not n:
            return
        runs = run_starts(ids) if runs is None else runs
        starts = _merged(np.flatnonzero(ends[:-1]) + 1, runs)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            leak, size = segment_sums(values, starts, self.gamma)
        if not np.isfinite(leak).all():
            raise ValueError(_not_finite(ids, values, starts, leak))
        begins = np.searchsorted(starts, runs)
        stops = np.append(begins[1:], len(starts))
        keys = [_plain(x) for x in ids[runs]]
        before = [self.open.get(key, _Open()) for key in keys]
        first = starts + np.repeat(np.array([x.rows for x in before]) - runs, stops - begins)
        length = np.diff(starts, append=n)
        ending = ends[np.append(runs[1:], n) - 1]
        finished = []
        # Only a run's last episode can be open, and only its first can have been open before.
        for key, was, begin, stop, closed in zip(
            keys, before, begins.tolist(), stops.tolist(), ending.tolist(), strict=True
        ):
            weight, last = np.float64(self.gamma) ** was.age, stop - 1
            leak[begin], size[begin] = was.leak + weight * leak[begin], was.size + weight * size[begin]
            first[begin], length[begin] = first[begin] - was.age, length[begin] + was.age
            state = _Open() if closed else _Open(0, int(length[last]), float(leak[last]), float(size[last]))
            self.open[key] = state._replace(rows=int(first[last] + length[last]))
            finished.append(slice(begin, stop if closed else last))
        environment = np.repeat(ids[runs], [part.stop - part.start for part in finished])
        columns = (np.concatenate([x[part] for part in finished]) for x in (first, length, leak, size))
        self.found.append(Episodes(environment, *columns))
        self.rows += n

    def judge(self, fetch: Fetch, bounds: Bounds, tolerance: float, worst: int) -> Audit:
        """Say which of the finished episodes break the law, and look at the worst of them."""
        if not self.rows:
            raise ValueError("the log is empty: there is nothing to audit")
        several = len(self.found) > 1
        episodes = Episodes(*map(np.concatenate, zip(*self.found, strict=True))) if several else self.found[0]
        if not len(episodes.leak):
            raise ValueError(f"none of the log's {self.rows} rows ends an episode; is `done` the right column?")
        bad = np.flatnonzero(~(np.abs(episodes.leak) <= tolerance * episodes.size))
        relative = np.abs(episodes.leak[bad]) / np.maximum(episodes.size[bad], 1e-300)
        chosen = bad[np.lexsort((bad, -np.round(relative, 6)))][:worst]
        unfinished = sum(x.age > 0 for x in self.open.values())
        found = Audit(self.gamma, self.rows, episodes, len(bad), unfinished)
        if len(chosen):
            found.leaks = _leaks(episodes, chosen, self.gamma, fetch, bounds())
        return found


def _leaks(
    episodes: Episodes, chosen: np.ndarray, gamma: float, fetch: Fetch, bounds: tuple[float, float]
) -> list[Leak]:
    keys = [_plain(x) for x in episodes.environment[chosen]]
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


def _plain(key: Any) -> Any:
    """An environment's name as Python's own number or text."""
    return key.item() if hasattr(key, "item") else key


def _not_finite(ids: np.ndarray, values: np.ndarray, starts: np.ndarray, leak: np.ndarray) -> str:
    rows = np.flatnonzero(~np.isfinite(values))
    if len(rows):
        return f"row {rows[0]} (environment {ids[rows[0]]}) was paid {values[rows[0]]}; mend the log"
    row = starts[np.flatnonzero(~np.isfinite(leak))[0]]
    return f"the episode from row {row} (environment {ids[row]}) is paid so much that its sum overflows; mend the log"


def run_starts(ids: np.ndarray) -> np.ndarray:
    """Return the rows at which another environment begins, the first one included."""
    return np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)


def _merged(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return two sorted lists of rows as one, each row once."""
    at = np.searchsorted(many, few)
    there = np.append(many, -1)[at] == few
    return np.insert(many, at[~there], few[~there])


def grouping(ids: np.ndarray, runs: np.ndarray | None = None) -> np.ndarray | None:
    """Return the order that brings each environment's rows together, keeping time; None where they are already.

    `runs` as in `run_starts`, if they are known.
    """
    if not len(ids):
        return None
    keys = ids[run_starts(ids) if runs is None else runs]
    return None if len(np.unique(keys)) == len(keys) else np.argsort(ids, kind="stable")
