"""Shaping a whole (T, B) rollout at once, equal to stepping through it."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core.arrays import Array, as_floats, dtype_for, float_dtype, namespace
from payback.core.transform import RewardTransform, State, read_chain_state
from payback.core.validate import read_flags, refuse_not_finite


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

    Episodes may end anywhere; the returned state goes into the next rollout. All arrays are (T, B). NumPy and
    CPU Torch blocks take fast forms; JAX blocks are scanned or fused, under `jit` or not.

    >>> import numpy as np, payback
    >>> shaping = payback.grm(0.5, delay=1, center=False)
    >>> state = shaping.init(np.zeros(1))
    >>> state, shaped = shape_rollout(shaping, state, np.array([[1.0], [3.0], [9.0]]), np.array([[0], [0], [1]]))
    >>> shaped[:, 0]
    array([ 1.,  1., -6.])
    """
    xp = namespace(rewards)
    rewards, dones, valid, settle = _read_block(xp, state, rewards, dones, valid, settle)
    return _shape(xp, transform, state, rewards, dones, valid, settle)


def _shape(
    xp: Any,
    transform: RewardTransform,
    state: State,
    rewards: Array,
    dones: Array,
    valid: Array | None,
    settle: Array | None,
) -> tuple[State, Array]:
    if transform.parts:
        # Each part sees only what came before, so part after part is the same as step after step.
        read_chain_state(state, len(transform.parts))
        states = []
        for part, part_state in zip(transform.parts, state, strict=True):
            part_state, rewards = _shape(xp, part, part_state, rewards, dones, valid, settle)
            states.append(part_state)
        return tuple(states), rewards
    if transform.rollout is not None:
        block = (state, rewards, dones, valid, settle)
        # CPU Torch and NumPy share memory, so Torch takes NumPy's fast forms.
        on_cpu = is_torch_namespace(xp) and rewards.device.type == "cpu" and not rewards.requires_grad
        result = transform.rollout(*_to_numpy(block) if on_cpu else block)
        if result is not NotImplemented:
            return _to_torch(xp, result) if on_cpu else result
    return _step_through(xp, transform, state, rewards, dones, valid, settle)


def _step_through(
    xp: Any,
    transform: RewardTransform,
    state: State,
    rewards: Array,
    dones: Array,
    valid: Array | None,
    settle: Array | None,
) -> tuple[State, Array]:
    if is_jax_namespace(xp):
        from jax import lax

        return lax.scan(lambda state, x: transform.update(state, *x), state, (rewards, dones, valid, settle))
    shaped = xp.empty_like(rewards)
    for t in range(rewards.shape[0]):
        row = (flags if flags is None else flags[t] for flags in (valid, settle))
        state, shaped[t] = transform.update(state, rewards[t], dones[t], *row)
    return state, shaped


def _read_block(
    xp: Any, state: State, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
) -> tuple[Array, Array, Array | None, Array | None]:
    """Return floats and booleans of one (T, B) shape; rows that are no transition hold nothing."""
    if rewards.ndim != 2:
        raise ValueError(
            f"shape_rollout needs rewards of shape (T, B), got {tuple(rewards.shape)}; one environment is (T, 1)"
        )
    rewards = as_floats(xp, rewards, dtype_for(xp, state, rewards) or float_dtype(xp, rewards))
    dones = read_flags("shape_rollout", "dones", dones, rewards)
    valid = None if valid is None else read_flags("shape_rollout", "valid", valid, rewards)
    settle = None if settle is None else read_flags("shape_rollout", "settle", settle, rewards)
    if valid is not None:
        rewards, dones = xp.where(valid, rewards, 0.0), dones & valid
    refuse_not_finite(xp, "shape_rollout", rewards)
    return rewards, dones, valid, settle


def _to_numpy(tree: Any) -> Any:
    return _map(lambda x: x.numpy() if hasattr(x, "numpy") else x, tree)


def _to_torch(xp: Any, tree: Any) -> Any:
    return _map(lambda x: xp.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x, tree)


def _map(function: Any, tree: Any) -> Any:
    if isinstance(tree, tuple):
        items = (_map(function, x) for x in tree)
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    return function(tree)
