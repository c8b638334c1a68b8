"""`shape_rollout` pays what stepping pays, wherever a rollout is cut, and leaves a state that goes on alike."""

from __future__ import annotations

import numpy as np

from payback.check.finding import refuse_where
from payback.check.run_stream import Run, Way, roll_through
from payback.check.stream import Stream, continuations
from payback.check.subject import Subject

USUAL = (1, 2, 3, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1000, 1024)
"""Lengths of rollouts that people use; a stream is cut into as many of them as it has steps for."""
WHOLE: dict[str, list[int]] = {"at once": []}
SHORT = 60
"""Streams of up to so many steps are held to every law at every step; longer ones at some of the steps."""
MOST = 100
"""At most so many borders in one way to cut a stream."""
LONGEST = 5_000
"""Streams of more steps are not cut into the usual lengths, because going through them once more takes long."""


def check_blocks(subject: Subject, stream: Stream, run: Run, at_once: bool = False) -> None:
    """Hold blocks, cut in several ways or all `at_once`, to stepping."""
    T = len(stream.rewards)
    if subject.compiled and T % 5:
        return  # each new length is compiled anew, which takes as long as all steps of a stream
    way = Way(subject, continuations(stream)[1])
    whole = stream.followed_by(way.stream)
    after = way.paid_from(run.states[-1])
    for how, cuts in (WHOLE if at_once else WHOLE | _ways_to_cut(subject, stream)).items():
        block = roll_through(subject, stream, cuts)
        differ = differences(subject.epsilon, stream, block.shaped, run.shaped)
        what = f"shape_rollout, {how}, pays something else than stepping"
        refuse_where(differ, "rollout", what, stream, block.shaped, run.shaped)
        then = way.paid_from(block.states[-1])
        differ = differences(subject.epsilon, whole, then, after, T)
        what = f"the state left by shape_rollout, {how}, goes on otherwise than the one left by stepping"
        refuse_where(differ, "rollout", what, stream, then, after, T)


def check_block_leaves_state(subject: Subject, stream: Stream, run: Run) -> None:
    """`shape_rollout` leaves the state that it was given as it was: asked again, it pays the same."""
    t = len(stream.rewards) // 2
    rest, state = stream.rows(slice(t, None)), run.states[t]
    first, again = (roll_through(subject, rest, [], state).shaped for _ in range(2))
    what = "asked again with the same state, shape_rollout pays something else: it changes the state it was given"
    refuse_where(first != again, "purity", what, stream, again, first, t)


def differences(epsilon: float, stream: Stream, one: np.ndarray, other: np.ndarray, first: int = 0) -> np.ndarray:
    """Return where payments differ by more than rounding.

    Rounding is measured against all rewards so far, because a centred reward carries the rounding of F̄ and F̄ that of
    every reward before it; the reward of a last step, which is lent and repaid at once, counts only afterwards. The
    payments are those of the stream's rows from `first` on.
    """
    sizes = np.where(stream.live, np.abs(stream.rewards), 0.0)
    before = np.concatenate((np.zeros(1), np.maximum.accumulate(sizes.max(axis=1, initial=0))))[:-1]
    scale = before[:, None] + np.where(stream.dones, 0.0, sizes)
    paid = np.maximum.accumulate(np.maximum(np.abs(one), np.abs(other)), axis=0) if len(one) else np.abs(one)
    return ~(np.abs(one - other) <= epsilon * (scale[first:] + paid))


def _ways_to_cut(subject: Subject, stream: Stream) -> dict[str, list[int]]:
    """Return where blocks begin, by what to call it."""
    T = len(stream.rewards)
    ends = np.flatnonzero(stream.dones.any(axis=1))
    if subject.compiled:
        return {}
    ways = {
        "with borders right after the ends": [int(t) + 1 for t in ends if t + 1 < T][:MOST],
        "with borders right before the last steps": [int(t) for t in ends if t > 0][:MOST],
        "in blocks of 4 steps": list(range(3, T, 4))[:MOST],
        "with a block of no steps": [T // 2, T // 2] if 8 <= T <= SHORT else [],
        "in blocks of usual lengths": [int(t) for t in np.cumsum(USUAL) if t < T] if T <= LONGEST else [],
    }
    return {how: cuts for how, cuts in ways.items() if cuts}
