"""Putting a stream through shaping code and writing down what it paid, in any array library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace

from payback.check.streams import Stream
from payback.core.arrays import Array, constant, namespace
from payback.core.errors import LawBroken
from payback.core.rollout import shape_rollout
from payback.core.transform import RewardTransform, State


@dataclass(frozen=True)
class Trial:
    """A transform on trial, in one array library and dtype."""

    transform: RewardTransform
    example: Array
    """An array of the library, dtype and device to try it in."""
    gamma: float

    @property
    def xp(self) -> Any:
        """The library."""
        return namespace(self.example)

    @property
    def epsilon(self) -> float:
        """The relative error that is forgiven: 1e-5 in float32, 1e-10 in float64."""
        eps = float(self.xp.finfo(self.example.dtype).eps)
        return 1e-10 if eps < 1e-12 else max(1e-5, 80 * eps)

    def may_overflow(self, steps: int, size: float) -> bool:
        """Whether the interest on `steps` steps is more than the dtype holds: whoever refuses that is right."""
        room = float(np.log(float(self.xp.finfo(self.example.dtype).max)) - 7)
        return -np.log(self.gamma) * steps + float(np.log(max(size, 1e-30) * max(steps, 1))) > room

    def floats(self, values: np.ndarray) -> Array:
        """Return rewards in the library and dtype on trial."""
        if self.xp is np or is_jax_namespace(self.xp):
            return values.astype(np.dtype(str(self.example.dtype)))
        return constant(self.xp, np.ascontiguousarray(values), self.example)

    def flags(self, values: np.ndarray | None) -> Array | None:
        """Return flags in the library on trial."""
        if values is None or self.xp is np or is_jax_namespace(self.xp):
            return values
        return self.xp.asarray(np.ascontiguousarray(values), device=self.example.device)

    def init(self, B: int) -> State:
        """Return a new state for B environments."""
        # An example gives shape, dtype and device; whoever keeps its values keeps these.
        example = constant(self.xp, np.arange(1.0, B + 1), self.example)
        return self.transform.init(example)

    def ending(self, B: int) -> Callable[[State], np.ndarray]:
        """Return a function: what is paid, (B,), if all episodes end now, with no reward of their last step."""
        nothing, now = self.floats(np.zeros(B)), self.flags(np.ones(B, dtype=bool))
        return lambda state: as_numpy(self.transform.update(state, nothing, now)[1])


def jitted(transform: RewardTransform, example: Array) -> RewardTransform:
    """Return the transform with its update compiled where the library is JAX: stepping is slow otherwise."""
    if not is_jax_namespace(namespace(example)):
        return transform
    import jax

    return replace(transform, update=jax.jit(transform.update))


def as_numpy(x: Array) -> np.ndarray:
    """Return an array's values as float64."""
    return np.array(x.detach().cpu().double().numpy() if hasattr(x, "detach") else x, dtype=np.float64)


@dataclass
class Run:
    """What a transform paid on a stream, and the states it went through."""

    shaped: np.ndarray
    """(T, B) float64."""
    states: list[State]
    """The state before each step, and after the last; only those asked for are kept, the others are None."""
    endings: np.ndarray | None = None
    """(T + 1, B) what would be paid if all episodes ended right there, where it was asked for."""


def step_through(
    trial: Trial, stream: Stream, state: State | None = None, keep: Any = (), endings: bool = False
) -> Run:
    """Step through a stream; hold the transform to its shapes, and its answers to being its own.

    `keep` are the steps whose state is wanted (all of them with `keep=True`).
    """
    T, B = stream.rewards.shape
    state = trial.init(B) if state is None else state
    states: list[State] = []
    answers, copies, ended = [], np.empty((T, B)), np.empty((T + 1, B))
    update = trial.transform.update
    rewards: Array = trial.floats(stream.rewards)
    dones: Any = trial.flags(stream.dones.copy())
    end_now = trial.ending(B)
    given = (("valid", stream.valid), ("settle", stream.settle))
    flags: dict[str, Any] = {name: trial.flags(f) for name, f in given if f is not None}
    for t in range(T):
        states.append(state if keep is True or t in keep else None)
        if endings:
            ended[t] = end_now(state)
        state, shaped = update(state, rewards[t], dones[t], **{name: f[t] for name, f in flags.items()})
        if tuple(np.shape(shaped)) != (B,):
            what = f"update returned an array of shape {np.shape(shaped)} for {B} environments; one step has one each"
            raise LawBroken(what, law="shape", rewards=stream.rewards, step=t)
        copies[t] = shaped if type(shaped) is np.ndarray else as_numpy(shaped)
        answers.append(shaped)
    states.append(state)
    _unchanged(stream, as_numpy(rewards), as_numpy(dones), trial.floats(stream.rewards))
    for t in range(0, T, max(1, T // 50)):
        if not np.array_equal(as_numpy(answers[t]), copies[t], equal_nan=True):
            what = f"what was paid at step {t} is changed by later steps: update returns memory that it uses again"
            raise LawBroken(what, law="purity", rewards=stream.rewards, step=t)
    if endings:
        ended[T] = end_now(state)
    return Run(copies, states, ended if endings else None)


def step_through_borrowed(trial: Trial, stream: Stream) -> np.ndarray:
    """Step through a stream as a caller who overwrites the arrays it has lent, right after each step."""
    state, shaped = trial.init(stream.rewards.shape[1]), np.empty(stream.rewards.shape)
    columns = (stream.dones, stream.valid, stream.settle)
    lent: list[Any] = [
        trial.floats(stream.rewards.copy()),
        *(None if x is None else trial.flags(x.copy()) for x in columns),
    ]
    for t in range(len(shaped)):
        rows = [None if x is None else x[t] for x in lent]
        state, paid = trial.transform.update(state, *rows)
        shaped[t] = as_numpy(paid)
        for row in rows:
            if row is not None:
                row[:] = -7
    return shaped


def roll_through(trial: Trial, stream: Stream, cuts: list[int]) -> Run:
    """Shape the stream in blocks, as rollouts that begin at 0 and at each of the `cuts`."""
    T, B = stream.rewards.shape
    state, shaped = trial.init(B), np.empty((T, B))
    borders = [0, *cuts, T]
    for first, last in pairwise(borders):
        block = stream.rows(slice(first, last))
        valid, settle = trial.flags(block.valid), trial.flags(block.settle)
        rewards, dones = trial.floats(block.rewards), trial.flags(block.dones)
        if is_jax_namespace(trial.xp):
            rewards = trial.xp.asarray(rewards)
        state, paid = shape_rollout(trial.transform, state, rewards, dones, valid, settle)
        shaped[first:last] = as_numpy(paid)
    return Run(shaped, [state])


def _unchanged(stream: Stream, rewards: np.ndarray, dones: np.ndarray, given: Array) -> None:
    changed = (rewards != as_numpy(given)) | (dones != stream.dones)
    if changed.any():
        t = int(np.argwhere(changed)[0, 0])
        what = f"update changes the rewards or flags it was given, at step {t}: others still need them"
        raise LawBroken(what, law="purity", rewards=stream.rewards, step=t)
