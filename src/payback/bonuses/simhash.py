"""Counts of hashed observations, for spaces in which no observation comes twice (Tang et al. 2017)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from payback.bonuses.count import arrays_as_counts, count_visits, counts_as_arrays
from payback.bonuses.observations import flat_rows, valid_rows
from payback.bonuses.saved import read, write
from payback.core.validate import read_count


class SimHash:
    """Pay for arriving among observations that were rarely seen: similar ones share a hash, which is counted.

        F_t = α / √n(h(s_{t+1})),   h(s) = sign(A g(s)) ∈ {−1, 1}ᵏ,   A of k rows drawn from N(0, 1) once

    More `bits` k tell more observations apart. `view` is g, from a batch of observations to (B, …) numbers; without
    it the observation itself is projected, the arrays of a Dict flattened and concatenated. sign is that of A(g − c)
    for `view=lambda obs: obs - c`: centre observations that are all positive (pixels), because their projections
    otherwise differ little in sign. Counts as `Count` does, over all of training.

    >>> import numpy as np
    >>> bonus = SimHash(alpha=1.0, bits=8)
    >>> here, far = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.3]])
    >>> [round(float(bonus(here, np.array([0]), place, {})[0]), 2) for place in (here, 1.001 * here, far)]
    [1.0, 0.71, 1.0]
    """

    def __init__(self, alpha: float = 0.1, *, bits: int = 64, view: Callable[[Any], Any] | None = None, seed: int = 0):
        self.alpha, self.bits = float(alpha), read_count("bits", bits, 1)
        self._view, self._seed = view, seed
        self._projection: np.ndarray | None = None
        self._seen: Counter[Hashable] = Counter()

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions."""
        rows = flat_rows("SimHash", next_obs if self._view is None else self._view(next_obs))
        valid = valid_rows(info, len(rows))
        n = count_visits(self._seen, self._hash(rows), valid)
        F = self.alpha / np.sqrt(n)
        return F if valid is None else np.where(valid, F, 0.0)

    def _hash(self, rows: np.ndarray) -> list[Hashable]:
        size = rows.shape[1]
        if self._projection is None:
            self._projection = np.random.default_rng(self._seed).normal(size=(self.bits, size))
        if self._projection.shape[1] != size:
            raise ValueError(f"SimHash projects {self._projection.shape[1]} numbers per observation, got {size}")
        return [row.tobytes() for row in np.packbits(rows @ self._projection.T > 0, axis=1)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the projection and the counts to an NPZ file."""
        A = np.zeros((self.bits, 0)) if self._projection is None else self._projection
        write(path, "SimHash", {"bits": self.bits}, {"A": A, **counts_as_arrays("SimHash", self._seen)})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on with the projection and the counts that were saved."""
        arrays = read(path, "SimHash", {"bits": self.bits})
        A = arrays["A"]
        if self._projection is not None and A.shape[1] not in (0, self._projection.shape[1]):
            raise ValueError(
                f"{path} holds a SimHash of {A.shape[1]} numbers per observation, "
                f"this one projects {self._projection.shape[1]}"
            )
        self._projection = A if A.shape[1] else None
        self._seen = arrays_as_counts(arrays)
