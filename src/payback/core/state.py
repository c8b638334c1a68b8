"""The state of a transform: list its arrays, find what all environments share, save and load it.

A state is an array, or a NamedTuple, tuple, list or dict of states. Most arrays hold one value per environment, which
ends with the episode; a NamedTuple, ours or yours, names the others in two class attributes:

    shared = ("mean",)      one value for all environments, which outlives their episodes: F̄
    constants = ("fade",)   never changes, and identifies the transform
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from array_api_compat import is_jax_array, is_numpy_array, is_torch_array

from payback.core.arrays import Array, constant, fields_of, is_a, namespace
from payback.core.center import CenterState
from payback.core.repay_at_ages import AgesState
from payback.core.repay_at_once import AtEndState, WhenState
from payback.core.repay_geometric import GeometricState
from payback.core.scaling import ReturnStdState, RmsState, ScheduleState, StdState
from payback.core.transform import State

FORMAT = 2
RUNNING = (CenterState, ReturnStdState, RmsState, ScheduleState, StdState)
# The states that `load_state` rebuilds by name; other NamedTuples need an example.
OURS = {kind.__name__: kind for kind in (AgesState, AtEndState, GeometricState, WhenState, *RUNNING)}
Role = Literal["environment", "shared", "constant"]  # each environment's, of all of them together, or the transform's


def leaves(state: State) -> list[Any]:
    """Return the arrays of a state, in order."""
    return [leaf for leaf, _, _ in _walk(state)]


def roles(state: State) -> list[Role]:
    """Return what each of the arrays belongs to, in the order of `leaves`."""
    return [role for _, role, _ in _walk(state)]


def rebuild(outline: State, arrays: Iterator[Any]) -> State:
    """Return a state like `outline` that holds `arrays`, in the order of `leaves`."""
    if is_a(outline, dict):
        return {name: rebuild(part, arrays) for name, part in outline.items()}
    if not is_a(outline, tuple, list):
        return next(arrays)
    parts = [rebuild(part, arrays) for part in outline]
    return type(outline)(*parts) if fields_of(outline) else type(outline)(parts)


def _walk(state: State, role: Role = "environment", name: str = "the state") -> Iterator[tuple[Any, Role, str]]:
    """Yield each array, what it belongs to, and the name of its field."""
    if is_a(state, dict):
        state = tuple(state.values())
    if not is_a(state, tuple, list):
        yield state, role, name
        return
    own: dict[str, Role] = dict.fromkeys(_declared(state, "constants"), "constant")
    own |= dict.fromkeys(_declared(state, "shared"), "shared")
    for part, field in zip(state, fields_of(state) or [""] * len(state), strict=True):
        yield from _walk(part, own.get(field, role) if role == "environment" else role, field or name)


def _declared(state: Any, attribute: str) -> tuple[str, ...]:
    """Return the fields that a state's class names in `attribute`; none where the attribute is itself a field."""
    names = getattr(state.__class__, attribute, ())
    if not is_a(names, tuple):
        return ()
    unknown = [name for name in names if name not in fields_of(state)]
    if unknown:
        kind = state.__class__.__name__
        raise TypeError(f"{kind}.{attribute} names {unknown[0]!r}, which is not a field of {kind}")
    return names


def shared_of(state: State) -> list[Array]:
    """Return the arrays that all environments share and that outlive their episodes: F̄ and its like."""
    return [leaf for leaf, role, _ in _walk(state) if role == "shared"]


def with_shared(state: State, arrays: list[Any]) -> State:
    """Return `state` with its shared arrays replaced by `arrays`, which may be numbers or lists."""
    own = shared_of(state)
    shapes, given = [tuple(np.shape(x)) for x in own], [tuple(np.shape(x)) for x in arrays]
    if shapes != given:
        raise ValueError(f"the state shares arrays of shapes {shapes}, not {given}; take them from the same transform")
    new = iter([_like(x, old) for x, old in zip(arrays, own, strict=True)])
    return rebuild(state, (next(new) if role == "shared" else x for x, role, _ in _walk(state)))


def running_mean(state: State) -> float | None:
    """Return F̄, the first one where a chain centres twice; None where nothing is centred."""
    if isinstance(state, CenterState):
        return float(state.mean)
    parts = state if is_a(state, tuple) else ()
    return next((mean for part in parts if (mean := running_mean(part)) is not None), None)


def _like(value: Any, old: Array) -> Any:
    if not hasattr(old, "dtype"):
        return value
    if is_numpy_array(old):
        return np.array(value, dtype=old.dtype)[()]
    return constant(namespace(old), np.asarray(_on_cpu(value) if is_torch_array(value) else value), old)


def save_state(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to an NPZ file, whole or not at all. The path is used as given, with no suffix added.

    A state of your own may hold NamedTuples, tuples, lists and dicts of arrays and numbers.

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
    """Read a state back: the same arrays in the same library, Torch's on the CPU.

    `like` is a state of the same transform, e.g. what its `init` returns. A NamedTuple of your own needs it. With it,
    a state of another transform, γ or horizon, or for another number of environments, is refused.

    >>> load_state("no-such-file.npz")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    return _load(path, like)


def load_shared(path: str | os.PathLike[str], state: State) -> State:
    """Return `state` with the shared arrays of a file, saved by the same transform with any number of environments."""
    return with_shared(state, shared_of(_load(path, state, any_number=True)))


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


def read_npz(path: str | os.PathLike[str], keys: list[str], not_ours: str) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return these entries of the layout, and the arrays, that `write_npz` wrote; say `not_ours` of any other file."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            layout = json.loads(str(arrays.pop("layout")))
            return [layout[key] for key in keys], arrays
        except Exception as error:
            raise ValueError(f"{not_ours}: {error}") from error


def _load(path: str | os.PathLike[str], like: State, any_number: bool = False) -> State:
    """Read a state; with `any_number`, `like` may have another number of environments."""
    not_ours = f"{path} is not a state that save_state wrote, or is damaged"
    (found, outline), arrays = read_npz(path, ["format", "state"], not_ours)
    if found != FORMAT:
        formats = f"a state of format {found}, this version reads {FORMAT}"
        raise ValueError(f"{path} holds {formats}; use the payback that wrote it")
    if like is not None and (difference := _difference(outline, arrays, like, any_number)):
        raise ValueError(f"{path} holds the state of another transform: {difference}; load it with its own")
    if like is None and (foreign := _foreign(outline)):
        raise ValueError(f"{path} holds a {foreign}, a class of your own; pass load_state like=transform.init(…)")
    try:
        return _stored(outline, arrays, like)
    except Exception as error:
        raise ValueError(f"{not_ours}: {error}") from error


def _describe(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the state's outline in JSON terms, and put its arrays into `arrays`."""
    kind = type(state).__name__
    if is_a(state, tuple) or kind == "list":
        own = {"fields": list(fields_of(state))} if fields_of(state) else {}
        return {"kind": kind, **own, "items": [_describe(x, arrays) for x in state]}
    if kind == "dict":
        return {"kind": "dict", "keys": list(state), "items": [_describe(x, arrays) for x in state.values()]}
    if _is_plain(state):
        return {"kind": "plain", "value": state}
    name = f"a{len(arrays)}"
    library = "torch" if is_torch_array(state) else "jax" if is_jax_array(state) else "numpy"
    # NumPy has no bfloat16, so it is stored as the float32 that holds it.
    short = library != "numpy" and "bfloat16" in str(state.dtype)
    arrays[name] = np.asarray(_on_cpu(state) if library == "torch" else state, dtype=np.float32 if short else None)
    if arrays[name].dtype.hasobject:
        raise TypeError(f"save_state cannot save a {type(state).__name__}: hold your state in arrays of numbers")
    return {"kind": "array", "name": name, "library": library, "bfloat16": short}


def _is_plain(leaf: Any) -> bool:
    return leaf is None or (isinstance(leaf, (bool, int, float, str)) and not isinstance(leaf, np.generic))


def _on_cpu(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    return tensor.float() if "bfloat16" in str(tensor.dtype) else tensor


def _foreign(outline: Any) -> str | None:
    """Return the name of the first NamedTuple that is not ours, None if there is none."""
    if "fields" in outline and outline["kind"] not in OURS:
        return outline["kind"]
    return next((name for item in outline.get("items", ()) if (name := _foreign(item))), None)


def _difference(outline: Any, arrays: dict[str, np.ndarray], like: State, any_number: bool) -> str | None:
    """Describe how a stored state differs from an example in structure, shapes or constants."""
    own = _describe(like, mine := {})
    if _structure(outline) != _structure(own):
        return f"it is a {outline['kind']} there and a {own['kind']} here, or their parts differ"
    parts = [(role, name) for leaf, role, name in _walk(like) if not _is_plain(leaf)]
    found = (
        _array_difference(name, role == "constant", any_number and role == "environment", arrays[key], mine[key])
        for key, (role, name) in zip(mine, parts, strict=True)
    )
    return next(filter(None, found), None)


def _structure(outline: Any) -> Any:
    """Return what two states of one transform have in common, whatever their arrays hold."""
    names = outline.get("fields") or outline.get("keys")
    return outline["kind"], names, type(outline.get("value")), [_structure(part) for part in outline.get("items", ())]


def _array_difference(name: str, constant: bool, any_width: bool, stored: np.ndarray, own: np.ndarray) -> str | None:
    """Describe how a stored array differs from an example's; constants are compared in the narrower dtype."""
    if stored.shape[:-1] != own.shape[:-1] or not (any_width or stored.shape == own.shape):
        return f"{name} is of shape {stored.shape} there and {own.shape} here"
    dtype = min(stored.dtype, own.dtype, key=lambda dtype: dtype.itemsize)
    if not constant or np.array_equal(own.astype(dtype), stored.astype(dtype)):
        return None
    if name == "fade":
        there, here = ("none" if fade == 1 else f"{1 / (1 - float(fade)):g}" for fade in (stored, own))
        return f"its mean has another horizon, {there} there and {here} here"
    what = "its terms (γ and the shares)" if name == "terms" else name
    return f"{what} are {stored.tolist()} there and {own.tolist()} here"


def _stored(outline: Any, arrays: dict[str, np.ndarray], like: Any) -> Any:
    kind = outline["kind"]
    if kind == "plain":
        return outline["value"]
    if kind == "array":
        array, library = arrays[outline["name"]], outline["library"]
        if library == "numpy":
            return array
        xp = import_module("torch" if library == "torch" else "jax.numpy")
        return xp.asarray(array, dtype=xp.bfloat16 if outline["bfloat16"] else None)
    examples = [None] * len(outline["items"]) if like is None else list(like.values() if kind == "dict" else like)
    items = [_stored(item, arrays, example) for item, example in zip(outline["items"], examples, strict=True)]
    if kind == "dict":
        return dict(zip(outline["keys"], items, strict=True))
    if kind in ("tuple", "list"):
        return tuple(items) if kind == "tuple" else items
    return (OURS[kind] if like is None else type(like))(*items)
