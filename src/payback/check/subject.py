"""The transform under test in one array library and dtype, what rounding this allows, and a stream's run through it."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace

from payback.check.stream import Finding, Stream
from payback.core.arrays import Array, constant, namespace
from payback.core.rollout import shape_rollout
from payback.core.transform import Match, RewardTransform, State


@dataclass(frozen=True)
class Precision:
    """The relative error and the largest number of a floating dtype."""

    epsilon: float
    """The relative error that is allowed."""
    largest: float
    """The largest finite number."""

    def may_overflow(self, gamma: float, steps: int, size: float) -> bool:
        """Whether the interest on `steps` steps is more than the dtype holds, so that raising is right."""
        room = float(np.log(self.largest)) - 7
        return -np.log(gamma) * steps + float(np.log(max(size, 1e-30) * max(steps, 1))) > room


FLOAT64 = Precision(1e-10, float(np.finfo(np.float64).max))
FLOAT32 = Precision(1e-5, float(np.finfo(np.float32).max))
FLOAT16 = Precision(80 * float(np.finfo(np.float16).eps), float(np.finfo(np.float16).max))


@dataclass(frozen=True)
class Subject:
    """A transform under test, in one array library and dtype."""

    transform: RewardTransform
    example: Array
    """An array of the library, dtype and device to test it in."""
    gamma: float
    precision: Precision = field(default=FLOAT64)

    @cached_property
    def xp(self) -> Any:
        """The array library."""
        return namespace(self.example)

    @cached_property
    def compiled(self) -> bool:
        """Whether each new shape is compiled (JAX), which makes new shapes expensive."""
        return is_jax_namespace(self.xp)

    @property
    def epsilon(self) -> float:
        """The relative error that is allowed."""
        return self.precision.epsilon

    @property
    def dtype(self) -> str:
        """The name of the dtype: "float64"."""
        return str(self.example.dtype).rpartition(".")[2]

    @property
    def library(self) -> str:
        """The name of the array library: "numpy"."""
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
        """Return rewards in the library and dtype under test."""
        if self.xp is np or self.compiled:
            return values.astype(np.dtype(str(self.example.dtype)))
        return constant(self.xp, np.ascontiguousarray(values), self.example)

    def flags(self, values: np.ndarray | None) -> Array | None:
        """Return flags in the library under test."""
        if values is None or self.xp is np or self.compiled:
            return values
        return self.xp.asarray(np.ascontiguousarray(values), device=self.example.device)

    def init(self, B: int) -> State:
        """Return a new state for B environments."""
        example = self.example_of(B)
        state = self.transform.init(example)
        if not self.compiled:
            example[:] = -7  # the caller's array, often its first rewards: a state may hold copies only
        return state

    def example_of(self, B: int) -> Any:
        """Return an example for B environments, in memory of its own."""
        return constant(self.xp, np.arange(1.0, B + 1), self.example)

    def ending(self, B: int) -> Callable[[State], np.ndarray]:
        """Return the function state → (B,), the shaped rewards if all episodes end now with a last reward of 0."""
        nothing: Array = self.floats(np.zeros(B))
        now: Any = self.flags(np.ones(B, dtype=bool))
        return lambda state: as_numpy(self.update(state, nothing, now)[1])


def subject_of(transform: RewardTransform, example: Array, gamma: float) -> Subject:
    """Return a transform under test in the library and dtype of the example."""
    finfo = namespace(example).finfo(example.dtype)
    eps, subject = float(finfo.eps), Subject(transform, example, gamma)
    if eps >= 1e-12:
        return Subject(transform, example, gamma, Precision(max(1e-5, 80 * eps), float(finfo.max)))
    if keeps_float32(lambda rewards: _step_one_environment(subject, rewards)):
        return Subject(transform, example, gamma, FLOAT32)
    return subject


def as_numpy(x: Array) -> np.ndarray:
    """Return an array's values as float64."""
    return np.array(x.detach().cpu().double().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


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
            settlement, moved = (float(pay(size * x)[-1]) for x in (rewards, other))
        except Exception:
            # The streams will show what is wrong with it.
            return False
        if settlement == 0 or 0 < abs(moved - settlement) < 2.0**-26 * size:
            return False
    return True


def _step_one_environment(subject: Subject, rewards: np.ndarray) -> np.ndarray:
    state, shaped = subject.transform.init(subject.floats(np.zeros(1))), list[float]()
    for t, reward in enumerate(rewards):
        done: Any = subject.flags(np.array([t == len(rewards) - 1]))
        state, paid = subject.update(state, subject.floats(np.array([reward])), done)
        shaped.append(as_numpy(paid)[0])
    return np.array(shaped)


# ------------------------------------------------------------------ running a stream


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
