"""The order in which a transform is held to the laws on one stream."""

from __future__ import annotations

import numpy as np

from payback.check.blocks import SHORT, check_block_leaves_state, check_blocks
from payback.check.debt import check_debts, check_owed
from payback.check.finding import Finding, refuse_where
from payback.check.invalid_rows import check_invalid_rows
from payback.check.laws import check_each_step, check_zero_sum
from payback.check.purity import check_asked_again, check_own_memory
from payback.check.rounding import first_drift
from payback.check.run_stream import step_through
from payback.check.stream import Stream, episodes_of
from payback.check.subject import Subject

DRIFTS = (2_000, 20_000)
"""Streams of as many steps are long enough for rounding to grow, and short enough to be stepped through again."""


def examine(subject: Subject, stream: Stream) -> None:
    """Hold the transform to every law on one stream."""
    steps, size = episodes_of(stream).longest + 12, stream.size
    try:
        cuts = _cuts(stream)
        short = len(stream.rewards) <= SHORT
        run = step_through(subject, stream, keep=True if short else set(cuts), endings=True)
        if not np.isfinite(run.shaped).all():
            if subject.precision.may_overflow(subject.gamma, steps, size):
                return
            what = "what is paid is not a finite number"
            refuse_where(~np.isfinite(run.shaped), "finite", what, stream, run.shaped, None)
        check_invalid_rows(subject, stream, run)
        check_zero_sum(subject.gamma, subject.epsilon, stream, run.shaped)
        check_asked_again(subject, stream, run)
        check_owed(subject, stream, run)
        check_debts(subject, stream, run, cuts)
        check_each_step(subject.gamma, subject.epsilon, stream, run.shaped, run.endings)
        if short:
            check_own_memory(subject, stream, run)
        check_blocks(subject, stream, run)
        if short and not subject.compiled:
            check_block_leaves_state(subject, stream, run)
    except OverflowError:
        if not subject.precision.may_overflow(subject.gamma, steps, size):
            raise


def examine_repayment(subject: Subject, stream: Stream) -> None:
    """Hold the transform to zero sum and to the law between neighbouring steps only: the cheapest that finds most."""
    run = step_through(subject, stream, endings=True)
    check_zero_sum(subject.gamma, subject.epsilon, stream, run.shaped)
    check_each_step(subject.gamma, subject.epsilon, stream, run.shaped, run.endings)


def examine_batch(subject: Subject, stream: Stream) -> None:
    """Hold the transform to the laws that a number of environments may break, on few steps of many environments."""
    run = step_through(subject, stream, endings=True)
    check_each_step(subject.gamma, subject.epsilon, stream, run.shaped, run.endings)
    check_zero_sum(subject.gamma, subject.epsilon, stream, run.shaped)
    check_owed(subject, stream, run)
    check_blocks(subject, stream, run, at_once=True)


def compare_precisions(wide: Subject, narrow: Subject, stream: Stream) -> None:
    """Hold float32 to staying near float64: what drifts apart loses its debt in rounding."""
    size = stream.size
    try:
        one, other = (step_through(subject, stream).shaped for subject in (wide, narrow))
    except OverflowError:
        if narrow.precision.may_overflow(narrow.gamma, len(stream.rewards), size):
            return
        raise
    if not np.isfinite(other).all() and narrow.precision.may_overflow(narrow.gamma, len(stream.rewards), size):
        return
    drift = first_drift(one, other, size)
    if drift is not None:
        t, b = drift
        what = (
            f"float32 pays {other[t, b]:.6g} where float64 pays {one[t, b]:.6g}: rounding errors grow from step to "
            "step; keep the loans and sum them anew instead of carrying debt ← debt/γ"
        )
        raise Finding("precision", what, stream, t, b, other[t, b], one[t, b])


def _cuts(stream: Stream) -> list[int]:
    """The steps from which the stream is continued in other ways: all of a short one, the odd places of a long one."""
    T = len(stream.rewards)
    if T <= 12:
        return list(range(T + 1))
    ends = np.flatnonzero(stream.dones.any(axis=1))[-2:]
    places = {1, T, *np.linspace(0, T, 6).astype(int).tolist(), *(ends + 1).tolist(), *ends.tolist()}
    return sorted(int(t) for t in places)
