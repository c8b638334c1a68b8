"""The same rewards in another form: blocks instead of steps, invalid rows, other layouts, flags of other dtypes.

The shaped rewards are the same for all of them, or the form is refused with an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from payback.check.properties import check_zero_sum
from payback.check.stream import Finding, Stream, continuations, refuse_where
from payback.check.subject import Continuation, Run, Subject, as_numpy, roll_through, step_through
from payback.core.arrays import Array
from payback.core.rollout import shape_rollout

USUAL = (1, 2, 3, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1000, 1024)
"""Common lengths of rollouts; a stream is cut into as many of them as it has steps for."""
SHORT = 60
"""Streams of up to so many steps are checked at every step; longer ones at some of the steps."""
MOST = 25
"""The most borders in one way to cut a stream."""


def differences(epsilon: float, stream: Stream, one: np.ndarray, other: np.ndarray, first: int = 0) -> np.ndarray:
    """Return where shaped rewards, those of the stream's rows from `first` on, differ by more than rounding.

    Rounding is measured against all rewards so far, because a centred reward carries the rounding of F̄, and F̄ that of
    every reward before it; the reward of a last step, which is lent and repaid at once, counts only afterwards.
    """
    sizes = np.where(stream.live, np.abs(stream.rewards), 0.0)
    before = np.concatenate((np.zeros(1), np.maximum.accumulate(sizes.max(axis=1, initial=0))))[:-1]
    scale = before[:, None] + np.where(stream.dones, 0.0, sizes)
    paid = np.maximum.accumulate(np.maximum(np.abs(one), np.abs(other)), axis=0) if len(one) else np.abs(one)
    return ~(np.abs(one - other) <= epsilon * (scale[first:] + paid))


def check_blocks(subject: Subject, stream: Stream, run: Run, at_once: bool = False) -> None:
    """Check that `shape_rollout` equals stepping, cut in several ways or all `at_once`, and leaves an equal state."""
    T = len(stream.rewards)
    if subject.compiled and T % 5:
        return  # compiling one more length takes as long as stepping through a stream
    if T > SHORT and not subject.has_block_form:
        return  # `shape_rollout` only steps
    way = Continuation(subject, continuations(stream)[0])
    whole = stream.followed_by(way.stream)
    after = way.paid_from(run.states[-1])
    ways: dict[str, list[int]] = {"at once": []}
    if not (at_once or subject.compiled) and subject.has_block_form:
        ways |= _ways_to_cut(stream)
    for how, cuts in ways.items():
        block = roll_through(subject, stream, cuts)
        differ = differences(subject.epsilon, stream, block.shaped, run.shaped)
        what = f"shape_rollout, {how}, differs from stepping"
        refuse_where(differ, "rollout", what, stream, block.shaped, run.shaped)
        then = way.paid_from(block.states[-1])
        differ = differences(subject.epsilon, whole, then, after, T)
        what = f"the state that shape_rollout, {how}, returns goes on differently from the one that stepping returns"
        refuse_where(differ, "rollout", what, stream, then, after, T)


def check_block_leaves_state(subject: Subject, stream: Stream, run: Run) -> None:
    """Check that `shape_rollout` leaves its state unchanged: called again, it returns the same."""
    t = len(stream.rewards) // 2
    rest, state = stream.rows(slice(t, None)), run.states[t]
    first, again = (roll_through(subject, rest, [], state).shaped for _ in range(2))
    what = "shape_rollout returns something else when it is called again: it changes the state that it was given"
    refuse_where(first != again, "purity", what, stream, again, first, t)


def _ways_to_cut(stream: Stream) -> dict[str, list[int]]:
    """Return where blocks begin, by a name for it."""
    T = len(stream.rewards)
    ends = np.flatnonzero(stream.dones.any(axis=1))
    ways = {
        "with borders right after the ends": [int(t) + 1 for t in ends if t + 1 < T][:MOST],
        "with borders right before the last steps": [int(t) for t in ends if t > 0][:MOST],
        "in blocks of 4 steps": list(range(3, T, 4))[:MOST],
        "with a block of no steps": [T // 2, T // 2] if 8 <= T <= SHORT else [],
        "in blocks of usual lengths": [int(t) for t in np.cumsum(USUAL) if t < T] if T <= 5_000 else [],
    }
    return {how: cuts for how, cuts in ways.items() if cuts}


def check_invalid_rows(subject: Subject, stream: Stream, run: Run) -> None:
    """Check that invalid rows (autoreset rows, for one) are paid 0, move no clock and leave no trace."""
    if stream.valid is None:
        return
    paid, nothing = ~stream.valid & (run.shaped != 0), np.zeros_like(run.shaped)
    refuse_where(paid, "invalid rows", "an invalid row is paid", stream, run.shaped, nothing)
    keep = np.ones(len(stream.rewards), dtype=bool)
    if stream.rewards.shape[1] == 1:
        keep = stream.valid[:, 0]
        other = replace(stream.rows(keep), valid=None)
    else:
        rewards = np.where(stream.live, stream.rewards, -7.0)
        other = replace(stream, rewards=rewards, dones=np.where(stream.live, stream.dones, ~stream.dones))
    mine, others = run.shaped[keep], step_through(subject, other, keep=()).shaped
    differ = np.argwhere(differences(subject.epsilon, stream.rows(keep), mine, others))
    if len(differ):
        t, b = differ[0]
        what = "an invalid row changes the shaped rewards of valid rows"
        raise Finding("invalid rows", what, stream, np.flatnonzero(keep)[t], b, mine[t, b], others[t, b])


def check_layouts(subject: Subject, stream: Stream) -> None:
    """Check that strided and read-only arrays are shaped like any other, in steps and in blocks."""
    paid = step_through(subject, stream, keep=()).shaped
    for name, change in (LAYOUTS | NUMPY_LAYOUTS if subject.xp is np else LAYOUTS).items():
        columns = _columns(subject, stream, change, change)
        for how, pay in (("update", _step), ("shape_rollout", _roll)):
            found = pay(subject, stream, columns)
            differ = differences(subject.epsilon, stream, found, paid)
            what = f"{how} returns something else for {name} with the same numbers"
            refuse_where(differ, "input", what, stream, found, paid)


def check_flag_dtypes(subject: Subject, stream: Stream) -> list[str]:
    """Check flags of other dtypes; return the dtypes that are refused with an error.

    Shaped rewards may differ from those for booleans: a mean that reads `reward[valid]` becomes another one. Zero sum
    must hold for any causal mean, and the same rows must be paid.
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
        _check_still_zero_sum(subject, stream, paid, how)
        what = f"a row is paid that is not paid with booleans, or the reverse, {how}"
        refuse_where((paid != 0) != (plain != 0), "input", what, stream, paid, plain)
    return refused


def check_nan_in_invalid_rows(subject: Subject, stream: Stream) -> list[str]:
    """Check that NaN in invalid rows changes nothing; return whether it is refused."""
    poisoned = replace(stream, rewards=np.where(stream.live, stream.rewards, np.nan))
    try:
        paid = step_through(subject, poisoned, keep=()).shaped
    except Exception:
        return ["NaN in invalid rows"]
    _check_still_zero_sum(subject, stream, paid, "with NaN in the invalid rows, which do not count")
    return []


def _check_still_zero_sum(subject: Subject, stream: Stream, paid: np.ndarray, how: str) -> None:
    bad = ~stream.live & (paid != 0) | ~np.isfinite(paid)
    what = f"an invalid row is paid, or a shaped reward is not finite, {how}"
    refuse_where(bad, "input", what, stream, paid, np.zeros_like(paid))
    try:
        check_zero_sum(subject.gamma, subject.epsilon, stream, paid)
    except Finding as found:
        where = (found.step, found.environment, found.paid, found.owed)
        raise Finding("input", f"{found}, {how}", stream, *where) from None


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
    return Continuation(subject, stream, columns).paid_from(subject.init(columns[0].shape[1]))


def _roll(subject: Subject, stream: Stream, columns: list[Any]) -> np.ndarray:
    return as_numpy(shape_rollout(subject.transform, subject.init(columns[0].shape[1]), *columns)[1])
