"""Shape a whole (T, B) rollout at once, with the same result as stepping through it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import numpy as np
from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core.arrays import Array, Mask, namespace
from payback.core.state import leaves, rebuild
from payback.core.transform import Flags, Rewards, RewardTransform, State
from payback.core.validate import ExpectedShape, read_arrays, refuse_not_finite, refuse_overflow

HOST = ("cpu",)  # Torch's devices whose memory NumPy shares
Read = tuple[Array, Array, Mask, Mask]  # rewards, dones, valid, settle of a block, after reading


def shape_rollout(
    transform: RewardTransform,
    state: State,
    rewards: Rewards,
    dones: Flags,
    valid: Flags | None = None,
    settle: Flags | None = None,
) -> tuple[State, Any]:
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
    xp, F, fit = namespace(rewards), cast(Any, rewards), transform._expected(state)
    if F.ndim != 2 and (F.ndim != 1 or fit is None or len(fit[1])):
        raise ValueError(
            f"shape_rollout needs rewards of shape (T, B), got {tuple(F.shape)}; one environment is (T, 1)"
        )
    read = read_block("shape_rollout", fit, F, dones, valid, settle)
    state, shaped = _shape(xp, transform, state, read[1:])
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
    result = NotImplemented
    if block[0].ndim == 2:
        result = transform._block(state, *block)
        if result is NotImplemented and is_torch_namespace(xp):
            if block[0].device.type in HOST:
                result = _through_numpy(xp, transform._block, (state, *block))
            else:
                result = _on_device(xp, transform, state, block)
    return _step_through(xp, transform, state, block) if result is NotImplemented else result


def _on_device(xp: Any, transform: RewardTransform, state: State, block: Read) -> Any:
    rewards, _, valid, _ = block
    if not len(rewards):
        return state, rewards
    result = transform._device_block(xp, state, *block)
    if result is NotImplemented:
        return result
    state, shaped = result[0], result[1].to(rewards.dtype)
    return state, shaped if valid is None else xp.where(valid, shaped, 0.0)


def _through_numpy(xp: Any, form: Callable[..., Any], whole: tuple[Any, ...]) -> Any:
    """Run NumPy's fast form on a Torch block on the CPU, whose memory it shares. NumPy has no bfloat16."""
    if whole[1].dtype == xp.bfloat16:
        return NotImplemented
    result = form(*rebuild(whole, (x.numpy() if hasattr(x, "numpy") else x for x in leaves(whole))))
    return rebuild(result, (xp.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves(result)))


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
    """Step through a JAX block in one scan."""
    # Outside `jit` JAX caches the compiled scan by its function, so a transform always passes the same one. Under `jit`
    # nothing is cached, because the transform may hold a tracer.
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


def read_block(name: str, fit: ExpectedShape | None, rewards: Any, dones: Any, valid: Any, settle: Any = None) -> Any:
    """Return (xp, rewards, dones, valid, settle): floats and booleans that fit the state; invalid rows become 0."""
    namespace(dones)  # raises for None, too
    whole = None if fit is None else (fit[0], (rewards.shape[0], *fit[1]))
    read = read_arrays(name, whole, rewards, "dones", dones, valid, settle)
    refuse_not_finite(read[0], name, _as_block(read[1]))
    return read


def _as_block(values: Array) -> Array:
    """Return (T, B); the (T,) of one environment becomes (T, 1)."""
    return values[:, None] if values.ndim == 1 else values
