"""Read batches of observations: keys to count, numbers to project, steps of a rollout, and which rows are valid."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import array_api_compat
import numpy as np

from payback.core.arrays import is_a

Key = Callable[[Any], Hashable]  # from one environment's observation to the key under which its visits are counted
View = Callable[[Any], Any]  # from a batch of observations to the array that a bonus sees
LONG = 64  # observations of more bytes are counted by a digest of 16 bytes, so that images need no more memory


def leaves(name: str, obs: Any, place: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield each array of a batch of observations with its path in a Dict or Tuple space."""
    if hasattr(obs, "keys"):
        # keys(), because a TensorDict, which rsl_rl passes, yields its rows when it is iterated over.
        for part in sorted(obs.keys()):
            yield from leaves(name, obs[part], f"{place}[{part!r}]")
    elif _is_tuple_of_parts(obs):
        for i, item in enumerate(obs):
            yield from leaves(name, item, f"{place}[{i}]")
    else:
        try:
            array = as_array(obs)
        except (TypeError, ValueError, RuntimeError):
            if array_api_compat.is_jax_array(obs):
                why = "because JAX traces it: use a bonus of payback.bonuses.jax, whose memory is a state"
                raise TypeError(f"{name} cannot read the observation{place}, {why}") from None
            array = np.asarray(None)
        if array.dtype.hasobject or array.ndim == 0:
            why = f"a {type(obs).__name__}: it takes a batch of arrays with one row per environment, or a Dict of them"
            raise TypeError(f"{name} cannot read the observation{place}, {why}")
        yield place, array


def as_array(values: Any) -> np.ndarray:
    """Return an array; a Torch tensor may be on any device, and bfloat16, which NumPy has not, becomes float32."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return np.asarray(values)


def as_leaves(name: str, obs: Any) -> tuple[int, list[tuple[str, np.ndarray]]]:
    """Return the number of environments and the arrays of a batch, which must agree on it."""
    found = list(leaves(name, obs))
    lengths = {len(array) for _, array in found}
    if len(lengths) != 1:
        raise ValueError(f"{name}: arrays must have one row per environment, got {sorted(lengths)} rows")
    return lengths.pop(), found


def batch_size(name: str, obs: Any) -> int:
    """Return the number of environments of a batch."""
    return len(next(leaves(name, obs))[1])


def row_keys(name: str, obs: Any, key: Key | None) -> list[Hashable]:
    """Return the key of each row: what `key` returns, or its bytes (−0.0 read as 0.0), or a digest of many bytes."""
    B, found = as_leaves(name, obs)
    if key is not None:
        # Tensors are hashed by identity: as arrays, the same key can occur twice.
        obs = map_parts(lambda array: as_array(array) if hasattr(array, "detach") else array, obs)
        return [_hashable(name, key(rows_at(obs, k)), k) for k in range(B)]
    columns = [_bytes_of_rows(array) for _, array in found]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _bytes_of_rows(array: np.ndarray) -> list[Hashable]:
    if array.dtype.kind == "U" or (array.ndim == 1 and array.dtype.kind in "iub"):
        return array.tolist()
    if array.dtype.kind == "f":
        array = array + 0.0
    rows = (row.tobytes() for row in array)
    if array[:1].nbytes <= LONG:
        return list(rows)
    return [hashlib.blake2b(row, digest_size=16).digest() for row in rows]


def rows_at(obs: Any, index: Any) -> Any:
    """Return the rows at an index: a step of a rollout, an environment of a batch, or a slice of either."""
    return map_parts(lambda array: array[index], obs)


def map_parts(function: Callable[[Any], Any], obs: Any) -> Any:
    """Apply a function to each array of a Dict or Tuple of them, or to the one array; None stays None."""
    if obs is None:
        return None
    if hasattr(obs, "keys"):
        return {part: map_parts(function, obs[part]) for part in obs.keys()}  # noqa: SIM118  a TensorDict yields its rows
    if _is_tuple_of_parts(obs):
        return tuple(map_parts(function, item) for item in obs)
    return function(obs)


def _is_tuple_of_parts(obs: Any) -> bool:
    """Return whether it is a Tuple of parts: a tuple of strings is one batch, a string per environment."""
    return is_a(obs, tuple) and not all(isinstance(item, str) for item in obs)


def _hashable(name: str, found: Any, k: int) -> Hashable:
    try:
        hash(found)
    except TypeError:
        what = f"the key function returned a {type(found).__name__} for environment {k}, which cannot be hashed"
        raise TypeError(f"{name}: {what}; return a number, a string, bytes or a tuple of these") from None
    return found


def flat_rows(name: str, obs: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return a batch as (B, D) floats: the arrays of a Dict, sorted by name, flattened and concatenated."""
    found = numbers_of(name, obs)
    return np.concatenate([array.reshape(len(array), math.prod(array.shape[1:])).astype(dtype) for array in found], 1)


def numbers_of(name: str, obs: Any) -> list[np.ndarray]:
    """Return the arrays of a batch; refuse text and everything but real numbers."""
    _, found = as_leaves(name, obs)
    for place, array in found:
        if array.dtype.kind not in "fiub":
            remedy = 'it takes numbers; pass view=, a function that picks them, such as lambda obs: obs["image"]'
            raise TypeError(f"{name} cannot read the observation{place} of type {array.dtype}: {remedy}")
    return [array for _, array in found]


def valid_rows(info: Any, B: int) -> np.ndarray | None:
    """Return which rows are valid, None if all are. SB3's infos are a list and mark none as invalid."""
    valid = info.get("valid") if hasattr(info, "keys") else None
    if valid is None:
        return None
    valid = as_array(valid).astype(bool)
    if valid.shape != (B,):
        raise ValueError(f'info["valid"] has shape {valid.shape}, not ({B},): one flag per environment')
    return None if valid.all() else valid


def rows_to_reset(name: str, where: Any) -> np.ndarray:
    """Return a (B,) mask of the environments whose episode is over."""
    mask = as_array(where)
    if mask.ndim != 1 or mask.dtype != np.bool_:
        raise ValueError(f"{name}.reset takes a (B,) mask of booleans, got shape {mask.shape} of {mask.dtype}")
    return mask


def refuse_other_actions(name: str, actions: int | None, B: int) -> None:
    """Require one action per environment; None stands for no actions at all."""
    if actions != B:
        got = "None" if actions is None else f"{actions} of them"
        raise ValueError(f"{name} needs one action for each of {B} environments, got {got}")


def refuse_other_number(name: str, under_way: int, B: int) -> None:
    """Require as many environments as there are episodes in progress."""
    if under_way != B:
        remedy = f"call reset(np.ones({B}, dtype=bool)) to start over with {B}"
        raise ValueError(f"{name} follows the episodes of {under_way} environments and was given {B}; {remedy}")


def rollout_flags(name: str, blocks: tuple[Any, ...], dones: Any, valid: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return `dones` and `valid` of a rollout as (T, B) booleans; an invalid row ends no episode.

    `blocks`: observations, actions and next observations, (T, B, …) each; only the last are always needed.
    """
    ends = as_array(dones).astype(bool)
    if ends.ndim != 2:
        raise ValueError(f"{name}.of_rollout takes dones of shape (T, B), got {ends.shape}; one environment is (T, 1)")
    if blocks[2] is None:
        raise ValueError(f"{name}.of_rollout was given no next observations")

    def refuse_other_block(array: Any) -> None:
        if tuple(array.shape[:2]) != ends.shape:
            shapes = f"dones have shape {ends.shape}, and there is an array of shape {tuple(array.shape)}"
            raise ValueError(f"{name}.of_rollout takes (T, B, …) blocks: {shapes}")

    for block in blocks:
        map_parts(refuse_other_block, block)
    if valid is None:
        return ends, None
    counted = as_array(valid).astype(bool)
    if counted.shape != ends.shape:
        raise ValueError(f"{name}.of_rollout got valid of shape {counted.shape} and dones of shape {ends.shape}")
    return ends & counted, counted
