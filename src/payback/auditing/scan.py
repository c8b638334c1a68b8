"""Summing every episode of a log that comes in batches, and judging each when it ends."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.discounted_sums import segment_sums
from payback.auditing.found import BROKEN, KEPT, UNJUDGED, Episodes
from payback.auditing.resolution import Resolution
from payback.auditing.rows import Batch, merged, not_finite, run_starts
from payback.auditing.settled_end import TAIL, Fit, settles
from payback.core.arrays import plain

BLOCK = 16
"""Rows between two looks at the debt of a long episode: an estimate of a rounding error needs no more."""
ROUNDINGS = 3.0
"""A leak within so many rounding errors of the single payments is taken for one."""
TRIES = 20
"""Long episodes after which no matching is looked for any more, if none was found."""
VISIBLE = 0.25
"""What is missing at the last step is seen if it is this large beside the payments of the steps before."""


class _Open(NamedTuple):
    """How far the scan has come in one environment."""

    rows: int = 0
    """Rows seen."""
    age: int = 0
    """Steps of the episode that is open, 0 if none is."""
    leak: float = 0.0
    size: float = 0.0
    debts: float = 0.0
    """Σ_t |Σ_{n≤t} γ^n F'_n|: the debts that a matching has held."""
    squares: float = 0.0
    """Σ_t (γ^t F'_t)² + (Σ_{n≤t} γ^n F'_n)²: the payments, and the debts that a matching rounds at every step."""
    recent: float = 0.0
    """Σ_t γ^(now−t) |F'_t|: the payments, the latest counting most."""
    tail: tuple[np.ndarray, np.ndarray] | None = None
    """The last payments and bonuses, where the log has the bonus."""


class Scan:
    """Running sums over batches of rows; each batch is grouped by environment, in the order of time.

    An episode is judged twice. From its start: |Σ γ^t F'_t| ≤ tolerance · Σ γ^t |F'_t|. A long episode also from its
    end, because γ^N hides there what is never repaid: the leak must not be larger than rounding explains if it is
    visible beside the last payments; where rounding itself is as large, the last rows are held to F (`settles`), and
    without F the episode is not judged.
    """

    def __init__(self, gamma: float, tolerance: float, resolution: Resolution, carry: bool = False) -> None:
        self.gamma = gamma
        self.tolerance = max(tolerance, 8 * resolution.relative)
        self.resolution = resolution
        self.carry = carry
        """Whether truncated episodes leave their debt to the learner's bootstrapped value: they are not judged."""
        self.carried = 0
        self.rows = 0
        self.open: dict[Any, _Open] = {}
        """environment → where it stands."""
        self.found: list[Episodes] = []
        self.fit: Fit | None = None
        self.tries = 0
        self.looser = max(1.0, tolerance / 1e-5)
        self.long = _long(gamma, self.tolerance)
        self.reach = _reach(gamma)
        self.powers = np.empty(0)

    def feed(self, batch: Batch) -> None:
        """Take in some rows."""
        n = len(batch.shaped)
        if not n:
            return
        runs = run_starts(batch.ids)
        starts = merged(np.flatnonzero(batch.ends[:-1]) + 1, runs)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            leak, size = segment_sums(batch.shaped, starts, self.gamma)
        if not np.isfinite(leak).all():
            raise ValueError(not_finite(batch, starts, leak))
        length = np.diff(starts, append=n)
        verdict = np.where(np.abs(leak) <= self._allowed(size, length), KEPT, BROKEN).astype(np.int8)
        last = np.append(starts[1:], n) - 1
        truncated = np.zeros(len(starts), dtype=bool) if batch.truncated is None else batch.truncated[last]
        # Whole episodes, and parts of those that reach into other batches.
        segments = Episodes(batch.ids[starts], starts.copy(), length, leak, size, verdict, truncated)
        bounds = np.append(np.searchsorted(starts, runs), len(starts)).tolist()
        closed = batch.ends[np.append(runs[1:], n) - 1].tolist()
        finished = np.concatenate(
            [
                self._feed_run(batch, segments, starts, key, range(bounds[k], bounds[k + 1]), closed[k])
                for k, key in enumerate(map(plain, batch.ids[runs]))
            ]
        )
        found = Episodes(*(x[finished] for x in segments))
        if self.carry:
            self.carried += int(found.truncated.sum())
            found = Episodes(*(x[~found.truncated] for x in found))
        self.found.append(found)
        self.rows += n

    def _feed_run(
        self, batch: Batch, segments: Episodes, starts: np.ndarray, key: Any, these: range, closed: bool
    ) -> np.ndarray:
        """Take in one environment's segments, which begin at `starts`; return those that are finished episodes."""
        was, last = self.open.get(key, _Open()), these[-1]
        segments.first[these.start : these.stop] += was.rows - int(starts[these.start])
        now = _Open()
        for s in self._looked_at(was, these, closed, segments.length):
            start = int(starts[s])
            rows, before = slice(start, start + int(segments.length[s])), was if s == these[0] else _Open()
            whole = before.age == 0 and (s < last or closed)
            if whole and self._shows_its_end(
                self._latest(batch.shaped[rows]), float(segments.size[s]), rows.stop - start
            ):
                continue
            now = self._extended(before, batch, rows, segments.leak[s], segments.size[s])
            segments.first[s] -= before.age
            segments.length[s], segments.leak[s], segments.size[s] = now.age, now.leak, now.size
            if s < last or closed:
                segments.verdict[s] = self._verdict(now)
        rows_seen = int(segments.first[last] + segments.length[last])
        self.open[key] = (_Open() if closed else now)._replace(rows=rows_seen)
        return np.arange(these.start, these.stop if closed else last)

    def _looked_at(self, was: _Open, these: range, closed: bool, length: np.ndarray) -> list[int]:
        """Return the segments that need more than their sums: long ones, and those that reach into other batches."""
        some = (these.start + np.flatnonzero(length[these.start : these.stop] > self.long)).tolist()
        if was.age and these[0] not in some:
            some.insert(0, these[0])
        if not closed and these[-1] not in some:
            some.append(these[-1])
        return some

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
        bonus = batch.lent if batch.lent is not None else batch.rewards
        tail = None
        if bonus is not None:
            before = was.tail or (np.empty(0), np.empty(0))
            new = (paid[-TAIL:], bonus[rows][-TAIL:].astype(np.float64))
            tail = (np.append(before[0], new[0])[-TAIL:], np.append(before[1], new[1])[-TAIL:])
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
        """Whether what the tolerance allows would not be visible at the last step, so that the start tells all."""
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
            return BROKEN
        if e.size == 0 or self._shows_its_end(e.recent, e.size, e.age):
            return KEPT
        to_the_end, visible = self._to_the_end(e.age), VISIBLE * e.recent / _weights(self.gamma, e.age)
        unit = self.looser * self.resolution.relative + 2.3e-16
        decimals = self.resolution.absolute * _weights(self.gamma, e.age)
        # Rounding errors of the single steps are independent and partly cancel; at worst, all have one sign.
        usual = unit * (ROUNDINGS * math.sqrt(e.squares) + e.size) + decimals
        worst = 2 * unit * (e.size + e.debts) + decimals
        missing = abs(e.leak) * to_the_end
        if missing > visible and abs(e.leak) > worst:
            return BROKEN
        if missing <= visible and usual * to_the_end <= visible:
            return KEPT
        if e.tail is None or (self.fit is None and self.tries >= TRIES):
            return UNJUDGED
        self.tries += 1
        settled, self.fit = settles(*e.tail, self.gamma, self.fit)
        return UNJUDGED if settled is None else KEPT if settled else BROKEN

    def episodes(self) -> Episodes:
        """Return all that ended."""
        if not self.rows:
            raise ValueError("the log is empty: there is nothing to audit")
        found = self.found[0] if len(self.found) == 1 else Episodes(*map(np.concatenate, zip(*self.found, strict=True)))
        if not len(found.leak) and not self.carried:
            raise ValueError(f"none of the log's {self.rows} rows ends an episode; is `done` the right column?")
        # By environment and time, in whatever order the batches brought them.
        order = np.lexsort((found.first, np.unique(found.environment, return_inverse=True)[1]))
        return Episodes(*(x[order] for x in found))


def _weights(gamma: float, length: Any) -> Any:
    """Return Σ_{t<N} γ^t."""
    return length if gamma == 1 else (1 - gamma**length) / (1 - gamma)


def _reach(gamma: float) -> int:
    """Return how many rows back a payment still counts among the latest."""
    return TAIL if gamma == 1 else int(min(1 << 16, 8 / (1 - gamma) + 1))


def _long(gamma: float, tolerance: float) -> float:
    """Return the length up to which the tolerance cannot hide an end, a tenfold margin included."""
    if gamma == 1:
        return 1e3
    hidden = VISIBLE * (1 - gamma) / (10 * tolerance)
    return max(0.0, np.log(hidden) / -np.log(gamma)) if hidden > 0 else 0.0
