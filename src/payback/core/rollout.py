"""Shape a whole (T, B) rollout at once, with the same result as stepping through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core.arrays import Array, fields_of, is_tuple, namespace
from payback.core.transform import RewardTransform, State
from payback.core.validate import read_arrays, refuse_not_finite, refuse_overflow

CHUNK = 64
"""Rows cast to float64 at a time, few enough to stay in the cache."""
HOST = ("cpu",)
"""Torch's devices whose memory NumPy shares."""
Read = tuple[Array, Array, Array | None, Array | None]
"""rewards, dones, valid, settle of a block, after reading."""


def shape_rollout(
    transform: RewardTransform,
    state: State,
    rewards: Array,
    dones: Array,
    valid: Array | None = None,
    settle: Array | None = None,
) -> tuple[State, Array]:
    """Shape a block of rewards, step by environment, as if `update` were called row after row.

        for t in range(T):  state, shaped[t] = update(state, rewards[t], dones[t], valid[t], settle[t])

    Episodes may end anywhere; pass the returned state to the next rollout. All arrays are (T, B), or (T,) for one
    environment whose state was made for (), as under `jax.vmap`. NumPy and Torch have fast forms on every device, JAX
    scans or fuses blocks, with `jit` or without.

    >>> import numpy as np, payback
    >>> shaping = payback.grm(0.5, delay=1, center=False)
    >>> state = shaping.init(np.zeros(1))
    >>> state, shaped = shape_rollout(shaping, state, np.array([[1.0], [3.0], [9.0]]), np.array([[0], [0], [1]]))
    >>> shaped[:, 0]
    array([ 1.,  1., -6.])
    """
    xp = namespace(rewards)
    state, shaped = _shape(xp, transform, state, _read_block(transform, state, rewards, dones, valid, settle))
    refuse_overflow(xp, "shape_rollout", _as_block(shaped))
    return state, shaped


def _shape(xp: Any, transform: RewardTransform, state: State, block: Read) -> tuple[State, Array]:
    if transform._parts:
        # Each part sees only earlier rewards, so part after part equals step after step.
        states: list[State] = []
        rewards, dones, valid, settle = block
        for part, part_state in zip(transform._parts, state, strict=True):
            part_state, rewards = _shape(xp, part, part_state, (rewards, dones, valid, settle))
            states.append(part_state)
        return tuple(states), rewards
    if block[0].ndim == 2:
        result = transform._block(state, *block)
        if result is NotImplemented and is_torch_namespace(xp):
            result = _torch_block(xp, transform, state, block)
        if result is not NotImplemented:
            return result
    return _step_through(xp, transform, state, block)


def _torch_block(xp: Any, transform: RewardTransform, state: State, block: Read) -> Any:
    """Take NumPy's fast form of a block on the host, and forms without a loop over T of one on an accelerator."""
    if block[0].device.type in HOST:
        return _through_numpy(xp, transform._block, (state, *block))
    from payback.core.torch_blocks import torch_block  # not at the top, because the matches import this module

    return torch_block(xp, transform, state, block)


def _through_numpy(xp: Any, form: Callable[..., Any], whole: tuple[Any, ...]) -> Any:
    """Run NumPy's fast form on a Torch block on the CPU, whose memory it shares. NumPy has no bfloat16."""
    if whole[1].dtype == xp.bfloat16:
        return NotImplemented
    result = form(*_map(lambda x: x.numpy() if hasattr(x, "numpy") else x, whole))
    return _map(lambda x: xp.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x, result)


def _step_through(xp: Any, transform: RewardTransform, state: State, block: Read) -> tuple[State, Array]:
    if is_jax_namespace(xp):
        return _scan(xp, transform, state, block)
    step = transform._step
    rewards, dones, *flags = block
    shaped = xp.empty_like(rewards)
    for t in range(rewards.shape[0]):
        done = None if xp is np and not dones[t].any() else dones[t]
        valid, settle = (x if x is None else x[t] for x in flags)
        state, shaped[t] = step(xp, state, rewards[t], done, valid, settle)
    return state, shaped


def _scan(xp: Any, transform: RewardTransform, state: State, block: Read) -> tuple[State, Array]:
    """Step through a JAX block in one scan.

    Outside `jit` JAX caches the compiled scan by its function, so a transform always passes the same one. Under `jit`
    nothing is cached, because the transform may hold a tracer.
    """
    import jax
    from jax.core import Tracer

    # A new array is a tracer under `jit`, also where the block is a constant.
    arrays = (xp.zeros(()), *jax.tree.leaves((state, block)))
    traced = any(isinstance(x, Tracer) for x in arrays)
    try:
        row_step = (_row_step if traced else _kept_row_step)(transform, xp)
    except TypeError:  # a user-defined function in the transform has no hash
        row_step = _row_step(transform, xp)
    return jax.lax.scan(row_step, state, block)


def _row_step(transform: RewardTransform, xp: Any) -> Callable[[State, Any], tuple[State, Array]]:
    step = transform._step
    return lambda state, row: step(xp, state, *row)


_kept_row_step = lru_cache(maxsize=64)(_row_step)


def _read_block(
    transform: RewardTransform, state: State, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
) -> Read:
    """Return floats and booleans of one (T, B) shape that fits the state; invalid rows become 0."""
    fit = transform._expected(state)
    if rewards.ndim != 2 and (rewards.ndim != 1 or fit is None or len(fit[1])):
        raise ValueError(
            f"shape_rollout needs rewards of shape (T, B), got {tuple(rewards.shape)}; one environment is (T, 1)"
        )
    whole = None if fit is None else (fit[0], (rewards.shape[0], *fit[1]))
    xp, rewards, dones, valid, settle = read_arrays("shape_rollout", whole, rewards, "dones", dones, valid, settle)
    refuse_not_finite(xp, "shape_rollout", _as_block(rewards))
    return rewards, dones, valid, settle


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    if not is_tuple(tree):
        return function(tree)
    items = [_map(function, x) for x in tree]
    return type(tree)(*items) if fields_of(tree) else tuple(items)


def _as_block(values: Array) -> Array:
    """Return (T, B); the (T,) of one environment becomes (T, 1)."""
    return values[:, None] if values.ndim == 1 else values


# ------------------------------------------------------------------ rows of a NumPy block

# NumPy's block forms walk down the rows with a running sum. They touch rewards in whole rows, and the few episode ends
# one by one. Sums are in float64, in which the rounding of γ doesn't add up.


def invalid_only_between_episodes(dones: np.ndarray, valid: np.ndarray, debtless: np.ndarray) -> bool:
    """Return whether no invalid row has a debt, whose loans would have to stop ageing there."""
    free = np.concatenate((debtless[None], dones[:-1] | ~valid[:-1]))
    return bool((valid | free).all())


def accumulate(
    interest: float, debt: np.ndarray, rewards: np.ndarray, read: np.ndarray, write: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run debt ← (debt + rewards[t])·interest over the rows; return the last debt and the debts at `read`.

    `read` and `write` are sorted flat positions: the debt is read there before its row is added, and set to `values`
    after.
    """
    found = np.empty(read.size)
    (readers, reads), (writers, writes) = (split_by_row(at, *rewards.shape) for at in (read, write))
    with np.errstate(over="ignore"):  # sums that are never read may overflow
        for t, row in enumerate(_float64_rows(rewards)):
            if reads[t + 1] > reads[t]:
                found[reads[t] : reads[t + 1]] = debt[readers[reads[t] : reads[t + 1]]]
            debt += row
            debt *= interest
            if writes[t + 1] > writes[t]:
                debt[writers[writes[t] : writes[t + 1]]] = values[writes[t] : writes[t + 1]]
    return debt, found


def split_by_row(at: np.ndarray, T: int, B: int) -> tuple[np.ndarray, list[int]]:
    """Return the columns of sorted flat positions, and where each row's columns begin."""
    starts = np.searchsorted(at, np.arange(T + 1) * B)
    return at % B, starts.tolist()


def _float64_rows(rewards: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(rewards), CHUNK):
        yield from rewards[first : first + CHUNK].astype(np.float64, copy=False)
