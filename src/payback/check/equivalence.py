"""The same rewards in blocks, with invalid rows, in other layouts and dtypes: shaped alike, or refused."""

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

USUAL = np.cumsum((1, 2, 3, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1000, 1024)).tolist()  # block borders
SHORT = 60  # streams of up to so many steps are checked at every step; longer ones at some of the steps
MOST = 25  # the most borders in one way to cut a stream


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


def check_blocks(run: Run, at_once: bool = False) -> None:
    """Check that `shape_rollout` equals stepping, cut in several ways or all `at_once`, and leaves an equal state."""
    subject, stream, T = run.subject, run.stream, len(run.shaped)
    if subject.compiled and T % 5:
        return  # compiling one more length takes as long as stepping through a stream
    if T > SHORT and not subject.has_block_form:
        return  # `shape_rollout` only steps
    way = Continuation(subject, continuations(stream)[0])
    whole, after = stream.followed_by(way.stream), way.paid_from(run.states[-1])
    ways = {} if at_once or subject.compiled or not subject.has_block_form else _ways_to_cut(stream)
    for how, cuts in {"at once": [], **ways}.items():
        block = roll_through(subject, stream, cuts)
        differ = differences(subject.epsilon, stream, block.shaped, run.shaped)
        what = f"shape_rollout, {how}, differs from stepping"
        refuse_where(differ, "rollout", what, stream, block.shaped, run.shaped)
        then = way.paid_from(block.states[-1])
        differ = differences(subject.epsilon, whole, then, after, T)
        what = f"the state that shape_rollout, {how}, returns goes on differently from the one that stepping returns"
        refuse_where(differ, "rollout", what, stream, then, after, T)


def check_block_leaves_state(run: Run) -> None:
    """Check that `shape_rollout` leaves its state unchanged: called again, it returns the same."""
    t = len(run.shaped) // 2
    first, again = (roll_through(run.subject, run.stream[t:], [], run.states[t]).shaped for _ in range(2))
    what = "shape_rollout returns something else when it is called again: it changes the state that it was given"
    refuse_where(first != again, "purity", what, run.stream, again, first, t)


def _ways_to_cut(stream: Stream) -> dict[str, list[int]]:
    """Return where blocks begin, by a name for it."""
    T = len(stream.rewards)
    ends = np.flatnonzero(stream.dones.any(axis=1))
    ways = {
        "with borders right after the ends": [int(t) + 1 for t in ends if t + 1 < T][:MOST],
        "with borders right before the last steps": [int(t) for t in ends if t > 0][:MOST],
        "in blocks of 4 steps": list(range(3, T, 4))[:MOST],
        "with a block of no steps": [T // 2, T // 2] if 8 <= T <= SHORT else [],
        "in blocks of usual lengths": [t for t in USUAL if t < T] if T <= 5_000 else [],
    }
    return {how: cuts for how, cuts in ways.items() if cuts}


def check_invalid_rows(run: Run) -> None:
    """Check that invalid rows (autoreset rows, for one) are paid 0, move no clock and leave no trace."""
    subject, stream, live = run.subject, run.stream, run.stream.live
    if stream.valid is None:
        return
    paid, nothing = ~live & (run.shaped != 0), np.zeros_like(run.shaped)
    refuse_where(paid, "invalid rows", "an invalid row is paid", stream, run.shaped, nothing)
    keep = np.ones(len(live), dtype=bool)
    if live.shape[1] == 1:
        keep = live[:, 0]
        other = replace(stream[keep], valid=None)
    else:
        changed = np.where(live, stream.rewards, -7.0)
        other = replace(stream, rewards=changed, dones=np.where(live, stream.dones, ~stream.dones))
    mine, others = run.shaped[keep], step_through(subject, other).shaped
    for t, b in np.argwhere(differences(subject.epsilon, stream[keep], mine, others))[:1]:
        what = "an invalid row changes the shaped rewards of valid rows"
        raise Finding("invalid rows", what, stream, np.flatnonzero(keep)[t], b, mine[t, b], others[t, b])


def check_forms(subject: Subject, stream: Stream) -> list[str]:
    """Pass other layouts, flags of other dtypes and NaN in invalid rows; return what is refused with an error."""
    example, same = (subject.example_of(stream.rewards.shape[1]) for _ in range(2))
    subject.transform.init(example)
    if not np.array_equal(as_numpy(example), as_numpy(same)):
        raise Finding("purity", "init overwrites the example that it was given: it is the caller's array", stream, 0)
    paid = step_through(subject, stream).shaped
    for name, change in (LAYOUTS | NUMPY_LAYOUTS if subject.xp is np else LAYOUTS).items():
        columns: list[Any] = [None if x is None else change(x) for x in subject.columns(stream)]
        rolled = shape_rollout(subject.transform, subject.init(paid.shape[1]), *columns)[1]
        for how, found in (("update", _step(subject, stream, columns)), ("shape_rollout", as_numpy(rolled))):
            differ = differences(subject.epsilon, stream, found, paid)
            what = f"{how} returns something else for {name} with the same numbers"
            refuse_where(differ, "input", what, stream, found, paid)
    forms = dict[str, list[Any]]()
    for dtype in ("uint8", "int64", "float32"):
        rewards, *flags = subject.columns(stream)
        forms[f"{dtype} flags"] = [rewards, *(None if x is None else _cast(subject, x, dtype) for x in flags)]
    if stream.valid is not None:
        with_nan = replace(stream, rewards=np.where(stream.live, stream.rewards, np.nan))
        forms["NaN in invalid rows"] = subject.columns(with_nan)
    return [form for form, columns in forms.items() if _refuses(subject, stream, form, columns, paid)]


def _cast(subject: Subject, x: Array, dtype: str) -> Array:
    return x.to(getattr(subject.xp, dtype)) if hasattr(x, "detach") else x.astype(dtype)


def _refuses(subject: Subject, stream: Stream, form: str, columns: list[Any], plain: np.ndarray) -> bool:
    """Pass a form that may be refused with an error; return whether it is. Else the same rows must be paid."""
    try:
        paid = _step(subject, stream, columns)
    except Exception:  # raising is right: nothing is paid
        return True
    how = f"with {form} (convert, ignore or refuse them)"
    what = f"an invalid row is paid, or a shaped reward is not finite, {how}"
    refuse_where(~stream.live & (paid != 0) | ~np.isfinite(paid), "input", what, stream, paid, np.zeros_like(paid))
    try:  # not their amounts: a mean that reads `reward[valid]` becomes another one, and any causal mean is right
        check_zero_sum(subject, stream, paid)
    except Finding as found:
        where = (found.step, found.environment, found.paid, found.owed)
        raise Finding("input", f"{found}, {how}", stream, *where) from None
    what = f"a row is paid that is not paid in the plain form, or the reverse, {how}"
    refuse_where((paid != 0) != (plain != 0), "input", what, stream, paid, plain)
    return False


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "arrays that are not contiguous": lambda x: x.T.contiguous().T if hasattr(x, "detach") else np.asfortranarray(x)
}
NUMPY_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "arrays with negative strides": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "read-only arrays": lambda x: np.broadcast_to(x, x.shape),
}


def _step(subject: Subject, stream: Stream, columns: list[Any]) -> np.ndarray:
    return Continuation(subject, stream, columns).paid_from(subject.init(columns[0].shape[1]))
