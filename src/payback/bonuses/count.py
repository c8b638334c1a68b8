"""Pay for what has rarely been seen in all of training (MBIE-EB; Strehl and Littman 2008)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from payback.bonuses.observations import Key, row_keys, valid_rows
from payback.bonuses.saved import array_as_keys, keys_as_array, read, write


class Count:
    """Pay for arriving at a place, less with each visit in all episodes of all environments.

        F_t = α / √n(s_{t+1}),  or  α / n(s_{t+1}) with root=False

    n includes the present visit. The rows of a batch are all counted before one is paid: environments that arrive at
    the same place in the same step are paid the same. `key` takes one environment's observation and returns what
    stands for the place; without it the whole observation does, to the bit, so give one for continuous observations
    (or use `SimHash`). Strehl and Littman count pairs (s, a); this counts s′, as deep variants do.

    >>> import numpy as np
    >>> bonus = Count(alpha=1.0, root=False)
    >>> bonus(np.array([0, 0]), np.array([0, 1]), np.array([3, 4]), {})
    array([1., 1.])
    >>> bonus(np.array([3, 4]), np.array([0, 1]), np.array([3, 5]), {})
    array([0.5, 1. ])
    """

    def __init__(self, alpha: float = 0.1, *, root: bool = True, key: Key | None = None):
        self.alpha, self.root = float(alpha), root
        self._key = key
        self._seen: Counter[Hashable] = Counter()

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions."""
        keys = row_keys("Count", next_obs, self._key)
        valid = valid_rows(info, len(keys))
        n = count_visits(self._seen, keys, valid)
        F = self.alpha / (np.sqrt(n) if self.root else n)
        return F if valid is None else np.where(valid, F, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to an NPZ file."""
        write(path, "Count", {}, counts_as_arrays("Count", self._seen))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from the counts that were saved."""
        self._seen = arrays_as_counts(read(path, "Count", {}))


def count_visits(seen: Counter[Hashable], keys: list[Hashable], valid: np.ndarray | None) -> np.ndarray:
    """Count the valid rows of a batch, then return n of every row, int64 (B,), at least 1."""
    seen.update(keys if valid is None else [key for key, counted in zip(keys, valid, strict=True) if counted])
    return np.array([seen[key] or 1 for key in keys], dtype=np.int64)


def counts_as_arrays(name: str, seen: Counter[Hashable]) -> dict[str, np.ndarray]:
    """Return what to save."""
    return {"keys": keys_as_array(name, seen), "counts": np.array(list(seen.values()), dtype=np.int64)}


def arrays_as_counts(arrays: dict[str, np.ndarray]) -> Counter[Hashable]:
    """Return what was saved."""
    return Counter(dict(zip(array_as_keys(arrays["keys"]), arrays["counts"].tolist(), strict=True)))
