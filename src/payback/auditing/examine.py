"""The one way through the auditor, for arrays, files and folders: sum, judge, look at what leaks, name the cause."""

from __future__ import annotations

import math
from collections import Counter
from numbers import Real
from typing import Any, cast

import numpy as np

from payback.auditing.cause import Cause, Diagnosis, because
from payback.auditing.diagnose import diagnose_each
from payback.auditing.evidence import LEAD, Episode
from payback.auditing.fitting_gamma import fitting_gamma
from payback.auditing.found import BROKEN, Audit, Episodes, Leak
from payback.auditing.interleaved import refuse_interleaved
from payback.auditing.resolution import resolution_of
from payback.auditing.rows import Batch, Log, Table, batches, run_starts
from payback.auditing.scan import Scan
from payback.core.arrays import plain
from payback.core.validate import read_gamma

TOLERANCE = 1e-5
"""|Σ γ^t F'_t| ≤ 1e-5 · Σ γ^t |F'_t|: what float32 can hold."""
HEAD = 100_000
"""First rows, from which γ and the digits of a log are read."""
LOOKED_AT = 150
"""Broken episodes per environment from which its cause is told."""
ROWS_LOOKED_AT = 100_000
ENVIRONMENTS_LOOKED_AT = 8

Span = tuple[Any, int, int]
"""Rows of one environment: its id, the first row's index among its valid rows, how many."""
Columns = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]
"""What was paid, F and G = F − F̄ where the log has them."""


def examine(log: Log, gamma: float | None, *, tolerance: float, worst: int, carry: bool = False) -> Audit:
    """Audit a log. It is read again if γ must be found, and if something leaks."""
    tolerance = read_tolerance(tolerance)
    notes: list[str] = []
    head = _head(log)
    if gamma is None:
        gamma = head.gamma if head.gamma is not None else estimate_gamma(head)
        if head.gamma is None:
            notes.append(f"γ was not given; the first episodes sum to zero at γ = {gamma:.6g}")
    resolution = resolution_of(head.shaped)
    scan = Scan(read_gamma(gamma), tolerance, resolution, carry)
    invalid: list[int] = []
    invalid_count = 0
    for batch in batches(log):
        scan.feed(batch)
        invalid_count += len(batch.invalid_rows_paid)
        invalid = invalid or batch.invalid_rows_paid[:1].tolist()
    episodes = scan.episodes()
    found = Audit(scan.gamma, scan.rows, episodes, sum(x.age > 0 for x in scan.open.values()), scan.carried)
    found.notes = notes
    if resolution.decimals is not None:
        found.notes.append(f"the log is rounded to {resolution.decimals} decimals: smaller leaks cannot be seen")
    if found.broken:
        refuse_interleaved(log, head, episodes, scan.gamma, tolerance)
        _name_causes(found, log, worst)
    if invalid:
        found.invalid_rows_paid = invalid_count
        found.leaks.insert(0, _invalid_leak(invalid_count, invalid[0]))
    return found


def read_tolerance(value: Any) -> float:
    """Return a tolerance as a float; raise on NaN, with which nothing would keep the law, and on what is no size."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:
        raise ValueError(f"tolerance must be a finite number, at least 0, got {value!r}; {TOLERANCE:g} is the default")
    return float(value)


def _head(log: Log) -> Batch:
    """Return the log's first rows as one batch, so that what is read off them does not depend on how the log is cut."""
    tables: list[Table] = []
    count = 0
    for _, table in log.read():
        tables.append(table)
        count += len(table["shaped"])
        if count >= HEAD:
            break
    if not count:
        raise ValueError(f"{log.name}: the log is empty, there is nothing to audit")
    head = {name: np.concatenate([table[name] for table in tables])[:HEAD] for name in tables[0]}
    return next(batches(Log(log.name, lambda: iter([(0, head)]))))


def estimate_gamma(head: Batch) -> float:
    """Return the γ at which the first episodes sum to zero; raise where there is none, or no F to go by."""
    if head.rewards is None and head.lent is None:
        raise ValueError("gamma is not given, and cannot be told without F; give gamma, or the rewards column")
    last = np.flatnonzero(head.ends)[:400] + 1
    first = np.concatenate(([0], last[:-1]))
    paid, ids = head.shaped, head.ids
    episodes = [paid[a:b].astype(np.float64) for a, b in zip(first, last, strict=True) if ids[a] == ids[b - 1]]
    gamma = fitting_gamma(episodes[:100])
    if gamma is None:
        raise ValueError("no γ makes this log's episodes sum to zero; give the γ that the learner used")
    return gamma


def rows_of(log: Log, spans: list[Span]) -> list[Columns]:
    """Read the log again for the rows of some spans; rows beyond its end are left out."""
    parts: list[list[Columns]] = [[] for _ in spans]
    seen: dict[Any, int] = {}
    by_env: dict[Any, list[int]] = {}
    for k, (env, _, _) in enumerate(spans):
        by_env.setdefault(env, []).append(k)
    for batch in batches(log):
        runs = run_starts(batch.ids)
        for start, stop in zip(runs.tolist(), np.append(runs[1:], len(batch.ids)).tolist(), strict=False):
            env = plain(batch.ids[start])
            base = seen.get(env, 0)
            for k in by_env.get(env, ()):
                _, first, length = spans[k]
                a, b = max(first - base, 0), min(first + length - base, stop - start)
                if a < b:
                    rows = slice(start + a, start + b)
                    columns = (batch.shaped, batch.rewards, batch.lent)
                    part = tuple(None if x is None else x[rows].astype(np.float64) for x in columns)
                    parts[k].append(cast(Columns, part))
            seen[env] = base + stop - start
    joined = (tuple(None if x[0] is None else np.concatenate(x) for x in zip(*pieces, strict=True)) for pieces in parts)
    return [cast(Columns, columns) for columns in joined]


def _name_causes(found: Audit, log: Log, worst: int) -> None:
    """Diagnose each environment's leaks together, count the causes, and list the worst leaks."""
    episodes = found.episodes
    bad = np.flatnonzero(episodes.verdict == BROKEN)
    keys, which, counts = np.unique(episodes.environment[bad], return_inverse=True, return_counts=True)
    looked = np.argsort(-counts, kind="stable")[:ENVIRONMENTS_LOOKED_AT]
    chosen = {int(e): _sample(episodes, bad[which == e]) for e in looked}
    listed = _worst(episodes, bad, worst)
    number = _numbers(episodes)
    spans = [_span(episodes, k) for ks in chosen.values() for k in ks]
    columns = iter(rows_of(log, spans))
    evidence = [[_episode(episodes, k, next(columns)) for k in ks] for ks in chosen.values()]
    named = diagnose_each(evidence, found.gamma, _terminated_keep(episodes))
    diagnoses = dict(zip(chosen, named, strict=True))
    overall = diagnoses[int(looked[0])]
    for e, count in enumerate(counts.tolist()):
        found.causes[diagnoses.get(e, overall).cause] += count
    environments: np.ndarray = episodes.environment[listed]
    for k, e in zip(listed, np.searchsorted(keys, environments).tolist(), strict=True):
        found.leaks.append(_leak(episodes, number, k, diagnoses.get(e, overall), found.gamma))
    found.causes = Counter(dict(found.causes.most_common()))


def _terminated_keep(episodes: Episodes) -> bool:
    """Whether truncated episodes leak and terminated ones do not, as far as the log says which is which."""
    broken = episodes.verdict == BROKEN
    return bool(episodes.truncated[broken].all() and (~episodes.truncated).any())


def _sample(episodes: Episodes, bad: np.ndarray) -> list[int]:
    """Return broken episodes of one environment to look at, spread over the log; longer than one step if any are."""
    longer = bad[episodes.length[bad] > 1]
    some = longer if len(longer) else bad
    some = some[np.unique(np.linspace(0, len(some) - 1, min(LOOKED_AT, len(some))).astype(int))]
    fits = np.cumsum(episodes.length[some]) <= ROWS_LOOKED_AT
    fits[0] = True
    return some[fits].tolist()


def _worst(episodes: Episodes, bad: np.ndarray, worst: int) -> list[int]:
    relative = np.abs(episodes.leak[bad]) / np.maximum(episodes.size[bad], 1e-300)
    return bad[np.lexsort((bad, -np.round(relative, 6)))][:worst].tolist()


def _numbers(episodes: Episodes) -> np.ndarray:
    """Return each episode's number within its environment."""
    _, ids = np.unique(episodes.environment, return_inverse=True)
    order = np.lexsort((episodes.first, ids))
    starts = run_starts(ids[order])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return number


def _span(episodes: Episodes, k: int) -> Span:
    """Return where the episode lies, with some rows before it and the row after it."""
    first = max(int(episodes.first[k]) - LEAD, 0)
    return plain(episodes.environment[k]), first, int(episodes.first[k] + episodes.length[k]) - first + 1


def _episode(episodes: Episodes, k: int, columns: Columns) -> Episode:
    lead = min(int(episodes.first[k]), LEAD)
    rows = slice(lead, lead + int(episodes.length[k]))
    paid, rewards, lent = columns
    bonus = rewards if lent is None else lent
    return Episode(
        paid[rows],
        None if rewards is None else rewards[rows],
        float(episodes.leak[k]),
        None if lent is None else lent[rows],
        paid_before=paid[:lead] if lead else None,
        rewards_before=bonus[:lead] if lead and bonus is not None else None,
        paid_after=float(paid[rows.stop]) if len(paid) > rows.stop else None,
    )


def _leak(episodes: Episodes, number: np.ndarray, k: int, why: Diagnosis, gamma: float) -> Leak:
    length, amount = int(episodes.length[k]), float(episodes.leak[k])
    with np.errstate(over="ignore"):
        missing = float(amount * np.float64(gamma) ** (1 - length))
    return Leak(
        plain(episodes.environment[k]),
        int(number[k]),
        length - 1 if why.step is None else min(why.step, length - 1),
        length,
        amount,
        amount / max(float(episodes.size[k]), 1e-300),
        missing,
        why.cause,
        why.detail,
        int(episodes.first[k]),
    )


def _invalid_leak(count: int, row: int) -> Leak:
    why = because(Cause.INVALID_ROW_PAID, f"{count:,} rows, the first is row {row} of the log")
    return Leak("–", -1, row, 1, 0.0, 0.0, 0.0, why.cause, why.detail)
