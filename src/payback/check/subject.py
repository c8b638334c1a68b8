"""The transform under test in one array library and dtype, what rounding this allows, and a stream's run through it."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.check.stream import Finding, Stream, episodes_of, one_episode
from payback.core.arrays import Array, constant, namespace
from payback.core.rollout import shape_rollout
from payback.core.transform import Match, RewardTransform, State


class Precision(NamedTuple):
    """The relative error that a floating dtype allows, and its largest finite number."""

    epsilon: float
    largest: float


FLOAT64 = Precision(1e-10, float(np.finfo(np.float64).max))
FLOAT32 = Precision(1e-5, float(np.finfo(np.float32).max))
FLOAT16 = Precision(80 * float(np.finfo(np.float16).eps), float(np.finfo(np.float16).max))


@dataclass(frozen=True)
class Tested:
    """What is under test: the discount that it must cancel at, and the rounding that is allowed."""

    gamma: float
    precision: Precision

    @property
    def epsilon(self) -> float:
        """The relative error that is allowed."""
        return self.precision.epsilon

    def may_overflow(self, stream: Stream, precision: Precision | None = None) -> bool:
        """Whether the interest in the longest episode is more than the dtype holds, so that raising is right."""
        steps, room = episodes_of(stream).longest + 12, np.log((precision or self.precision).largest) - 7
        return -np.log(self.gamma) * steps + float(np.log(max(stream.size, 1e-30) * steps)) > room


@dataclass(frozen=True)
class Subject(Tested):
    """A transform under test, in the array library, dtype and device of `example`."""

    transform: RewardTransform
    example: Array

    @cached_property
    def xp(self) -> Any:
        """The array library."""
        return namespace(self.example)

    @cached_property
    def compiled(self) -> bool:
        """Whether each new shape is compiled (JAX), which makes new shapes expensive."""
        return is_jax_namespace(self.xp)

    @property
    def dtype(self) -> str:
        """The name of the dtype, "float64" for one."""
        return str(self.example.dtype).rpartition(".")[2]

    @property
    def library(self) -> str:
        """The name of the array library, "numpy" for one."""
        return type(self.example).__module__.partition(".")[0].removesuffix("lib")

    @cached_property
    def update(self) -> Any:
        """The transform's `update`; under JAX it is compiled, or a step would take a hundred times as long."""
        return import_module("jax").jit(self.transform.update) if self.compiled else self.transform.update

    @cached_property
    def has_block_form(self) -> bool:
        """Whether `shape_rollout` does more for this transform than call `update` row after row."""
        blocks = [part._block for part in self.transform._parts or (self.transform,)]
        return any(getattr(block, "__func__", block) is not RewardTransform._block for block in blocks)

    def floats(self, values: np.ndarray) -> Array:
        """Return rewards in the library and dtype under test, in memory of their own."""
        if self.xp is np or self.compiled:
            return values.astype(np.dtype(str(self.example.dtype)))
        return constant(self.xp, values.copy(), self.example)

    def flags(self, values: np.ndarray) -> Array:
        """Return flags in the library under test, in memory of their own."""
        copy = values.copy()
        return copy if self.xp is np or self.compiled else self.xp.asarray(copy, device=self.example.device)

    def columns(self, stream: Stream) -> list[Any]:
        """Return the arguments of `shape_rollout`: rewards, dones, valid, settle; None for what the stream lacks."""
        flags = (stream.dones, stream.valid, stream.settle)
        return [self.floats(stream.rewards), *(None if x is None else self.flags(x) for x in flags)]

    def example_of(self, B: int) -> Any:
        """Return an example for B environments, in memory of its own."""
        return constant(self.xp, np.arange(1.0, B + 1), self.example)

    def init(self, B: int) -> State:
        """Return a new state for B environments."""
        example = self.example_of(B)
        state = self.transform.init(example)
        if not self.compiled:
            example[:] = -7  # the caller's array, often its first rewards: a state may hold copies only
        return state

    def ending(self, B: int) -> Callable[[State], np.ndarray]:
        """Return the function state → (B,), the shaped rewards if all episodes end now with a last reward of 0."""
        nothing, now = self.floats(np.zeros(B)), self.flags(np.ones(B, dtype=bool))
        return lambda state: as_numpy(self.update(state, nothing, now)[1])


def subject_of(transform: RewardTransform, example: Array, gamma: float) -> Subject:
    """Return a transform under test in the library and dtype of the example."""
    finfo = namespace(example).finfo(example.dtype)
    if finfo.eps >= 1e-12:
        return Subject(gamma, Precision(max(1e-5, 80 * float(finfo.eps)), float(finfo.max)), transform, example)
    subject = Subject(gamma, FLOAT64, transform, example)
    narrow = keeps_float32(lambda rewards: step_through(subject, one_episode(rewards)).shaped)
    return replace(subject, precision=FLOAT32) if narrow else subject


def as_numpy(x: Array) -> np.ndarray:
    """Return an array's values as float64."""
    return np.array(x.detach().cpu().double().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


def overwrite(x: Any) -> None:
    """Write into an array, as callers do that use their memory again, where its library allows it."""
    if getattr(getattr(x, "flags", None), "writeable", False) or hasattr(x, "detach"):
        x[:] = -7


def keeps_float32(pay: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether a function of one episode's rewards (N,), given float64, keeps its loans in float32.

    A change of the rewards by about one part in 2³⁰ moves a float64 settlement by about as much. A float32 settlement
    stays where it is or jumps by a unit in its last place. Two sizes are tried because a clip that stands before
    the match would hide the change of large rewards.
    """
    rewards = np.array([0.71, -0.37, 0.93, 0.58, -0.21, 0.87, 0.5], dtype=np.float32).astype(np.float64)
    # Not all by the same factor, which would cancel in a shaper that divides by the size of the rewards.
    other = rewards * (1 + 2.0**-30 * np.array([1.0, 0.6, -0.7, 0.9, -0.8, 0.5, -1.0]))
    for size in (1.0, 2.0**-10):
        try:
            settlement, moved = (float(pay(size * x).reshape(-1)[-1]) for x in (rewards, other))
        except Exception:  # the streams will show what is wrong with it
            return False
        if settlement == 0 or 0 < abs(moved - settlement) < 2.0**-26 * size:
            return False
    return True


@dataclass
class Run:
    """The shaped rewards (T, B) of a stream, and the states on the way."""

    subject: Subject
    stream: Stream
    shaped: np.ndarray
    states: list[State]  # the T + 1 before each step and after the last, None where nobody asked for it
    stride: int = 0  # an end was tried before every so many steps and after the last, if it is not 0
    endings: np.ndarray | None = None  # (K, B) the shaped rewards if all episodes ended right there
    debts: np.ndarray | None = None  # (K, B) what a match says that it owes

    @property
    def places(self) -> np.ndarray:
        """(K,) the steps before which an end was tried; the last is T."""
        T = len(self.shaped)
        return np.append(np.arange(0, T, self.stride), T)


def step_through(subject: Subject, stream: Stream, keep: Container[int] | None = (), stride: int = 0) -> Run:
    """Step through a stream; check the shapes, and that neither inputs nor earlier answers are overwritten.

    `keep` are the steps whose states are wanted, None for all. With `stride`, an end is tried before every so many.
    """
    T, B = stream.rewards.shape
    state, states = subject.init(B), list[State]()
    answers, copies = list[Array](), np.empty((T, B))
    ended, debts = list[np.ndarray](), list[np.ndarray]()
    match = subject.transform if isinstance(subject.transform, Match) else None
    update, end_now, columns = subject.update, subject.ending(B), subject.columns(stream)
    rows = rows_of(columns)

    def read(function: str, ask: str, answer: Array, t: int) -> Array:
        if tuple(np.shape(answer)) != (B,):
            what = f"{function} returned an array of shape {np.shape(answer)} for {B} environments; return {ask}"
            raise Finding("shape", what, stream, t)
        return answer

    for t in range(T + 1):
        states.append(state if keep is None or t in keep else None)
        if stride and (t % stride == 0 or t == T):
            ended.append(end_now(state))
            if match is not None:
                debts.append(as_numpy(read("owed", "one debt each", match.owed(state), t)))
        if t == T:
            break
        state, shaped = update(state, *rows[t])
        answers.append(read("update", "one number each", shaped, t))
        copies[t] = shaped if type(shaped) is np.ndarray else as_numpy(shaped)
    _refuse_changed_inputs(subject, stream, columns)
    for t in range(0, T, max(1, T // 50)):
        if not np.array_equal(as_numpy(answers[t]), copies[t], equal_nan=True):
            what = f"later steps overwrite the shaped reward of step {t}: update returns memory that it uses again"
            raise Finding("purity", what, stream, t)
    ends = np.array(ended) if stride else None
    return Run(subject, stream, copies, states, stride, ends, np.array(debts) if debts else None)


def rows_of(columns: list[Any]) -> list[tuple[Any, ...]]:
    """Return the arguments of each `update` but the state."""
    return [tuple(None if x is None else x[t] for x in columns) for t in range(len(columns[0]))]


class Continuation:
    """A stream that is stepped through from many states; its rows are converted once, or given as `columns`."""

    def __init__(self, subject: Subject, stream: Stream, columns: list[Any] | None = None) -> None:
        self.subject, self.stream = subject, stream
        self.rows = rows_of(subject.columns(stream) if columns is None else columns)

    def paid_from(self, state: State, reuse: bool = False) -> np.ndarray:
        """Return the shaped rewards (T, B) from this state on. `reuse` overwrites all arrays after each step."""
        shaped: list[np.ndarray] = []
        for row in self.rows:
            state, paid = self.subject.update(state, *row)
            shaped.append(as_numpy(paid))
            for x in (paid, *row) if reuse else ():
                overwrite(x)
        return np.array(shaped)


def roll_through(subject: Subject, stream: Stream, cuts: list[int], state: State | None = None) -> Run:
    """Shape the stream in blocks, as rollouts that begin at 0 and at each of the `cuts`."""
    T, B = stream.rewards.shape
    state, shaped = subject.init(B) if state is None else state, np.empty((T, B))
    for first, last in pairwise([0, *cuts, T]):
        block = stream[first:last]
        columns = subject.columns(block)
        if subject.compiled:
            columns[0] = subject.xp.asarray(columns[0])
        state, paid = shape_rollout(subject.transform, state, *columns)
        shaped[first:last] = as_numpy(paid)
        _refuse_changed_inputs(subject, block, columns)
        # Rollout buffers are filled again: a shaper that keeps a view of one instead of a copy loses its debt.
        overwrite(columns[0])
    return Run(subject, stream, shaped, [state])


def _refuse_changed_inputs(subject: Subject, stream: Stream, columns: list[Any]) -> None:
    changed = np.zeros(stream.dones.shape, dtype=bool)
    for now, given in zip(columns, subject.columns(stream), strict=True):
        if now is not None:
            before = as_numpy(given)
            changed |= ~((as_numpy(now) == before) | np.isnan(before))
    for t, _ in np.argwhere(changed)[:1]:
        what = f"it overwrites the rewards or flags that it was given, at step {t}; the caller still needs them"
        raise Finding("purity", what, stream, t)
