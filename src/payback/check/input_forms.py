"""The forms in which callers hand over the same numbers: strided or read-only arrays, flags as integers, NaN in
invalid rows. A shaper pays the same for all of them, or refuses what it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from payback.check.blocks import differences
from payback.check.finding import Finding, refuse_where
from payback.check.laws import check_zero_sum
from payback.check.run_stream import Way, step_through
from payback.check.stream import Stream
from payback.check.subject import Subject, as_numpy
from payback.core.arrays import Array
from payback.core.rollout import shape_rollout


def check_layouts(subject: Subject, stream: Stream) -> None:
    """Hold stepping and blocks to the same payments for arrays that are strided, or that must not be written to."""
    paid = step_through(subject, stream).shaped
    for name, change in (LAYOUTS | NUMPY_LAYOUTS if subject.xp is np else LAYOUTS).items():
        columns = _columns(subject, stream, change, change)
        for how, pay in (("update", _step), ("shape_rollout", _roll)):
            found = pay(subject, stream, columns)
            differ = differences(subject.epsilon, stream, found, paid)
            what = f"{how} pays something else for {name} that hold the same numbers"
            refuse_where(differ, "input", what, stream, found, paid)


def check_flag_dtypes(subject: Subject, stream: Stream) -> list[str]:
    """Hold flags of other dtypes to the law; return the dtypes that are refused with an error.

    Payments may differ from those for booleans: a mean that reads `reward[valid]` becomes another one. The law holds
    for any causal mean, so it is the law that is asked for, and that the same rows are paid.
    """
    refused: list[str] = []
    plain = _step(subject, stream, _columns(subject, stream, lambda x: x, lambda x: x))
    for dtype in ("uint8", "int64", "float32"):
        columns = _columns(subject, stream, lambda x: x, lambda x, kind=dtype: _cast(subject, x, kind))
        try:
            paid = _step(subject, stream, columns)
        except Exception:
            # Raising is right: nothing is paid.
            refused.append(f"{dtype} flags")
            continue
        how = f"with flags of dtype {dtype} (cast them, or refuse them)"
        _hold_to_law(subject, stream, paid, how)
        what = f"a row is paid that is not, or the reverse, {how}"
        refuse_where((paid != 0) != (plain != 0), "input", what, stream, paid, plain)
    return refused


def check_nan_in_invalid_rows(subject: Subject, stream: Stream) -> list[str]:
    """Hold the transform to paying nothing for NaN in invalid rows; return whether it is refused."""
    poisoned = replace(stream, rewards=np.where(stream.live, stream.rewards, np.nan))
    try:
        paid = step_through(subject, poisoned).shaped
    except Exception:
        return ["NaN in invalid rows"]
    _hold_to_law(subject, stream, paid, "with NaN in the invalid rows, which do not count")
    return []


def _hold_to_law(subject: Subject, stream: Stream, paid: np.ndarray, how: str) -> None:
    bad = ~stream.live & (paid != 0) | ~np.isfinite(paid)
    what = f"an invalid row is paid, or a payment is not a finite number, {how}"
    refuse_where(bad, "input", what, stream, paid, np.zeros_like(paid))
    try:
        check_zero_sum(subject.gamma, subject.epsilon, stream, paid)
    except Finding as found:
        raise Finding(
            "input", f"{found}, {how}", stream, found.step, found.environment, found.paid, found.owed
        ) from None


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "arrays that are not contiguous": lambda x: x.T.contiguous().T if hasattr(x, "detach") else np.asfortranarray(x)
}
NUMPY_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "arrays with negative strides": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "read-only arrays": _read_only,
}
"""Layouts that the other libraries do not have."""


def _cast(subject: Subject, x: Array, dtype: str) -> Array:
    return x.to(getattr(subject.xp, dtype)) if hasattr(x, "detach") else x.astype(dtype)


def _columns(
    subject: Subject, stream: Stream, rewards: Callable[[Array], Array], flags: Callable[[Any], Any]
) -> list[Any]:
    given = map(subject.flags, (stream.dones, stream.valid, stream.settle))
    return [rewards(subject.floats(stream.rewards)), *(None if x is None else flags(x) for x in given)]


def _step(subject: Subject, stream: Stream, columns: list[Any]) -> np.ndarray:
    return Way(subject, stream, columns).paid_from(subject.init(columns[0].shape[1]))


def _roll(subject: Subject, stream: Stream, columns: list[Any]) -> np.ndarray:
    return as_numpy(shape_rollout(subject.transform, subject.init(columns[0].shape[1]), *columns)[1])
