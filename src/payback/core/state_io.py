"""Saving a transform's state beside a model, and loading it to train on. NPZ, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_jax_array, is_torch_array

from payback.core.arrays import Array, fields_of, is_tuple
from payback.core.center import CenterState
from payback.core.repay_at_ages import AgesState
from payback.core.repay_at_once import AtEndState, WhenState
from payback.core.repay_geometric import GeometricState
from payback.core.scaling import RmsState
from payback.core.transform import State

FORMAT = 2
OURS = {kind.__name__: kind for kind in (AgesState, AtEndState, CenterState, GeometricState, RmsState, WhenState)}
"""The states that are built again by name; any other NamedTuple needs an example."""
FIXED = ("terms", "fade")
"""Fields of our states whose values say which transform it is."""


def save_state(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to an NPZ file, whole or not at all. The path is used as given, with no suffix added.

    Takes the states of this package's transforms, and those of your own: NamedTuples, tuples, lists and dicts of arrays
    and numbers.

    >>> import tempfile, numpy as np, payback
    >>> shaping = payback.grm(0.99, delay=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/shaping.npz", shaping.init(np.zeros(4)))
    ...     payback.owed(shaping, load_state(f"{folder}/shaping.npz"))
    array([0., 0., 0., 0.])
    """
    arrays: dict[str, np.ndarray] = {}
    write_npz(path, {"format": FORMAT, "state": _describe(state, arrays)}, arrays)


def load_state(path: str | os.PathLike[str], like: State = None) -> State:
    """Read a state back: same arrays, same library, Torch's on the CPU.

    `like` is a state of the same transform, e.g. what its `init` returns. It is needed for a NamedTuple of your own,
    and with it a state of another transform, γ or horizon, or for other environments, is refused.

    >>> load_state("no-such-file.npz")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    not_ours = f"{path} is not a state that save_state wrote, or is damaged"
    (found, outline), arrays = read_npz(path, ("format", "state"), not_ours)
    if found != FORMAT:
        raise ValueError(
            f"{path} holds a state of format {found}, this version reads {FORMAT}; use the payback that wrote it"
        )
    if like is None and (foreign := _foreign(outline)):
        raise ValueError(
            f"{path} holds a {foreign} of your own: give load_state an example of the state, like=transform.init(…)"
        )
    if like is not None:
        difference = _difference(outline, arrays, like, "the state")
        if difference:
            raise ValueError(f"{path} holds the state of another transform: {difference}; load it with its own")
    try:
        return _rebuild(outline, arrays, like)
    except Exception as error:
        raise ValueError(f"{not_ours}: {error}") from error


def write_npz(path: str | os.PathLike[str], layout: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, and a layout in JSON terms that says what they are, to one file, whole or not at all."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez(file, allow_pickle=False, layout=np.array(json.dumps(layout)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_npz(
    path: str | os.PathLike[str], keys: tuple[str, ...], not_ours: str
) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return these entries of the layout, and the arrays, that `write_npz` wrote; say `not_ours` of any other file."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            layout = json.loads(str(arrays.pop("layout")))
            return [layout[key] for key in keys], arrays
        except Exception as error:
            raise ValueError(f"{not_ours}: {error}") from error


def _describe(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the state's outline in JSON terms, putting its arrays aside."""
    kind = type(state).__name__
    if is_tuple(state) or kind == "list":
        own = {"fields": list(fields_of(state))} if fields_of(state) else {}
        return {"kind": kind, **own, "items": [_describe(x, arrays) for x in state]}
    if kind == "dict":
        return {"kind": "dict", "keys": list(state), "items": [_describe(x, arrays) for x in state.values()]}
    if state is None or (isinstance(state, (bool, int, float, str)) and not isinstance(state, np.generic)):
        return {"kind": "plain", "value": state}
    name = f"a{len(arrays)}"
    library = "torch" if is_torch_array(state) else "jax" if is_jax_array(state) else "numpy"
    # NumPy has no bfloat16: it is kept as the float32 that holds it.
    short = library != "numpy" and "bfloat16" in str(state.dtype)
    arrays[name] = np.asarray(_on_cpu(state) if library == "torch" else state, dtype=np.float32 if short else None)
    if arrays[name].dtype.hasobject:
        raise TypeError(f"save_state cannot save a {type(state).__name__}: hold your state in arrays of numbers")
    return {"kind": "array", "name": name, "library": library, "bfloat16": short}


def _on_cpu(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    return tensor.float() if "bfloat16" in str(tensor.dtype) else tensor


def _foreign(outline: Any) -> str | None:
    """Return the name of a NamedTuple that is not ours, None if there is none."""
    if "fields" in outline and outline["kind"] not in OURS:
        return outline["kind"]
    return next((name for item in outline.get("items", ()) if (name := _foreign(item))), None)


def _difference(
    outline: Any, arrays: dict[str, np.ndarray], like: Any, place: str, fixed: str | None = None
) -> str | None:
    """Say in what a stored state differs from an example, in the values of a `fixed` field too; None if it fits."""
    if outline["kind"] == "array":
        stored, own = arrays[outline["name"]], _describe(like, kept := {})
        if own["kind"] != "array" or kept["a0"].shape != stored.shape:
            return f"{place} is an array of shape {stored.shape} there and {getattr(like, 'shape', like)} here"
        return _other_values(fixed, stored, kept["a0"]) if fixed else None
    if outline["kind"] == "plain":
        return None if isinstance(like, type(outline["value"])) else f"{place} is {outline['value']!r} there"
    kind = type(like).__name__
    items: list[Any] = list(like.values() if kind == "dict" else like if is_tuple(like) or kind == "list" else ())
    if outline["kind"] != kind or len(outline["items"]) != len(items):
        return f"{place} is a {outline['kind']} of {len(outline['items'])} there and a {kind} here"
    names = outline.get("fields") or outline.get("keys") or range(len(items))
    pairs = zip(names, outline["items"], items, strict=True)
    fixed_in = FIXED if kind in OURS else ()
    found = (
        _difference(part, arrays, other, f"{place}.{name}", str(name) if name in fixed_in else None)
        for name, part, other in pairs
    )
    return next((difference for difference in found if difference), None)


def _other_values(field: str, stored: np.ndarray, own: np.ndarray) -> str | None:
    """Say in what a field that never changes differs, None if it is the same in the narrower of the two dtypes."""
    dtype = min(stored.dtype, own.dtype, key=lambda dtype: dtype.itemsize)
    if np.array_equal(own.astype(dtype), stored.astype(dtype)):
        return None
    if field == "terms":
        return f"its terms (γ and the shares) are {stored.tolist()} there and {own.tolist()} here"
    there, here = ("none" if fade == 1 else f"{1 / (1 - float(fade)):g}" for fade in (stored, own))
    return f"its mean has another horizon, {there} there and {here} here"


def _rebuild(outline: Any, arrays: dict[str, np.ndarray], like: Any) -> Any:
    kind = outline["kind"]
    if kind == "plain":
        return outline["value"]
    if kind == "array":
        return _to_library(outline["library"], arrays[outline["name"]], outline["bfloat16"])
    examples = [None] * len(outline["items"]) if like is None else list(like.values() if kind == "dict" else like)
    items = [_rebuild(item, arrays, example) for item, example in zip(outline["items"], examples, strict=True)]
    if kind == "dict":
        return dict(zip(outline["keys"], items, strict=True))
    if kind in ("tuple", "list"):
        return tuple(items) if kind == "tuple" else items
    return (OURS[kind] if like is None else type(like))(*items)


def _to_library(library: str, array: np.ndarray, short: bool) -> Array:
    if library == "numpy":
        return array
    xp = import_module("torch" if library == "torch" else "jax.numpy")
    return xp.asarray(array, dtype=xp.bfloat16 if short else None)
