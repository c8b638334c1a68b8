"""The forms in which callers hand over the same numbers: strided or read-only arrays, flags as integers, NaN in
invalid rows. A shaper pays the same for all of them, or refuses what it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from payback.check.blocks import first_difference
from payback.check.finding import Finding
from payback.check.laws import check_zero_sum
from payback.check.run_stream import step_through
from payback.check.stream import Stream
from payback.check.subject import Subject, as_numpy
from payback.core.arrays import Array
from payback.core.rollout import shape_rollout


def check_layouts(subject: Subject, stream: Stream) -> None:
    """Hold stepping and blocks to the same payments for arrays that are strided, or that must not be written to."""
    paid = step_through(subject, stream).shaped
    for form in (STRIDED, REVERSED, READ_ONLY):
        if form.only_numpy and subject.xp is not np:
            continue
        columns = _columns(subject, stream, form.change, form.change)
        for how, pay in (("update", _step), ("shape_rollout", _roll)):
            found = pay(subject, columns)
            where = first_difference(subject.epsilon, stream, found, paid)
            if where is not None:
                t, b = where
                what = f"{how} pays something else for {form.name} that hold the same numbers"
                raise Finding("input", what, stream, t, b, found[t, b], paid[t, b])


def check_flag_dtypes(subject: Subject, stream: Stream) -> list[str]:
    """Hold flags of other dtypes to the law; return the dtypes that are refused with an error.

    Payments may differ from those for booleans: a mean that reads `reward[valid]` becomes another one. The law holds
    for any causal mean, so it is the law that is asked for, and that the same rows are paid.
    """
    refused: list[str] = []
    plain = _step(subject, _columns(subject, stream, lambda x: x, lambda x: x))
    for dtype in ("uint8", "int64", "float32"):
        columns = _columns(subject, stream, lambda x: x, lambda x, kind=dtype: _cast(subject, x, kind))
        try:
            paid = _step(subject, columns)
        except Exception:
            # Raising is right: nothing is paid.
            refused.append(f"{dtype} flags")
            continue
        how = f"with flags of dtype {dtype} (cast them, or refuse them)"
        _hold_to_law(subject, stream, paid, how)
        bad = np.argwhere((paid != 0) != (plain != 0))
        if len(bad):
            t, b = bad[0]
            raise Finding(
                "input", f"a row is paid that is not, or the reverse, {how}", stream, t, b, paid[t, b], plain[t, b]
            )
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
    bad = np.argwhere(~stream.live & (paid != 0) | ~np.isfinite(paid))
    if len(bad):
        t, b = bad[0]
        what = f"an invalid row is paid, or a payment is not a finite number, {how}"
        raise Finding("input", what, stream, t, b, paid[t, b], 0.0)
    try:
        check_zero_sum(subject.gamma, subject.epsilon, stream, paid)
    except Finding as found:
        raise Finding(
            "input", f"{found}, {how}", stream, found.step, found.environment, found.paid, found.owed
        ) from None


@dataclass(frozen=True)
class _Form:
    name: str
    change: Callable[[Array], Array]
    only_numpy: bool = False


def _strided(x: Array) -> Array:
    return x.T.contiguous().T if hasattr(x, "detach") else np.asfortranarray(x)


def _reversed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


STRIDED = _Form("arrays that are not contiguous", _strided)
REVERSED = _Form("arrays with negative strides", _reversed, only_numpy=True)
READ_ONLY = _Form("read-only arrays", _read_only, only_numpy=True)


def _cast(subject: Subject, x: Array, dtype: str) -> Array:
    return x.to(getattr(subject.xp, dtype)) if hasattr(x, "detach") else x.astype(dtype)


def _columns(
    subject: Subject, stream: Stream, rewards: Callable[[Array], Array], flags: Callable[[Any], Any]
) -> list[Any]:
    given = map(subject.flags, (stream.dones, stream.valid, stream.settle))
    return [rewards(subject.floats(stream.rewards)), *(None if x is None else flags(x) for x in given)]


def _step(subject: Subject, columns: list[Any]) -> np.ndarray:
    state, shaped = subject.init(columns[0].shape[1]), list[np.ndarray]()
    for t in range(len(columns[0])):
        row: list[Any] = [None if x is None else x[t] for x in columns]
        state, paid = subject.transform.update(state, *row)
        shaped.append(as_numpy(paid))
    return np.array(shaped)


def _roll(subject: Subject, columns: list[Any]) -> np.ndarray:
    return as_numpy(shape_rollout(subject.transform, subject.init(columns[0].shape[1]), *columns)[1])
