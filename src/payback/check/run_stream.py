"""Putting a stream through a transform, step by step or in blocks, and writing down what it paid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from payback.check.finding import Finding
from payback.check.stream import Stream
from payback.check.subject import Subject, as_numpy
from payback.core.arrays import Array
from payback.core.rollout import shape_rollout
from payback.core.transform import Match, State


@dataclass
class Run:
    """What a transform paid on a stream, and the states it went through."""

    shaped: np.ndarray
    """(T, B) float64."""
    states: list[State]
    """The state before each step, and after the last; only those asked for are kept, the others are None."""
    endings: np.ndarray | None = None
    """(T + 1, B) what would be paid if all episodes ended right there, where it was asked for."""
    debts: np.ndarray | None = None
    """(T + 1, B) what a match says it owes before each step, and after the last, where endings were asked for."""


def step_through(
    subject: Subject, stream: Stream, state: State | None = None, keep: Any = (), endings: bool = False
) -> Run:
    """Step through a stream; hold the transform to its shapes, and its answers to being its own.

    `keep` are the steps whose state is wanted (all of them with `keep=True`).
    """
    T, B = stream.rewards.shape
    state = subject.init(B) if state is None else state
    states: list[State] = []
    answers: list[Array] = []
    copies, ended, debts = np.empty((T, B)), np.empty((T + 1, B)), np.empty((T + 1, B))
    owed = subject.transform.owed if endings and isinstance(subject.transform, Match) else None
    update, end_now = subject.transform.update, subject.ending(B)
    rewards: Array = subject.floats(stream.rewards)
    dones, flags = _own_flags(subject, stream)
    for t in range(T):
        states.append(state if keep is True or t in keep else None)
        if endings:
            ended[t] = end_now(state)
        if owed is not None:
            debts[t] = _told(owed(state), stream, t)
        state, shaped = update(state, rewards[t], dones[t], **{name: f[t] for name, f in flags.items()})
        if tuple(np.shape(shaped)) != (B,):
            what = f"update returned an array of shape {np.shape(shaped)} for {B} environments; one step has one each"
            raise Finding("shape", what, stream, t)
        copies[t] = shaped if type(shaped) is np.ndarray else as_numpy(shaped)
        answers.append(shaped)
    states.append(state)
    _inputs_unchanged(subject, stream, rewards, {"dones": dones, **flags})
    for t in range(0, T, max(1, T // 50)):
        if not np.array_equal(as_numpy(answers[t]), copies[t], equal_nan=True):
            what = f"what was paid at step {t} is changed by later steps: update returns memory that it uses again"
            raise Finding("purity", what, stream, t)
    if endings:
        ended[T] = end_now(state)
    if owed is not None:
        debts[T] = _told(owed(state), stream, T)
    return Run(copies, states, ended if endings else None, None if owed is None else debts)


class Way:
    """A stream that is stepped through from many states: its rows are made ready once, from `columns` if given."""

    def __init__(self, subject: Subject, stream: Stream, columns: list[Any] | None = None) -> None:
        self.subject, self.stream = subject, stream
        if columns is None:
            columns = [subject.floats(stream.rewards), *map(subject.flags, (stream.dones, stream.valid, stream.settle))]
        self.rows: list[tuple[Any, ...]] = [
            tuple(None if x is None else x[t] for x in columns) for t in range(len(stream.rewards))
        ]

    def paid_from(self, state: State) -> np.ndarray:
        """Return what is paid (T, B) from this state on."""
        shaped: list[np.ndarray] = []
        for row in self.rows:
            state, paid = self.subject.transform.update(state, *row)
            shaped.append(as_numpy(paid))
        return np.array(shaped)


def roll_through(subject: Subject, stream: Stream, cuts: list[int], state: State | None = None) -> Run:
    """Shape the stream in blocks, as rollouts that begin at 0 and at each of the `cuts`."""
    T, B = stream.rewards.shape
    state, shaped = subject.init(B) if state is None else state, np.empty((T, B))
    for first, last in pairwise([0, *cuts, T]):
        block = stream.rows(slice(first, last))
        rewards: Any = subject.floats(block.rewards.copy())  # its own memory, because it is filled again below
        dones, flags = _own_flags(subject, block)
        if subject.compiled:
            rewards = subject.xp.asarray(rewards)
        state, paid = shape_rollout(subject.transform, state, rewards, dones, **flags)
        shaped[first:last] = as_numpy(paid)
        _inputs_unchanged(subject, block, rewards, {"dones": dones, **flags})
        if not subject.compiled:
            # Rollout buffers are filled again: a shaper that keeps a part of one instead of a copy loses it here.
            rewards[:] = -7
    return Run(shaped, [state])


def _own_flags(subject: Subject, stream: Stream) -> tuple[Any, dict[str, Any]]:
    """Return the ends, and the other flags that the stream has, in memory of their own."""
    given = (("valid", stream.valid), ("settle", stream.settle))
    return subject.flags(stream.dones.copy()), {name: subject.flags(f.copy()) for name, f in given if f is not None}


def _told(debt: Array, stream: Stream, t: int) -> np.ndarray:
    """Return what `owed` tells, (B,)."""
    B: int = stream.rewards.shape[1]
    if tuple(np.shape(debt)) != (B,):
        what = f"owed returned an array of shape {np.shape(debt)} for {B} environments; each has one debt"
        raise Finding("shape", what, stream.rows(slice(0, max(t, 1))), t)
    return as_numpy(debt)


def _inputs_unchanged(subject: Subject, stream: Stream, rewards: Array, flags: dict[str, Any]) -> None:
    """Hold the shaper to leaving the arrays that it was given as they were."""
    given = as_numpy(subject.floats(stream.rewards))
    changed = ~((as_numpy(rewards) == given) | np.isnan(given))
    for name, now in flags.items():
        changed |= as_numpy(now) != getattr(stream, name)
    if changed.any():
        t = int(np.argwhere(changed)[0, 0])
        what = f"it changes the rewards or flags it was given, at step {t}: others still need them"
        raise Finding("purity", what, stream, t)
