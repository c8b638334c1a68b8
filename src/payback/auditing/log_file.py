"""Auditing a log on disk, batch by batch: a file, or a recorder's folder, may be larger than memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from payback.auditing.audit import read_on_truncation
from payback.auditing.examine import TOLERANCE, examine
from payback.auditing.found import Audit
from payback.auditing.read import read_batches
from payback.auditing.rows import Log


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
    lent: str = "lent"
    """What was lent of it, F − F̄, if the log has it."""
    gamma: str = "gamma"
    """γ, if the log has it; the same in every row."""
    valid: str = "valid"
    """False on invalid rows, such as autoreset rows, if the log has it."""
    step: str = "step"
    """A clock that must rise within an episode, if the log has it."""
    terminated: str = "terminated"
    truncated: str = "truncated"


def open_log(path: str | Path, columns: Columns = Columns()) -> Log:  # noqa: B008
    """Return the file or folder as a log that can be read more than once."""
    path = Path(path)
    return Log(str(path), lambda: read_batches(path, vars(columns)))


def audit_file(
    path: str | Path,
    gamma: float | None = None,
    columns: Columns = Columns(),  # noqa: B008
    tolerance: float = TOLERANCE,
    worst: int = 20,
    on_truncation: Literal["settle", "carry"] = "settle",
) -> Audit:
    """Audit a Parquet, CSV or NPZ file, or the folder of a `Recorder`; see `audit`.

    It is read twice if it leaks: once to find, once to look.

    >>> audit_file("no-such-log.csv")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    carry = read_on_truncation(on_truncation)
    return examine(open_log(path, columns), gamma, tolerance=tolerance, worst=worst, carry=carry)
