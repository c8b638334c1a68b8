"""Saving a transform's state beside a model, and loading it to train on. NPZ, no pickle."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_jax_array, is_torch_array

from payback.core.arrays import Array
from payback.core.center import CenterState
from payback.core.repay_at_ages import WindowState
from payback.core.repay_at_once import LumpState
from payback.core.repay_geometric import GeometricState
from payback.core.transform import State

FORMAT = 1
KINDS = {kind.__name__: kind for kind in (CenterState, GeometricState, LumpState, WindowState)}


def save_state(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to an NPZ file, whole or not at all. The path is used as given, with no suffix added.

    Holds the states of this package's transforms, and tuples, lists, dicts and numbers of a transform of your own.

    >>> import tempfile, numpy as np, payback
    >>> shaping = payback.grm(0.99, delay=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/shaping.npz", shaping.init(np.zeros(4)))
    ...     payback.owed(shaping, load_state(f"{folder}/shaping.npz"))
    array([0., 0., 0., 0.])
    """
    arrays: dict[str, np.ndarray] = {}
    layout = {"format": FORMAT, "state": _describe(state, arrays)}
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


def load_state(path: str | os.PathLike[str]) -> State:
    """Read a state back: same arrays, same library, Torch's on the CPU.

    >>> load_state("no-such-file.npz")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            layout = json.loads(str(arrays["layout"]))
            found = layout["format"]
            if found == FORMAT:
                return _rebuild(layout["state"], arrays)
        except Exception as error:
            raise ValueError(f"{path} is not a state that save_state wrote, or is damaged: {error}") from error
    raise ValueError(
        f"{path} holds a state of format {found}, this version reads {FORMAT}; use the payback that wrote it"
    )


def _describe(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the state's outline in JSON terms, putting its arrays aside."""
    if hasattr(state, "_fields"):
        kind = type(state).__name__
        if KINDS.get(kind) is not type(state):
            raise TypeError(f"save_state cannot save a {kind}: hold your own state in tuples, lists or dicts of arrays")
        return {"kind": kind, "items": [_describe(x, arrays) for x in state]}
    if isinstance(state, (tuple, list)):
        return {"kind": type(state).__name__, "items": [_describe(x, arrays) for x in state]}
    if isinstance(state, dict):
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


def _rebuild(outline: Any, arrays: dict[str, np.ndarray]) -> Any:
    kind = outline["kind"]
    if kind == "plain":
        return outline["value"]
    if kind == "array":
        return _to_library(outline["library"], arrays[outline["name"]], outline["bfloat16"])
    items = [_rebuild(item, arrays) for item in outline["items"]]
    if kind == "dict":
        return dict(zip(outline["keys"], items, strict=True))
    if kind in ("tuple", "list"):
        return tuple(items) if kind == "tuple" else items
    return KINDS[kind](*items)


def _to_library(library: str, array: np.ndarray, short: bool) -> Array:
    if library == "numpy":
        return array
    xp = import_module("torch" if library == "torch" else "jax.numpy")
    return xp.asarray(array, dtype=xp.bfloat16 if short else None)
