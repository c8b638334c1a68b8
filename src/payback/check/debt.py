"""The debt: the rest of an episode takes it back whatever comes; a match tells it (`owed`) and forgets it (`drop`)."""

from __future__ import annotations

import numpy as np

from payback.check.finding import Finding
from payback.check.laws import TINY, worth
from payback.check.run_stream import Run, Way
from payback.check.stream import Stream, continuations, written
from payback.check.subject import Subject, as_numpy
from payback.core.arrays import Array
from payback.core.transform import Match, State, drop, owed

LONG_ENOUGH = 4_000
"""Steps after which a loan that falls due by itself is repaid, for all but the longest delays."""


def check_debts(subject: Subject, stream: Stream, run: Run, cuts: list[int]) -> None:
    """Hold what is owed at each of the cuts to what the rest of the episode takes back."""
    ways = [Way(subject, way) for way in continuations(stream)]
    dropped_at = cuts[:: max(1, len(cuts) // 3)]
    for t in cuts:
        state, lent = run.states[t], stream.lent_before[t]
        tails = [worth(subject.gamma, way.stream, way.paid_from(state)) for way in ways]
        scale = sum(scale for _, scale in tails) + lent
        _check_same_rest(subject, stream, t, ways, [tail for tail, _ in tails], scale)
        if isinstance(subject.transform, Match) and t in dropped_at:
            _check_drop(subject, stream, t, state, ways[1], scale)


def _check_same_rest(
    subject: Subject, stream: Stream, t: int, ways: list[Way], tails: list[np.ndarray], scale: np.ndarray
) -> None:
    """The rest of the episode is worth −Debt: the same for all rewards and lengths to come."""
    for way, tail in zip(ways[1:], tails[1:], strict=True):
        bad = np.flatnonzero(~(np.abs(tail - tails[0]) <= subject.epsilon * scale))
        if bad.size:
            b = int(bad[0])
            steps = int(np.flatnonzero(way.stream.dones[:, b])[0]) + 1
            what = (
                f"after {t} steps the rest of the episode is worth {tails[0][b]:.6g} if it ends in 1 step, "
                f"{tail[b]:.6g} if it goes on for {steps} with rewards {written(way.stream.rewards[:steps, b])}"
            )
            whole = stream.rows(slice(0, t)).followed_by(way.stream)
            raise Finding("the law", what, whole, t, b, tail[b], tails[0][b])


def check_owed(subject: Subject, stream: Stream, run: Run) -> None:
    """`owed` is what ending now would take back, at every step."""
    if run.debts is None or run.endings is None:
        return
    # Rounding is as large as the largest payment so far allows: at γ = ½ a loan of 1 is repaid with a million.
    paid = np.vstack((np.zeros_like(run.shaped[:1]), np.maximum.accumulate(np.abs(run.shaped), axis=0)))
    scale = np.abs(run.debts) + np.abs(run.endings) + stream.lent_before + paid[: len(run.debts)] + TINY
    bad = np.argwhere(~(np.abs(run.debts + run.endings) <= subject.epsilon * scale))
    if len(bad):
        t, b = bad[0]
        what = "owed tells another debt than is repaid"
        raise Finding("debt", what, stream.rows(slice(0, t)), t, b, -run.endings[t, b], run.debts[t, b])


def _check_drop(subject: Subject, stream: Stream, t: int, state: State, way: Way, scale: np.ndarray) -> None:
    """`drop` makes the debt nothing, for those asked for only, and leaves what the others are paid as it is."""
    transform = subject.transform
    B: int = stream.rewards.shape[1]
    debt, before = as_numpy(owed(transform, state)), way.paid_from(state)
    _overwrite(owed(transform, state))
    b = np.arange(B)
    groups = {"nobody": b < 0, "everyone": b >= 0, "the first": b == 0, "every second": b % 2 == 1}
    for who, where in groups.items():
        after, dropped = drop(transform, state, subject.flags(where))
        left, paid = np.where(where, 0.0, debt), way.paid_from(after)
        tail, _ = worth(subject.gamma, way.stream, paid)
        _same(subject, stream, t, -tail, left, scale, f"after drop of {who} the wrong debt is repaid")
        _same(subject, stream, t, as_numpy(dropped), debt - left, scale, f"drop of {who} tells another debt than owed")
        moved = np.where(where, 0.0, np.abs(paid - before).max(axis=0))
        _same(subject, stream, t, moved, np.zeros(B), scale, f"drop of {who} changes what others are paid")
    again = np.abs(way.paid_from(state) - before).max(axis=0)
    what = "owed or drop changes the state that it was given, or hands out its memory"
    _same(subject, stream, t, again, np.zeros(B), scale, what)


def check_falls_due(subject: Subject, stream: Stream) -> None:
    """A match that says that each loan falls due by itself repays one that is followed by no reward and no end.

    γ^n Debt_n → 0                  what is left of it, valued at the first step
    """
    if len(stream.rewards) < LONG_ENOUGH or stream.dones.any() or not stream.rewards.any():
        return
    state, transform = subject.init(1), subject.transform
    for row in Way(subject, stream).rows:
        state, _ = transform.update(state, *row)
    left = float(as_numpy(owed(transform, state))[0]) * subject.gamma ** len(stream.rewards)
    if not abs(left) <= 0.5 * stream.size:  # NaN where the debt has overflowed
        what = f"it says that its loans fall due by themselves, but {len(stream.rewards):,} steps later none has"
        raise Finding("debt", what, stream, len(stream.rewards) - 1, 0, owed=left)


def _same(
    subject: Subject, stream: Stream, t: int, found: np.ndarray, due: np.ndarray, scale: np.ndarray, what: str
) -> None:
    bad = np.flatnonzero(~(np.abs(found - due) <= subject.epsilon * scale))
    if bad.size:
        b = int(bad[0])
        raise Finding("debt", what, stream.rows(slice(0, t)), t, b, found[b], due[b])


def _overwrite(told: Array) -> None:
    """Write into what was told, as a caller may, where its library allows it."""
    if getattr(getattr(told, "flags", None), "writeable", False) or hasattr(told, "detach"):
        told[:] = -7.0
