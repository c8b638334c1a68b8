"""Running a stream through a transform, step by step or in blocks."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from payback.check.stream import Finding, Stream
from payback.check.subject import Subject, as_numpy
from payback.core.arrays import Array
from payback.core.rollout import shape_rollout
from payback.core.transform import Match, State


@dataclass
class Run:
    """The shaped rewards of a stream, and the states on the way."""

    shaped: np.ndarray
    """(T, B) float64."""
    states: list[State]
    """T + 1 states, the one before each step and the last one; None where nobody asked for it."""
    stride: int = 0
    """An end was tried before every so many steps, and after the last; 0 for never."""
    endings: np.ndarray | None = None
    """(K, B) the shaped rewards if all episodes ended right there."""
    debts: np.ndarray | None = None
    """(K, B) what a match says that it owes at these places."""

    @property
    def places(self) -> np.ndarray:
        """(K,) the steps before which an end was tried; the last is T."""
        T = len(self.shaped)
        return np.append(np.arange(0, T, self.stride), T)


def step_through(subject: Subject, stream: Stream, keep: Container[int] | None = None, stride: int = 0) -> Run:
    """Step through a stream; check the shapes, and that neither inputs nor earlier answers are overwritten.

    `keep` are the steps whose states are wanted. With `stride`, an end is tried before every so many steps.
    """
    T, B = stream.rewards.shape
    state, states = subject.init(B), list[State]()
    answers: list[Array] = []
    copies, ended, debts = np.empty((T, B)), list[np.ndarray](), list[np.ndarray]()
    match = subject.transform if isinstance(subject.transform, Match) else None
    update, end_now = subject.update, subject.ending(B)
    rewards: Array = subject.floats(stream.rewards)
    dones, flags = _own_flags(subject, stream)
    for t in range(T + 1):
        states.append(state if keep is None or t in keep else None)
        if stride and (t % stride == 0 or t == T):
            ended.append(end_now(state))
            if match is not None:
                debts.append(_debt(match.owed(state), stream, t))
        if t == T:
            break
        state, shaped = update(state, rewards[t], dones[t], **{name: f[t] for name, f in flags.items()})
        if tuple(np.shape(shaped)) != (B,):
            what = f"update returned an array of shape {np.shape(shaped)} for {B} environments; return one number each"
            raise Finding("shape", what, stream, t)
        copies[t] = shaped if type(shaped) is np.ndarray else as_numpy(shaped)
        answers.append(shaped)
    _check_inputs_unchanged(subject, stream, rewards, {"dones": dones, **flags})
    for t in range(0, T, max(1, T // 50)):
        if not np.array_equal(as_numpy(answers[t]), copies[t], equal_nan=True):
            what = f"later steps overwrite the shaped reward of step {t}: update returns memory that it uses again"
            raise Finding("purity", what, stream, t)
    return Run(copies, states, stride, np.array(ended) if stride else None, np.array(debts) if debts else None)


class Continuation:
    """A stream that is stepped through from many states; its rows are converted once, or given as `columns`."""

    def __init__(self, subject: Subject, stream: Stream, columns: list[Any] | None = None) -> None:
        self.subject, self.stream = subject, stream
        if columns is None:
            columns = [subject.floats(stream.rewards), *map(subject.flags, (stream.dones, stream.valid, stream.settle))]
        self.rows: list[tuple[Any, ...]] = [
            tuple(None if x is None else x[t] for x in columns) for t in range(len(stream.rewards))
        ]

    def paid_from(self, state: State) -> np.ndarray:
        """Return the shaped rewards (T, B) from this state on."""
        shaped: list[np.ndarray] = []
        for row in self.rows:
            state, paid = self.subject.update(state, *row)
            shaped.append(as_numpy(paid))
        return np.array(shaped)


def roll_through(subject: Subject, stream: Stream, cuts: list[int], state: State | None = None) -> Run:
    """Shape the stream in blocks, as rollouts that begin at 0 and at each of the `cuts`."""
    T, B = stream.rewards.shape
    state, shaped = subject.init(B) if state is None else state, np.empty((T, B))
    for first, last in pairwise([0, *cuts, T]):
        block = stream.rows(slice(first, last))
        rewards: Any = subject.floats(block.rewards.copy())  # its own memory, because it is overwritten below
        dones, flags = _own_flags(subject, block)
        if subject.compiled:
            rewards = subject.xp.asarray(rewards)
        state, paid = shape_rollout(subject.transform, state, rewards, dones, **flags)
        shaped[first:last] = as_numpy(paid)
        _check_inputs_unchanged(subject, block, rewards, {"dones": dones, **flags})
        if not subject.compiled:
            # Rollout buffers are filled again: a shaper that keeps a view of one instead of a copy loses its debt.
            rewards[:] = -7
    return Run(shaped, [state])


def _own_flags(subject: Subject, stream: Stream) -> tuple[Any, dict[str, Any]]:
    """Return the ends, and the other flags that the stream has, in memory of their own."""
    given = (("valid", stream.valid), ("settle", stream.settle))
    return subject.flags(stream.dones.copy()), {name: subject.flags(f.copy()) for name, f in given if f is not None}


def _debt(debt: Array, stream: Stream, t: int) -> np.ndarray:
    """Return what `owed` returned, (B,)."""
    B: int = stream.rewards.shape[1]
    if tuple(np.shape(debt)) != (B,):
        what = f"owed returned an array of shape {np.shape(debt)} for {B} environments; return one debt each"
        raise Finding("shape", what, stream.rows(slice(0, max(t, 1))), t)
    return as_numpy(debt)


def _check_inputs_unchanged(subject: Subject, stream: Stream, rewards: Array, flags: dict[str, Any]) -> None:
    given = as_numpy(subject.floats(stream.rewards))
    changed = ~((as_numpy(rewards) == given) | np.isnan(given))
    for name, now in flags.items():
        changed |= as_numpy(now) != getattr(stream, name)
    if changed.any():
        t = int(np.argwhere(changed)[0, 0])
        what = f"it overwrites the rewards or flags that it was given, at step {t}; the caller still needs them"
        raise Finding("purity", what, stream, t)
