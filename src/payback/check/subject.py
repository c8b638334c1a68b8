"""The transform under test, in one array library and dtype, and the few places that know how a transform is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace

from payback.check.rounding import FLOAT32, FLOAT64, Precision, keeps_float32, precision_of
from payback.core.arrays import Array, constant, namespace
from payback.core.transform import RewardTransform, State


@dataclass(frozen=True)
class Subject:
    """A transform under test, in one array library and dtype."""

    transform: RewardTransform
    example: Array
    """An array of the library, dtype and device to test it in."""
    gamma: float
    precision: Precision

    @property
    def xp(self) -> Any:
        """The array library."""
        return namespace(self.example)

    @property
    def compiled(self) -> bool:
        """Whether each new shape is compiled anew (JAX), which makes new shapes expensive."""
        return is_jax_namespace(self.xp)

    @property
    def epsilon(self) -> float:
        """The relative error that is forgiven."""
        return self.precision.epsilon

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
        # An example gives shape, dtype and device only; a transform that keeps its values keeps these.
        example = self.example_of(B)
        state = self.transform.init(example)
        if not self.compiled:
            example[:] = -7  # the caller's array, and often its first rewards: a state holds a copy or nothing of it
        return state

    def example_of(self, B: int) -> Any:
        """Return an example for B environments, in memory of its own."""
        return constant(self.xp, np.arange(1.0, B + 1), self.example)

    def ending(self, B: int) -> Callable[[State], np.ndarray]:
        """Return a function: what is paid, (B,), if all episodes end now, with no reward of their last step."""
        nothing: Array = self.floats(np.zeros(B))
        now: Any = self.flags(np.ones(B, dtype=bool))
        return lambda state: as_numpy(self.transform.update(state, nothing, now)[1])


def subject_of(transform: RewardTransform, example: Array, gamma: float) -> Subject:
    """Put a transform under test in the library and dtype of the example."""
    finfo = namespace(example).finfo(example.dtype)
    precision = precision_of(float(finfo.eps), float(finfo.max))
    if is_jax_namespace(namespace(example)):
        # Stepping through uncompiled JAX code takes a hundred times as long.
        transform = replace(transform, update=import_module("jax").jit(transform.update))
    if precision == FLOAT64 and keeps_float32(lambda rewards: _pay(transform, example, rewards)):
        precision = FLOAT32
    return Subject(transform, example, gamma, precision)


def as_numpy(x: Array) -> np.ndarray:
    """Return an array's values as float64."""
    return np.array(x.detach().cpu().double().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


def _pay(transform: RewardTransform, example: Array, rewards: np.ndarray) -> np.ndarray:
    """Step one environment through one episode."""
    xp = namespace(example)
    state, shaped = transform.init(constant(xp, np.zeros(1), example)), list[float]()
    for t, reward in enumerate(rewards):
        done = xp.asarray(np.array([t == len(rewards) - 1]))
        state, paid = transform.update(state, constant(xp, np.array([reward]), example), done)
        shaped.append(as_numpy(paid)[0])
    return np.array(shaped)
