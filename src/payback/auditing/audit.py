"""Auditing what a finished training run was paid: which episodes sum to zero, and where the others leak."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from payback.auditing.cause import Cause
from payback.auditing.examine import TOLERANCE, examine
from payback.auditing.found import Audit, Episodes, Leak
from payback.auditing.rows import Log, Table, refuse_shapes

__all__ = ["TOLERANCE", "Audit", "Cause", "Episodes", "Leak", "audit"]


ARGUMENTS = {"done": "dones", "reward": "rewards", "environment": "environments"}
"""Arguments of `audit` that are not called like the column of a log."""


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
    """Say which episodes of a log keep the law, and where and how the others break it.

        |Σ_t γ^t F'_t| ≤ tolerance · Σ_t γ^t |F'_t|                              in every finished episode

    and, because γ^N hides what is never repaid in a long one, the same as seen from its end: what the last step leaves
    unpaid must not be visible beside the payments before it. Where the digits of the log cannot show that, the last
    rows are held to F; without F the episode counts as `unjudged`, and the log is not `ok`.

    `shaped` and `dones` are columns with `environments` naming each row's, or (T, B) blocks, also (T, B, 1). Rows of an
    environment are in the order of time; they need not be next to each other. `rewards` is F: with it causes are named
    better, long episodes can be judged, and γ is found where it is not given. `lent` is F − F̄, what a centred bonus
    really lends. `truncated` marks ends by truncation; with `on_truncation="carry"` these are not judged, because their
    debt is left to the learner's bootstrapped value. `valid` is false on invalid rows, such as autoreset rows.

    >>> import numpy as np
    >>> found = audit([1.0, -2.0, 1.0, 1.0], [False, True, False, True], gamma=0.5)
    >>> found.ok, len(found.episodes.leak), found.leaks[0].episode, found.leaks[0].amount
    (False, 2, 1, 1.5)
    """
    columns = {
        "shaped": shaped,
        "done": dones,
        "environment": environments,
        "reward": rewards,
        "lent": lent,
        "truncated": truncated,
        "valid": valid,
    }
    table = flat_columns("audit", {name: np.asarray(x) for name, x in columns.items() if x is not None})
    log, carry = Log("audit", lambda: iter([(0, table)])), read_on_truncation(on_truncation)
    return examine(log, gamma, tolerance=tolerance, worst=worst, carry=carry)


def read_on_truncation(value: str) -> bool:
    """Return whether debts are carried over truncations; raise on any other word."""
    if value not in ("settle", "carry"):
        raise ValueError(f"on_truncation must be 'settle' or 'carry', got {value!r}")
    return value == "carry"


def flat_columns(name: str, table: Table) -> Table:
    """Return the columns as one-dimensional ones, row by row; number the environments of a block.

    Axes of length one at the end, as in (T, B, 1), are dropped.
    """
    table = {ours: _without_last_axes(column) for ours, column in table.items()}
    shape = table["shaped"].shape
    refuse_shapes(name, {ARGUMENTS.get(ours, ours): (x.shape, x.dtype) for ours, x in table.items()}, shape)
    if len(shape) == 2 and "environment" not in table:
        environments: int = shape[1]
        table["environment"] = np.broadcast_to(np.arange(environments), shape)
    return {ours: column.reshape(-1) for ours, column in table.items()}


def _without_last_axes(column: np.ndarray) -> np.ndarray:
    while column.ndim > 2 and column.shape[-1] == 1:
        column = column[..., 0]
    return column
