"""The transform under test in one array library and dtype, and the rounding that this dtype is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, constant, namespace
from payback.core.transform import RewardTransform, State


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
