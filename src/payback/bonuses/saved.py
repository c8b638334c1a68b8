"""Saving a bonus beside a model and loading it to train on: one NPZ file, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from payback.core.arrays import is_dict, is_list, is_tuple
from payback.core.state_io import read_npz, write_npz

FORMAT = 1


def write(path: str | os.PathLike[str], kind: str, sizes: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a bonus, whole or not at all. The path is used as given, with no suffix added."""
    write_npz(path, {"format": FORMAT, "kind": kind, "sizes": dict(sizes)}, arrays)


def read(path: str | os.PathLike[str], kind: str, sizes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays that `write` was given, or say why they do not belong to this bonus."""
    not_ours = f"{path} is not a bonus that save wrote, or is damaged"
    (number, found, saved), arrays = read_npz(path, ("format", "kind", "sizes"), not_ours)
    if number != FORMAT:
        raise ValueError(f"{path} holds a bonus of format {number}, this version reads {FORMAT}")
    if found != kind:
        raise ValueError(f"{path} holds the bonus {found}, not {kind}; load it into a {found}")
    for name, size in json.loads(json.dumps(dict(sizes))).items():
        if saved.get(name) != size:
            raise ValueError(
                f"{path} holds a {kind} with {name} = {saved.get(name)}, this one has {name} = {size}; "
                "make it with the sizes that it was saved with"
            )
    return arrays


def keys_as_array(name: str, keys: Iterable[Hashable]) -> np.ndarray:
    """Return the keys of counted rows as bytes of JSON."""
    text = json.dumps([_as_json(name, key) for key in keys])
    return np.frombuffer(text.encode(), dtype=np.uint8)


def array_as_keys(array: np.ndarray) -> list[Hashable]:
    """Return the keys that `keys_as_array` was given."""
    return [_from_json(key) for key in json.loads(array.tobytes().decode())]


def _as_json(name: str, key: Any) -> Any:
    if isinstance(key, np.generic):
        key = cast(Any, key).item()
    if key is None or type(key) in (bool, int, float, str):
        return key
    if isinstance(key, bytes):
        return {"bytes": key.hex()}
    if is_tuple(key):
        return [_as_json(name, item) for item in key]
    raise TypeError(
        f"{name} cannot save the key {key!r}, a {type(key).__name__}; "
        "let the key function return numbers, strings, bytes or tuples of these"
    )


def _from_json(key: Any) -> Hashable:
    if is_dict(key):
        return bytes.fromhex(key["bytes"])
    return tuple(_from_json(item) for item in key) if is_list(key) else key
