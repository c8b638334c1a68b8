"""Invalid rows (autoreset rows, for one) are paid 0, move no clock and leave no trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from payback.check.blocks import differences
from payback.check.finding import Finding, refuse_where
from payback.check.run_stream import Run, step_through
from payback.check.stream import Stream
from payback.check.subject import Subject


def check_invalid_rows(subject: Subject, stream: Stream, run: Run) -> None:
    """Hold the transform to paying 0 for invalid rows, and to paying the others as if those were not there."""
    if stream.valid is None:
        return
    paid, nothing = ~stream.valid & (run.shaped != 0), np.zeros_like(run.shaped)
    refuse_where(paid, "invalid rows", "an invalid row is paid", stream, run.shaped, nothing)
    if stream.rewards.shape[1] == 1:
        keep = stream.valid[:, 0]
        other, mine = step_through(subject, replace(stream.rows(keep), valid=None)).shaped, run.shaped[keep]
    else:
        other, mine = step_through(subject, _with_garbage(stream, -7.0)).shaped, run.shaped
        keep = np.ones(len(mine), dtype=bool)
    differ = np.argwhere(differences(subject.epsilon, stream.rows(keep), mine, other))
    if len(differ):
        t, b = differ[0]
        what = "an invalid row changes what is paid for valid ones"
        raise Finding("invalid rows", what, stream, np.flatnonzero(keep)[t], b, mine[t, b], other[t, b])


def _with_garbage(stream: Stream, reward: float) -> Stream:
    """Return the stream with other rewards and ends in its invalid rows."""
    rewards = np.where(stream.live, stream.rewards, reward)
    return replace(stream, rewards=rewards, dones=np.where(stream.live, stream.dones, ~stream.dones))
