"""`update` is pure: the same state and reward give the same answer, and no array is shared with the caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from payback.check.finding import Finding, refuse_where
from payback.check.run_stream import Run, Way
from payback.check.stream import Stream
from payback.check.subject import Subject, as_numpy


def check_example(subject: Subject, stream: Stream) -> None:
    """`init` leaves the example that it was given as it was."""
    B: int = stream.rewards.shape[1]
    example = subject.example_of(B)
    subject.transform.init(example)
    if not np.array_equal(as_numpy(example), as_numpy(subject.example_of(B))):
        raise Finding("purity", "init changes the example it was given: it is the caller's array", stream, 0)


def check_asked_again(subject: Subject, stream: Stream, run: Run) -> None:
    """The same state and reward give the same answer, however often and however late they are asked for."""
    for t, state in enumerate(run.states[:-1]):
        if state is None:
            continue
        again, before = Way(subject, stream.rows(slice(t, t + 1))).paid_from(state), run.shaped[t : t + 1]
        what = "asked again with the same state and reward, update pays something else: it keeps hidden state"
        refuse_where(again != before, "purity", what, stream, again, before, t)


def check_own_memory(subject: Subject, stream: Stream, run: Run) -> None:
    """A caller who overwrites the arrays it has lent and was paid, right after each step, is paid the same."""
    if subject.compiled:
        return
    state, shaped = subject.init(stream.rewards.shape[1]), np.empty(stream.rewards.shape)
    columns = (stream.dones, stream.valid, stream.settle)
    lent: list[Any] = [
        subject.floats(stream.rewards.copy()),
        *(None if x is None else subject.flags(x.copy()) for x in columns),
    ]
    for t in range(len(shaped)):
        rows: list[Any] = [None if x is None else x[t] for x in lent]
        state, paid = subject.transform.update(state, *rows)
        shaped[t] = as_numpy(paid)
        if getattr(getattr(paid, "flags", None), "writeable", True):
            paid[:] = -7
        for row in rows:
            if row is not None:
                row[:] = -7
    what = "it keeps an array that it was given or has paid instead of a copy: callers write into theirs"
    refuse_where(shaped != run.shaped, "purity", what, stream, shaped, run.shaped)
