"""Visits per environment and episode, and the keys under which they are counted, as arrays to save."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, cast

import numpy as np

from payback.bonuses.observations import Key, as_array, map_parts, refuse_other_number, row_keys, rows_at, rows_to_reset
from payback.core.arrays import is_list


class Visits:
    """Count visits per environment and episode: the present one included, and the start once, without pay."""

    def __init__(self, name: str, key: Key | None = None):
        self._name, self._key = name, key
        self._seen: list[Counter[Hashable]] | None = None

    def arrive(self, obs: Any, next_obs: Any, valid: np.ndarray | None = None) -> np.ndarray:
        """Return n(s′), int64 (B,), after counting s′; invalid rows are not counted and get 1."""
        keys = row_keys(self._name, next_obs, self._key)
        seen = self._tables(len(keys))
        if not all(seen):  # an empty table is an episode's first step: `obs` is where it starts
            starts = row_keys(self._name, obs, self._key)
            for k, table in enumerate(seen):
                if not table and (valid is None or valid[k]):
                    table[starts[k]] = 1
        visits = np.ones(len(keys), dtype=np.int64)
        for k in range(len(keys)) if valid is None else np.flatnonzero(valid):
            seen[k][keys[k]] += 1
            visits[k] = seen[k][keys[k]]
        return visits

    def of_rollout(self, obs: Any, next_obs: Any, ends: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
        """Return n(s′), int64 (T, B), of a rollout; a Torch block is copied to the host once."""
        obs, next_obs = (map_parts(as_array, part) for part in (obs, next_obs))
        n = np.ones(ends.shape, dtype=np.int64)
        for t in range(len(ends)):
            n[t] = self.arrive(rows_at(obs, t), rows_at(next_obs, t), None if valid is None else valid[t])
            if ends[t].any():
                self.reset(ends[t])
        return n

    def reset(self, where: Any) -> None:
        """Forget the visits of the environments in the mask; a mask of all may have another length."""
        where = rows_to_reset(self._name, where)
        if where.all():
            self._seen = [Counter() for _ in where]
        for k in np.flatnonzero(where):
            self._tables(len(where))[k] = Counter()

    def _tables(self, B: int) -> list[Counter[Hashable]]:
        if self._seen is None:
            self._seen = [Counter() for _ in range(B)]
        refuse_other_number(self._name, len(self._seen), B)
        return self._seen

    def _arrays(self) -> dict[str, np.ndarray]:
        tables = self._seen or []
        return {
            "visit_keys": keys_as_array(self._name, (key for table in tables for key in table)),
            "visit_counts": np.array([n for table in tables for n in table.values()], dtype=np.int64),
            "visit_lengths": np.array([len(table) for table in tables], dtype=np.int64),
        }

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        counts: list[int] = arrays["visit_counts"].tolist()
        pairs = iter(zip(array_as_keys(arrays["visit_keys"]), counts, strict=True))
        tables = [Counter(dict(next(pairs) for _ in range(n))) for n in arrays["visit_lengths"].tolist()]
        self._seen = tables or None


def keys_as_array(name: str, keys: Iterable[Hashable]) -> np.ndarray:
    """Return the keys of counted rows as bytes of JSON, which has no bytes: they become {"bytes": hexadecimal}."""

    def encode(key: Any) -> Any:
        if isinstance(key, bytes):
            return {"bytes": key.hex()}
        if isinstance(key, np.generic):
            return cast(Any, key).item()
        raise TypeError(
            f"{name} cannot save the key {key!r}, a {type(key).__name__}; "
            "let the key function return numbers, strings, bytes or tuples of these"
        )

    return np.frombuffer(json.dumps(list(keys), default=encode).encode(), dtype=np.uint8)


def array_as_keys(array: np.ndarray) -> list[Hashable]:
    """Return the keys that `keys_as_array` was given."""
    return list(map(_as_key, json.loads(array.tobytes(), object_hook=lambda found: bytes.fromhex(found["bytes"]))))


def _as_key(found: Any) -> Hashable:
    return tuple(map(_as_key, found)) if is_list(found) else found
