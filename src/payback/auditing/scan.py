"""Sum every episode of a log that comes in batches, and judge each when it ends."""

from __future__ import annotations

import math
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.infer import TAIL, MatchingFit, Resolution, Span, settles
from payback.auditing.rows import Batch, not_finite, run_starts
from payback.core.arrays import plain

CANCELS, LEAKS, UNJUDGED = 0, 1, 2  # verdicts


class EpisodeTable(NamedTuple):
    """Every finished episode of the log, one entry each."""

    environment: np.ndarray
    first: np.ndarray  # index of its first row among its environment's valid rows
    length: np.ndarray
    leak: np.ndarray  # Σ γ^t F'_t: 0 if the shaped rewards cancel
    size: np.ndarray  # Σ γ^t |F'_t|
    verdict: np.ndarray  # CANCELS, LEAKS or UNJUDGED
    truncated: np.ndarray  # whether it ended by truncation, as far as the log says

    @property
    def relative(self) -> np.ndarray:
        """|leak| / size."""
        return np.abs(self.leak) / np.maximum(self.size, 1e-300)


BLOCK = 16  # rows between two looks at the debt of a long episode: an estimate of a rounding error needs no more
ROUNDINGS = 3.0  # a leak within so many rounding errors of the single payments is taken for one
TRIES = 20  # long episodes after which the search for a matching stops, if none was found
VISIBLE = 0.25  # a missing settlement is visible if it is this large relative to the payments of the steps before
CHUNK = 1 << 14  # rows summed at a time: few enough to stay in the cache in float64
LEAST = 1e-100  # the smallest weight in a block: products with any float32, and any sane float64, keep all their digits


class _Open(NamedTuple):
    """How far the scan has come in one environment: the rows seen, and of its open episode, if it has one, the sums."""

    rows: int = 0
    age: int = 0
    leak: float = 0.0
    size: float = 0.0
    debts: float = 0.0  # Σ_t |Σ_{n≤t} γ^n F'_n|: the debts that a matching has held
    squares: float = 0.0  # Σ_t (γ^t F'_t)² + (Σ_{n≤t} γ^n F'_n)²: the payments, and the debts, rounded at every step
    recent: float = 0.0  # Σ_t γ^(now−t) |F'_t|: the payments, the latest counting most
    tail: Span | None = None  # the last payments and bonuses, if the log has the bonus


class Scan:
    """Running sums over batches of rows; each batch is grouped by environment, in the order of time.

    An episode is judged from its start: |Σ γ^t F'_t| ≤ tolerance · Σ γ^t |F'_t|. A long one is also judged from its
    end, because there γ^N hides what is never repaid: a leak that is visible beside the last payments must not exceed
    the rounding error. If rounding itself is that large, the last rows are compared with F (`settles`); without F the
    episode is unjudged.
    """

    def __init__(self, gamma: float, tolerance: float, resolution: Resolution, carry: bool = False) -> None:
        self.gamma, self.resolution = gamma, resolution
        self.tolerance, self.looser = max(tolerance, 8 * resolution.relative), max(1.0, tolerance / 1e-5)
        # Truncated episodes that leave their debt to the learner's bootstrapped value are counted, not judged.
        self.carry, self.carried = carry, 0
        self.rows, self.invalid_rows_paid, self.first_invalid = 0, 0, -1
        self.open: dict[Any, _Open] = {}
        self.finished: list[EpisodeTable] = []
        self.fit: MatchingFit | None = None
        self.tries = 0
        self.long = _long(gamma, self.tolerance)
        # How many rows back a payment still counts among the latest.
        self.reach = TAIL if gamma == 1 else int(min(1 << 16, 8 / (1 - gamma) + 1))
        self.powers = np.empty(0)

    def feed(self, batch: Batch) -> None:
        """Take in some rows."""
        n = len(batch.shaped)
        if len(batch.invalid_rows_paid) and not self.invalid_rows_paid:
            self.first_invalid = int(batch.invalid_rows_paid[0])
        self.invalid_rows_paid += len(batch.invalid_rows_paid)
        if not n:
            return
        runs, begins = run_starts(batch.ids), np.append(True, batch.ends[:-1])
        begins[runs] = True
        starts = np.flatnonzero(begins)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            leak, size = segment_sums(batch.shaped, starts, self.gamma)
        if not np.isfinite(leak).all():
            raise ValueError(not_finite(batch, starts, leak))
        length = np.diff(starts, append=n)
        verdict = np.where(np.abs(leak) <= self._allowed(size, length), CANCELS, LEAKS).astype(np.int8)
        last = np.append(starts[1:], n) - 1
        truncated = np.zeros(len(starts), dtype=bool) if batch.truncated is None else batch.truncated[last]
        # Whole episodes, and parts of those that reach into other batches.
        segments = EpisodeTable(batch.ids[starts], starts.copy(), length, leak, size, verdict, truncated)
        bounds = np.append(np.searchsorted(starts, runs), len(starts)).tolist()
        closed = batch.ends[np.append(runs[1:], n) - 1].tolist()
        by_run = zip(map(plain, batch.ids[runs]), starmap(range, pairwise(bounds)), closed, strict=True)
        finished = np.concatenate([self._feed_run(batch, segments, starts, *run) for run in by_run])
        episodes = EpisodeTable(*(x[finished] for x in segments))
        if self.carry:
            self.carried += int(episodes.truncated.sum())
            episodes = EpisodeTable(*(x[~episodes.truncated] for x in episodes))
        self.finished.append(episodes)
        self.rows += n

    def _feed_run(
        self, batch: Batch, segments: EpisodeTable, starts: np.ndarray, key: Any, these: range, closed: bool
    ) -> np.ndarray:
        """Take in one environment's segments, which begin at `starts`; return those that are finished episodes."""
        was, last = self.open.get(key, _Open()), these[-1]
        segments.first[these.start : these.stop] += was.rows - int(starts[these.start])
        now = _Open()
        long = (these.start + np.flatnonzero(segments.length[these.start : these.stop] > self.long)).tolist()
        # Long segments, and those that reach into other batches, need more than their sums.
        for s in sorted({*long, *(these[:1] if was.age else ()), *(() if closed else these[-1:])}):
            start = int(starts[s])
            rows, before = slice(start, start + int(segments.length[s])), was if s == these[0] else _Open()
            whole = before.age == 0 and (s < last or closed)
            latest = self._latest(batch.shaped[rows]) if whole else 0.0
            if whole and self._shows_its_end(latest, float(segments.size[s]), rows.stop - start):
                continue
            now = self._extended(before, batch, rows, segments.leak[s], segments.size[s])
            segments.first[s] -= before.age
            segments.length[s], segments.leak[s], segments.size[s] = now.age, now.leak, now.size
            if s < last or closed:
                segments.verdict[s] = self._verdict(now)
        rows_seen = int(segments.first[last] + segments.length[last])
        self.open[key] = (_Open() if closed else now)._replace(rows=rows_seen)
        return np.arange(these.start, these.stop if closed else last)

    def _allowed(self, size: Any, length: Any) -> Any:
        """Return how large |leak| may be as seen from the start: the tolerance, and the decimals of a rounded log."""
        return self.tolerance * size + self.resolution.absolute * _weights(self.gamma, length)

    def _extended(self, was: _Open, batch: Batch, rows: slice, leak: float, size: float) -> _Open:
        """Return the open episode with some more rows, whose own sums are `leak` and `size`."""
        paid = batch.shaped[rows].astype(np.float64)
        n, gamma, weight = len(paid), self.gamma, self.gamma**was.age
        whole = n - n % BLOCK
        table = paid[:whole].reshape(-1, BLOCK)
        weights = weight * self._powers(n)[:whole:BLOCK]
        debts = was.leak + (weights * (table @ self._powers(BLOCK))).cumsum()
        payments = np.einsum("ij,ij->i", table, table)
        tail = None
        if batch.bonus is not None:
            new = paid[-TAIL:], batch.bonus[rows][-TAIL:].astype(np.float64)
            before = (np.empty(0), np.empty(0)) if was.tail is None else was.tail[:2]
            tail = Span(*(np.append(x, y)[-TAIL:] for x, y in zip(before, new, strict=True)))
        return _Open(
            was.rows,
            was.age + n,
            was.leak + float(weight * leak),
            was.size + float(weight * size),
            was.debts + BLOCK * float(np.abs(debts).sum()),
            was.squares + float(weights**2 @ payments) + BLOCK * float(debts @ debts),
            gamma**n * was.recent + self._latest(paid),
            tail,
        )

    def _latest(self, paid: np.ndarray) -> float:
        """Return Σ_t γ^(N−1−t) |F'_t|, the payments as seen from the last one."""
        recent = np.abs(paid[-self.reach :])
        return float(recent @ self._powers(len(recent))[::-1])

    def _to_the_end(self, length: int) -> float:
        """Return γ^(1−N), by which an amount at the start grows to the last step."""
        return math.exp(min((1 - length) * math.log(self.gamma), 700))

    def _shows_its_end(self, recent: float, size: float, length: int) -> bool:
        """Whether what the tolerance allows would not be visible at the last step, so that the start is enough."""
        visible = VISIBLE * recent / _weights(self.gamma, length)
        return self._allowed(size, length) * self._to_the_end(length) <= visible

    def _powers(self, n: int) -> np.ndarray:
        """Return γ^0 … γ^(n−1), from a table that grows."""
        if n > len(self.powers):
            self.powers = np.float64(self.gamma) ** np.arange(2 * n)
        return self.powers[:n]

    def _verdict(self, e: _Open) -> int:
        """Judge a finished episode from its start and, if that can hide an end, from its end."""
        if abs(e.leak) > self._allowed(e.size, e.age):
            return LEAKS
        # As in `_feed_run`: a short episode is judged from its start, however the log is cut.
        if e.size == 0 or e.age <= self.long or self._shows_its_end(e.recent, e.size, e.age):
            return CANCELS
        to_the_end, visible = self._to_the_end(e.age), VISIBLE * e.recent / _weights(self.gamma, e.age)
        unit = self.looser * self.resolution.relative + 2.3e-16
        decimals = self.resolution.absolute * _weights(self.gamma, e.age)
        # Rounding errors of the single steps are independent and partly cancel; at worst, all have one sign.
        usual = unit * (ROUNDINGS * math.sqrt(e.squares) + e.size) + decimals
        worst = 2 * unit * (e.size + e.debts) + decimals
        missing = abs(e.leak) * to_the_end
        if missing > visible and abs(e.leak) > worst:
            return LEAKS
        if missing <= visible and usual * to_the_end <= visible:
            return CANCELS
        if e.tail is None or (self.fit is None and self.tries >= TRIES):
            return UNJUDGED
        self.tries += 1
        settled, self.fit = settles(e.tail, self.gamma, self.fit)
        return UNJUDGED if settled is None else CANCELS if settled else LEAKS

    def episodes(self) -> EpisodeTable:
        """Return all that ended."""
        if not self.rows:
            raise ValueError("the log is empty: there is nothing to audit")
        parts = self.finished
        table = parts[0] if len(parts) == 1 else EpisodeTable(*map(np.concatenate, zip(*parts, strict=True)))
        if not len(table.leak) and not self.carried:
            raise ValueError(f"none of the log's {self.rows} rows ends an episode; is `done` the right column?")
        # By environment and time, in whatever order the batches brought them.
        order = np.lexsort((table.first, np.unique(table.environment, return_inverse=True)[1]))
        return EpisodeTable(*(x[order] for x in table))


def _weights(gamma: float, length: Any) -> Any:
    """Return Σ_{t<N} γ^t."""
    return length if gamma == 1 else (1 - gamma**length) / (1 - gamma)


def _long(gamma: float, tolerance: float) -> float:
    """Return the length up to which the tolerance cannot hide an end, a tenfold margin included."""
    if gamma == 1:
        return 1e3
    hidden = VISIBLE * (1 - gamma) / (10 * tolerance)
    return max(0.0, np.log(hidden) / -np.log(gamma)) if hidden > 0 else 0.0


def segment_sums(values: np.ndarray, starts: np.ndarray, gamma: float) -> list[np.ndarray]:
    """Return Σ γ^k x and Σ γ^k |x| over each segment; `starts` are sorted, begin with 0, and cut the column.

    The column is weighted by γ^(i mod L) in blocks of L rows, one multiplication a row, and summed from mark to mark:
    the starts of episodes and of blocks. Each sum is then divided by the weight at its mark, so it starts with γ^0.
    """
    n, L = len(values), CHUNK if gamma == 1 else max(1, min(CHUNK, math.floor(math.log(LEAST) / math.log(gamma))))
    blocks = np.arange(0, n, L)
    after = np.searchsorted(starts, blocks)
    new = np.append(starts, -1)[after] != blocks
    blocks, after = blocks[new], after[new]
    marks = np.insert(starts, after, blocks)
    pieces = _piece_sums(values, marks, gamma, L)
    # Blocks that begin within a segment are few: these pieces are brought to their age and added one by one.
    later, weight = after + np.arange(len(after)), np.float64(gamma) ** (blocks - starts[after - 1])
    sums = [np.delete(x, later) for x in pieces]
    for total, x in zip(sums, pieces, strict=True):
        np.add.at(total, after - 1, weight * x[later])
    return sums


def _piece_sums(values: np.ndarray, marks: np.ndarray, gamma: float, L: int) -> np.ndarray:
    """Return both sums from each mark to the next; no piece reaches over the beginning of a block of L rows."""
    n, ages = len(values), np.arange(L, dtype=np.float64)
    weights, undone = (np.tile(np.float64(gamma) ** x, max(1, CHUNK // L)) for x in (ages, -ages))
    chunk = len(weights)
    # Leak and size are summed at once, as a complex number: short pieces cost a call each, not two.
    buffer, summands = np.empty(chunk), np.empty(chunk, dtype=np.complex128)
    result = np.empty((2, len(marks)))
    bounds = np.searchsorted(marks, np.arange(0, n + chunk, chunk)).tolist()
    for k, first in enumerate(range(0, n, chunk)):
        part, pieces = values[first : first + chunk], slice(bounds[k], bounds[k + 1])
        plain, here, begins = buffer[: len(part)], summands[: len(part)], marks[pieces] - first
        # A cast and a product apart are faster than both in one, which goes through small buffers.
        np.copyto(plain, part, casting="unsafe")
        np.multiply(plain, weights[: len(part)], out=here.real)
        np.abs(here.real, out=here.imag)
        sums, back = np.add.reduceat(here, begins), undone[begins]
        np.multiply(np.real(sums), back, out=result[0, pieces])
        np.multiply(np.imag(sums), back, out=result[1, pieces])
    return result
