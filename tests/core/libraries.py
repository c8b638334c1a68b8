"""NumPy, Torch and JAX behind one door: arrays in, a run of `update` or of `shape_rollout`, NumPy arrays out."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

import payback

from .cases import Stream, step_through

torch.set_num_threads(1)


class Library(NamedTuple):
    """How to make an array, and how to run `update` over all rows."""

    array: Callable[[Any], Any]
    step: Callable[[payback.RewardTransform, Any, Stream], tuple[Any, Any]]

    def stream(self, stream: Stream) -> Stream:
        return Stream(*(None if block is None else self.array(block) for block in stream))

    def init(self, transform: payback.RewardTransform, stream: Stream) -> Any:
        return transform.init(self.array(np.zeros_like(stream.rewards[0])))


def step_torch(transform: payback.RewardTransform, state: Any, stream: Stream) -> tuple[Any, Any]:
    shaped = []
    for t in range(len(stream.rewards)):
        state, row = transform.update(state, *stream.row(t))
        shaped.append(row)
    return state, torch.stack(shaped)


def scan_jax(transform: payback.RewardTransform, state: Any, stream: Stream) -> tuple[Any, Any]:
    """`lambda state, x: update(state, *x)` is a scan body."""
    run = jax.jit(lambda state, rows: jax.lax.scan(lambda state, x: transform.update(state, *x), state, rows))
    return run(state, tuple(stream))


LIBRARIES = {
    "numpy": Library(np.asarray, lambda transform, state, stream: step_through(transform, stream, state)),
    "torch": Library(lambda x: torch.from_numpy(np.array(x)), step_torch),
    "jax": Library(jnp.asarray, scan_jax),
}


@contextlib.contextmanager
def wide(name: str) -> Iterator[None]:
    """Let JAX compute in float64, so that all three libraries can be held together tightly."""
    with jax.enable_x64(True) if name == "jax" else contextlib.nullcontext():
        yield


def rollouts(
    name: str, transform: payback.RewardTransform, state: Any, stream: Stream, pieces: int
) -> tuple[Any, np.ndarray]:
    """Run `shape_rollout` over equal pieces of the stream, jitted on JAX, carrying the state."""
    run: Callable[..., Any] = lambda *args: payback.shape_rollout(transform, *args)  # noqa: E731
    if name == "jax":
        run = jax.jit(run)
    size, shaped = len(stream.rewards) // pieces, []
    for first in range(0, len(stream.rewards), size):
        state, block = run(state, *LIBRARIES[name].stream(stream.rows(first, first + size)))
        shaped.append(np.asarray(block))
    return state, np.concatenate(shaped)


def leaves(state: Any) -> list[Any]:
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]
