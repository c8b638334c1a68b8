"""What the core needs of an array library: its namespace, its dtypes, and whether values can be read.

Every function has a fast path for NumPy, in which people step through single transitions and a microsecond counts.
"""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import array_api_compat
import numpy as np

Array = Any  # a NumPy, Torch or JAX array
Mask = Array | None  # an array of booleans; None if no flag, or in `valid` every flag, is set
FEW = 32  # up to this size `sum(list)` is faster than `np.add.reduce`, which falls out of the cache between two steps


def fields_of(state: Any) -> tuple[str, ...]:
    """Return the field names of a NamedTuple, () for anything else."""
    return getattr(state, "_fields", ())


def is_a(state: Any, *kinds: type[Any]) -> bool:
    """Return whether a state is one of these containers; no type guard, because its parts may be anything."""
    return isinstance(state, kinds)


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace of the arrays; raise if they belong to several libraries."""
    for x in arrays:
        if type(x) is not np.ndarray:
            break
    else:
        return np
    # JAX takes NumPy arrays as constants.
    others = [x for x in arrays if not isinstance(x, (np.ndarray, np.generic))]
    if others and all(array_api_compat.is_jax_array(x) for x in others):
        return array_api_compat.array_namespace(*others)
    try:
        # array_api_compat skips Python's numbers and None.
        if not all(hasattr(x, "shape") for x in others):
            raise TypeError
        return array_api_compat.array_namespace(*arrays)
    except TypeError:
        kinds = ", ".join(dict.fromkeys(f"{type(x).__module__}.{type(x).__qualname__}" for x in arrays))
        what = "rewards, flags and state must be arrays of one library (NumPy, Torch or JAX)"
        remedy = "convert them first, e.g. by numpy.asarray, and make the state with init(example) of the same library"
        raise TypeError(f"{what}, got {kinds}; {remedy}") from None


def float_dtype(xp: Any, x: Array) -> Any:
    """Return the dtype in which `x` is shaped: its own, or the library's default for integers."""
    if xp is np:
        return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    if xp.isdtype(x.dtype, "real floating"):
        return x.dtype
    return xp.asarray(0.0).dtype


def wide_dtype(xp: Any) -> Any:
    """Return the widest float for sums that outlive episodes: float64, or JAX's default where x64 is off."""
    if array_api_compat.is_jax_namespace(xp):
        return xp.result_type(float)
    return xp.float64


def cast_to(xp: Any, x: Array, dtype: Any) -> Array:
    """Return `x` in another dtype; `numpy.asarray` also takes NumPy's scalars, which running means are."""
    return np.asarray(x, dtype=dtype) if xp is np else xp.astype(x, dtype)


def plain(value: Any) -> Any:
    """Return a NumPy number as a Python number; anything else as it is."""
    return cast(Any, value).item() if isinstance(value, np.generic) else value


def replaced(xp: Any, x: Array, where: Array, values: Array | float) -> Array:
    """Return `x` with `values` where the flags are set; NumPy writes into `x`, which must be a new array."""
    if xp is np and x.ndim:
        np.copyto(x, values, where=where)
        return x
    return xp.where(where, values, x)


def constant(xp: Any, values: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """Return `values` in the library and on the device of `like`, in its dtype unless another is given."""
    dtype = like.dtype if dtype is None else dtype
    if xp is np:
        return values.astype(dtype, copy=False)
    # JAX puts new arrays where they are used; Torch needs the device.
    place = {"device": like.device} if array_api_compat.is_torch_namespace(xp) else {}
    return xp.asarray(values, dtype=dtype, **place)


def wide_constant(xp: Any, values: np.ndarray, like: Array) -> Array:
    """Return `values` in the library and on the device of `like`, in the widest float."""
    return constant(xp, values, like, wide_dtype(xp))


def can_look(xp: Any, x: Array) -> bool:
    """Return whether values may be read: eager NumPy or CPU Torch."""
    # Not JAX, because reading a value breaks `jit` and stalls an accelerator, nor Torch on a device or under `compile`.
    if xp is np or type(x) is np.ndarray:
        return True
    if not array_api_compat.is_torch_array(x) or x.device.type != "cpu":
        return False
    torch = sys.modules["torch"]
    return not torch.compiler.is_compiling() and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def sum_of(x: np.ndarray) -> float:
    """Return Σ x, summed in float64."""
    return sum(x.tolist()) if x.ndim == 1 and x.size <= FEW else np.add.reduce(x, axis=None, dtype=np.float64)


def any_of(flags: np.ndarray) -> bool:
    """Return whether a flag of a NumPy array is set; takes half of the time of `np.count_nonzero` for few flags."""
    return bool(flags.tobytes().strip(b"\0") if flags.size <= FEW else np.count_nonzero(flags))


def size_of(x: np.ndarray) -> float:
    """Return √Σx², or max |x| of many numbers: a bound on all of them, NaN or ∞ if one of them is."""
    return math.hypot(*x.tolist()) if x.size <= FEW else float(np.abs(x).max())


def all_finite(x: np.ndarray) -> bool:
    """Return whether a NumPy array holds neither NaN nor infinity."""
    if x.ndim == 1 and x.size <= FEW and math.isfinite(sum(x.tolist())):
        return True  # a finite sum has finite terms; a sum that is not finite may have overflowed, so look at each
    if x.ndim > 1 and x.dtype.char in "fd" and x.flags.c_contiguous:
        # Σx² of a block, for the same reason and without a block of booleans.
        flat = x.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if math.isfinite(np.dot(flat, flat)):
                return True
    return bool(np.count_nonzero(np.isfinite(x)) == x.size)


def to_numpy(x: Any) -> np.ndarray:
    """Return an array of any library and device as NumPy's."""
    if type(x) is np.ndarray:
        return x
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)


def first_not_finite(xp: Any, x: Array) -> tuple[int, ...] | None:
    """Return the index of the first NaN or infinity in `x`; None without one, or where values may not be read."""
    if not can_look(xp, x) or (all_finite(x) if xp is np else bool(xp.all(xp.isfinite(x)))):
        return None
    # In the library itself, because NumPy has no bfloat16.
    bad = np.argwhere(~np.asarray(xp.isfinite(x)))
    return tuple(int(i) for i in bad[0]) if len(bad) else None
