"""Audit what a learner was paid: in which episodes the shaped rewards cancel, and where and why others leak."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np

from payback.auditing.diagnose import NOISE, diagnose_log
from payback.auditing.hypotheses import Cause, Hypothesis
from payback.auditing.infer import estimate_gamma, refuse_interleaved, resolution_of
from payback.auditing.read import Columns, open_log
from payback.auditing.rows import Log, Table, open_batches, printable, refuse_shapes, run_starts
from payback.auditing.scan import LEAKS, UNJUDGED, EpisodeTable, Scan
from payback.core.arrays import plain
from payback.core.validate import read_gamma

__all__ = ["TOLERANCE", "Audit", "AuditOptions", "Leak", "audit", "audit_file"]

TOLERANCE = 1e-5  # |Σ γ^t F'_t| ≤ 1e-5 · Σ γ^t |F'_t|: what float32 can hold
ARGUMENTS = {"done": "dones", "reward": "rewards", "environment": "environments"}  # a log's column → `audit`'s name


@dataclass(frozen=True)
class AuditOptions:
    """How to audit a log; the same for arrays, files and the command line."""

    gamma: float | None = None
    """The learner's discount; None to take the log's own, or to estimate it."""
    on_truncation: Literal["settle", "carry"] = "settle"
    tolerance: float = TOLERANCE
    worst: int = 20
    """How many leaks are listed."""

    def __post_init__(self) -> None:
        if self.on_truncation not in ("settle", "carry"):
            raise ValueError(f"on_truncation must be 'settle' or 'carry', got {self.on_truncation!r}")
        x = self.tolerance
        if not isinstance(x, Real) or isinstance(x, bool) or not 0 <= float(x) < math.inf:
            raise ValueError(f"tolerance must be a finite number, at least 0, got {x!r}; {TOLERANCE:g} is the default")


@dataclass(frozen=True)
class Leak:
    """One episode whose shaped rewards do not cancel."""

    environment: Any
    episode: int
    """Which of its environment's episodes, from 0; −1 for invalid rows."""
    step: int
    """The step to look at."""
    length: int
    amount: float
    """Σ γ^t F'_t: what the episode was paid too much."""
    relative: float
    """The same relative to Σ γ^t |F'_t|."""
    cause: Cause
    detail: str
    """The cause's explanation, with the numbers of this log."""
    first: int = 0
    """Index of the episode's first row among its environment's valid rows."""


@dataclass
class Audit:
    """The result of an audit. `ok` is true only if every finished episode was judged and cancels.

    >>> import numpy as np, payback
    >>> result = payback.audit(np.array([1.0, 1.0, -2.0]), np.array([False, False, True]), gamma=1.0)
    >>> result.ok, result.unjudged, len(result.episodes.length)
    (True, 0, 1)
    """

    gamma: float
    rows: int
    episodes: EpisodeTable
    unfinished: int
    """Environments whose last episode has no end in the log: not judged."""
    carried: int = 0
    """Truncated episodes whose debt is left to the learner's bootstrapped value (`on_truncation="carry"`)."""
    invalid_rows_paid: int = 0
    leaks: list[Leak] = field(default_factory=list[Leak])
    """The worst, worst first."""
    causes: Counter[Cause] = field(default_factory=lambda: Counter())
    """How many leaking episodes, or invalid rows, have each cause."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def broken(self) -> int:
        """How many finished episodes leak."""
        return int((self.episodes.verdict == LEAKS).sum())

    @property
    def unjudged(self) -> int:
        """How many finished episodes are too long, for the digits of the log, to show whether their end settles."""
        return int((self.episodes.verdict == UNJUDGED).sum())

    @property
    def ok(self) -> bool:
        """Whether every finished episode was judged and cancels, and no invalid row was paid."""
        return not (self.broken or self.unjudged or self.invalid_rows_paid)

    def facts(self) -> list[str]:
        """Return what was read and judged, one sentence each."""
        total = len(self.episodes.leak)
        unjudged = f", {self.unjudged:,} cannot be judged" if self.unjudged else ""
        cancel = total - self.broken - self.unjudged
        long = "Those are so long that the digits of the log cannot show whether their last step settles: log the "
        left = "truncated episodes leave their debt to the bootstrapped value; not judged."
        facts = [
            (True, f"{self.rows:,} rows, {total:,} finished episodes, γ = {self.gamma:.6g}."),
            (True, f"Shaped rewards cancel in {cancel:,} episodes and leak in {self.broken:,}{unjudged}."),
            (self.unjudged, f"{long}bonus F as well (column reward), or more digits."),
            (self.carried, f"{self.carried:,} {left}"),
            (self.unfinished, f"{self.unfinished:,} environments end in mid-episode; those episodes are not judged."),
            (self.invalid_rows_paid, f"{self.invalid_rows_paid:,} invalid rows are paid."),
        ]
        return [text for holds, text in facts if holds] + [f"{note}." for note in self.notes]

    def cause_lines(self) -> list[str]:
        """Return one line per cause: how many leaking episodes have it, and what it means."""
        details = {leak.cause: leak.detail for leak in reversed(self.leaks)}
        return [f"{n:,} × {why.value}: {details.get(why, why.explanation)}" for why, n in self.causes.most_common()]

    def table(self) -> list[tuple[str, ...]]:
        """Return the worst leaks as rows of text, below a header."""
        rows = [("environment", "episode", "step", "steps", "leak", "relative", "likely cause")]
        for leak in self.leaks:
            where = (printable(leak.environment), str(leak.episode) if leak.episode >= 0 else "–", str(leak.step))
            rows.append((*where, str(leak.length), f"{leak.amount:.4g}", f"{leak.relative:.2%}", leak.cause.value))
        return rows


def audit(
    shaped: Any,
    dones: Any,
    gamma: float | None = None,
    *,
    environments: Any = None,
    rewards: Any = None,
    lent: Any = None,
    truncated: Any = None,
    valid: Any = None,
    on_truncation: Literal["settle", "carry"] = "settle",
    tolerance: float = TOLERANCE,
    worst: int = 20,
) -> Audit:
    """Find the episodes of a log whose shaped rewards do not cancel, and name where and why they leak.

        |Σ_t γ^t F'_t| ≤ tolerance · Σ_t γ^t |F'_t|                              in every finished episode

    and, because γ^N hides what is never repaid in a long one, the same as seen from its end: what the last step leaves
    unpaid must not be visible beside the payments before it. If the digits of the log cannot show that, the last rows
    are compared with F; without F the episode counts as `unjudged`, and the log is not `ok`.

    `shaped` and `dones` are columns with `environments` naming each row's, or (T, B) blocks, also (T, B, 1). Rows of an
    environment are in the order of time; they need not be next to each other. `rewards` is F: with it causes are named
    better, long episodes can be judged, and γ can be estimated. `lent` is F − F̄, the loan of a centred bonus.
    `truncated` marks ends by truncation; with `on_truncation="carry"` these are not judged, because their debt is left
    to the learner's bootstrapped value. `valid` is false on invalid rows, such as autoreset rows.

    >>> import numpy as np
    >>> result = audit([1.0, -2.0, 1.0, 1.0], [False, True, False, True], gamma=0.5)
    >>> result.ok, len(result.episodes.leak), result.leaks[0].episode, result.leaks[0].amount
    (False, 2, 1, 1.5)
    """
    columns = {"shaped": shaped, "done": dones, "environment": environments, "reward": rewards, "lent": lent}
    columns |= {"truncated": truncated, "valid": valid}
    table = _flat_columns({name: np.asarray(x) for name, x in columns.items() if x is not None})
    log = Log("audit", lambda: iter([(0, table)]))
    return audit_log(log, AuditOptions(gamma, on_truncation, tolerance, worst))


def audit_file(
    path: str | Path,
    gamma: float | None = None,
    columns: Columns = Columns(),  # noqa: B008
    *,
    on_truncation: Literal["settle", "carry"] = "settle",
    tolerance: float = TOLERANCE,
    worst: int = 20,
) -> Audit:
    """Audit a Parquet, CSV or NPZ file, or the folder of a `Recorder`; see `audit`.

    A log may be larger than memory. It is read twice if it leaks: once to find the leaks, once to name their cause.

    >>> audit_file("no-such-log.csv")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    return audit_log(open_log(path, columns), AuditOptions(gamma, on_truncation, tolerance, worst))


def audit_log(log: Log, options: AuditOptions) -> Audit:
    """Audit a log: infer what it does not state, sum and judge its episodes, name the causes of leaks."""
    head, batches = open_batches(log)
    notes: list[str] = []
    gamma = options.gamma if options.gamma is not None else head.gamma
    if gamma is None:
        gamma = estimate_gamma(head)
        notes.append(f"γ was not given; the first episodes cancel at γ = {gamma:.6g}")
    resolution = resolution_of(head.shaped)
    if resolution.decimals is not None:
        notes.append(f"the log is rounded to {resolution.decimals} decimals: smaller leaks cannot be seen")
    scan = Scan(read_gamma(gamma), float(options.tolerance), resolution, options.on_truncation == "carry")
    for batch in batches:
        scan.feed(batch)
    table = scan.episodes()
    result = Audit(scan.gamma, scan.rows, table, sum(x.age > 0 for x in scan.open.values()), scan.carried)
    result.notes = notes
    if result.broken:
        if (table.verdict == LEAKS).mean() >= 0.5:
            refuse_interleaved(log.name, head, scan.gamma, options.tolerance)
        _name_causes(result, log, scan, options.worst)
    if paid := scan.invalid_rows_paid:
        numbers = f"{paid:,} rows, the first is row {scan.first_invalid} of the log"
        why, result.invalid_rows_paid = Hypothesis(Cause.INVALID_ROW_PAID, numbers=numbers), paid
        result.causes = Counter({why.cause: paid}) + result.causes
        result.leaks.insert(0, Leak("–", -1, scan.first_invalid, 1, 0.0, 0.0, why.cause, why.detail))
    return result


def _name_causes(result: Audit, log: Log, scan: Scan, worst: int) -> None:
    """Count the causes of the leaking episodes, and list the worst."""
    table = result.episodes
    leaking, diagnosis_of = diagnose_log(log, table, result.gamma, scan.fit)
    for environment, count in leaking.items():
        result.causes[diagnosis_of(environment).cause] += count
    bad = np.flatnonzero(table.verdict == LEAKS)
    relative = table.relative[bad]
    small = float(np.quantile(relative, 0.9))
    if Cause.UNKNOWN in result.causes and small < NOISE:
        result.notes.append(f"leaks of unknown cause are about {small:.1g} of the payments: noise, or few digits")
        if scan.invalid_rows_paid:
            del result.causes[Cause.UNKNOWN]
    result.causes = Counter(dict(result.causes.most_common()))
    starts = run_starts(table.environment)  # the table is sorted by environment and time
    for k in bad[np.lexsort((bad, -np.round(relative, 6)))][:worst].tolist():
        environment, first, length, leak, size, *_ = (plain(column[k]) for column in table)
        why, number = diagnosis_of(environment), k - int(starts[starts <= k][-1])
        step = length - 1 if why.step is None else min(why.step, length - 1)
        share = leak / max(size, 1e-300)
        result.leaks.append(Leak(environment, number, step, length, leak, share, why.cause, why.detail, first))


def _flat_columns(table: Table) -> Table:
    """Return one-dimensional columns of rows or blocks, also (T, B, 1); number the environments of a block."""
    for ours, column in table.items():
        while column.ndim > 2 and column.shape[-1] == 1:
            column = column[..., 0]
        table[ours] = column
    shape: tuple[int, ...] = table["shaped"].shape
    refuse_shapes("audit", {ARGUMENTS.get(ours, ours): (x.shape, x.dtype) for ours, x in table.items()}, shape)
    if len(shape) == 2 and "environment" not in table:
        table["environment"] = np.broadcast_to(np.arange(shape[1]), shape)
    return {ours: column.reshape(-1) for ours, column in table.items()}
