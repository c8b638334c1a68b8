"""The debt: the rest of an episode takes it back whatever comes; a match tells it (`owed`) and forgets it (`drop`)."""

from __future__ import annotations

import numpy as np

from payback.check.finding import Finding
from payback.check.laws import worth
from payback.check.run_stream import Run, Way
from payback.check.stream import Stream, continuations, row
from payback.check.subject import Subject, as_numpy, is_match
from payback.core.transform import State, drop, owed


def check_debts(subject: Subject, stream: Stream, run: Run, cuts: list[int]) -> None:
    """Hold what is owed at each of the cuts to what the rest of the episode takes back."""
    ways = [Way(subject, way) for way in continuations(stream.rewards.shape[1], size_of(stream))]
    for t in cuts:
        state, lent = run.states[t], stream.lent_before[t]
        tails = [worth(subject.gamma, way.stream, way.paid_from(state)) for way in ways]
        scale = sum(scale for _, scale in tails) + lent
        _check_same_rest(subject, stream, t, ways, [tail for tail, _ in tails], scale)
        if is_match(subject.transform):
            _check_owed_and_drop(subject, stream, t, state, ways[1], tails[1][0], scale)


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
                f"{tail[b]:.6g} if it goes on for {steps} with rewards {row(way.stream.rewards[:steps, b])}"
            )
            whole = stream.rows(slice(0, t)).followed_by(way.stream)
            raise Finding("the law", what, whole, t, b, tail[b], tails[0][b])


def _check_owed_and_drop(
    subject: Subject, stream: Stream, t: int, state: State, way: Way, tail: np.ndarray, scale: np.ndarray
) -> None:
    """`owed` is what the rest of the episode takes back, and `drop` makes it nothing, for those asked for only."""
    transform = subject.transform
    if transform.owed is None:
        return
    debt = as_numpy(owed(transform, state))
    _same(subject, stream, t, -tail, debt, scale, "owed tells another debt than is repaid")
    if transform.drop is None:
        return
    where = np.arange(len(debt)) % 2 == 0
    after, dropped = drop(transform, state, subject.flags(where))
    tail, _ = worth(subject.gamma, way.stream, way.paid_from(after))
    left = np.where(where, 0.0, debt)
    _same(subject, stream, t, -tail, left, scale, "after drop the wrong debt is repaid")
    _same(subject, stream, t, as_numpy(dropped), debt - left, scale, "drop tells another debt than owed")


def size_of(stream: Stream) -> float:
    """The size of a stream's rewards, never 0."""
    return max(float(np.abs(stream.rewards).max(initial=0)), 1e-30)


def _same(
    subject: Subject, stream: Stream, t: int, found: np.ndarray, due: np.ndarray, scale: np.ndarray, what: str
) -> None:
    bad = np.flatnonzero(~(np.abs(found - due) <= subject.epsilon * scale))
    if bad.size:
        b = int(bad[0])
        raise Finding("debt", what, stream.rows(slice(0, t)), t, b, found[b], due[b])
