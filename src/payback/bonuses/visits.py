"""How often each environment has been where it arrives, in this episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from payback.bonuses.observations import Key, refuse_other_number, row_keys, rows_to_reset
from payback.bonuses.saved import array_as_keys, keys_as_array


class Visits:
    """Count visits per environment and episode: the present one included, and the start once, without pay.

    >>> visits = Visits("Visits")
    >>> visits.arrive(np.array([7]), np.array([8])), visits.arrive(np.array([8]), np.array([7]))
    (array([1]), array([2]))
    >>> visits.reset(np.array([True]))
    >>> visits.arrive(np.array([8]), np.array([7]))
    array([1])
    """

    def __init__(self, name: str, key: Key | None = None):
        self._name, self._key = name, key
        self._seen: list[Counter[Hashable]] | None = None

    def arrive(self, obs: Any, next_obs: Any, valid: np.ndarray | None = None) -> np.ndarray:
        """Return n(s′), int64 (B,), after counting s′; invalid rows are not counted and get 1."""
        keys = row_keys(self._name, next_obs, self._key)
        seen = self._tables(len(keys))
        if not all(seen):
            # An empty table is an episode's first step: `obs` is where it starts.
            starts = row_keys(self._name, obs, self._key)
            for k, table in enumerate(seen):
                if not table and (valid is None or valid[k]):
                    table[starts[k]] = 1
        visits = np.ones(len(keys), dtype=np.int64)
        for k in range(len(keys)) if valid is None else np.flatnonzero(valid):
            seen[k][keys[k]] += 1
            visits[k] = seen[k][keys[k]]
        return visits

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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        tables = self._seen or []
        return {
            "visit_keys": keys_as_array(self._name, (key for table in tables for key in table)),
            "visit_counts": np.array([n for table in tables for n in table.values()], dtype=np.int64),
            "visit_lengths": np.array([len(table) for table in tables], dtype=np.int64),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what was saved."""
        counts: list[int] = arrays["visit_counts"].tolist()
        pairs = iter(zip(array_as_keys(arrays["visit_keys"]), counts, strict=True))
        tables = [Counter(dict(next(pairs) for _ in range(n))) for n in arrays["visit_lengths"].tolist()]
        self._seen = tables or None
