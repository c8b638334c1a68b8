"""Bonuses that count over all of training: observations, their hashes, and the steps since an action was tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from payback.bonuses.bonus import ALPHA, Bonus, Scale, array_as_keys, keys_as_array
from payback.bonuses.observations import Key, flat_rows, refuse_other_actions, row_keys
from payback.core.validate import read_count


class Count(Bonus):
    """Pay for observations that were rarely seen in all of training (MBIE-EB; Strehl and Littman 2008).

        F_t = α / √n(s_{t+1}),  or  α / n(s_{t+1}) with root=False

    n includes the present visit and is shared by all environments; all rows of a batch are counted before one is paid.
    F is divided by the root mean square of all earlier F (`normalise`). `key` takes one environment's observation and
    returns what is counted; without it the whole observation is, to the bit, so pass one for continuous observations
    (or use `SimHash`). Strehl and Littman count pairs (s, a); this counts s′, as deep variants do.

    >>> import numpy as np
    >>> bonus = Count(alpha=1.0, root=False, normalise=False)
    >>> bonus(np.array([0, 0]), np.array([0, 1]), np.array([3, 4]), {})
    array([1., 1.])
    >>> bonus(np.array([3, 4]), np.array([0, 1]), np.array([3, 5]), {})
    array([0.5, 1. ])
    """

    def __init__(self, alpha: float = ALPHA, *, root: bool = True, key: Key | None = None, normalise: bool = True):
        super().__init__(type(self).__name__, alpha, normalise, Scale())
        self.root, self._key = root, key
        self._seen: Counter[Hashable] = Counter()

    def _novelty(self, obs: Any, action: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        keys = self._keys(next_obs)
        self._seen.update(keys if valid is None else [key for key, row in zip(keys, valid, strict=True) if row])
        n = np.array([self._seen[key] or 1 for key in keys], dtype=np.float64)
        return 1 / (np.sqrt(n) if self.root else n)

    def _keys(self, next_obs: Any) -> list[Hashable]:
        return row_keys(self.name, next_obs, self._key)

    def _arrays(self) -> dict[str, np.ndarray]:
        counts = np.array(list(self._seen.values()), dtype=np.int64)
        return {"keys": keys_as_array(self.name, self._seen), "counts": counts}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        self._seen = Counter(dict(zip(array_as_keys(arrays["keys"]), arrays["counts"].tolist(), strict=True)))


class SimHash(Count):
    """Pay for vectors and images unlike those seen in all of training: similar ones share a hash (Tang et al. 2017).

        F_t = α / √n(h(s_{t+1})),   h(s) = sign(A g(s)) ∈ {−1, 1}ᵏ,   A of k rows drawn from N(0, 1) once

    More `bits` k distinguish more observations. `view` is g, from a batch of observations to (B, …) numbers; without
    it the observation itself is projected, the arrays of a Dict flattened and concatenated. Centre observations that
    are all positive (pixels) with `view=lambda obs: obs - c`, because their projections otherwise differ little in
    sign. Counts and normalises as `Count` does.

    >>> import numpy as np
    >>> bonus = SimHash(alpha=1.0, bits=8, normalise=False)
    >>> here, far = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.3]])
    >>> [round(float(bonus(here, np.array([0]), seen, {})[0]), 2) for seen in (here, 1.001 * here, far)]
    [1.0, 0.71, 1.0]
    """

    def __init__(
        self,
        alpha: float = ALPHA,
        *,
        bits: int = 64,
        view: Callable[[Any], Any] | None = None,
        normalise: bool = True,
        seed: int = 0,
    ):
        super().__init__(alpha, normalise=normalise)
        self.bits, self._view, self._seed = read_count("bits", bits, 1), view, seed
        self._projection: np.ndarray | None = None

    def _keys(self, next_obs: Any) -> list[Hashable]:
        rows = flat_rows(self.name, next_obs if self._view is None else self._view(next_obs))
        size = rows.shape[1]
        if self._projection is None:
            self._projection = np.random.default_rng(self._seed).normal(size=(self.bits, size))
        if self._projection.shape[1] != size:
            raise ValueError(f"SimHash projects {self._projection.shape[1]} numbers per observation, got {size}")
        return [row.tobytes() for row in np.packbits(rows @ self._projection.T > 0, axis=1)]

    def _sizes(self) -> dict[str, Any]:
        return {"bits": self.bits}

    def _arrays(self) -> dict[str, np.ndarray]:
        A = np.zeros((self.bits, 0)) if self._projection is None else self._projection
        return {"A": A, **super()._arrays()}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        A = arrays["A"]
        if self._projection is not None and A.shape[1] not in (0, self._projection.shape[1]):
            raise ValueError(
                f"{path} holds a SimHash of {A.shape[1]} numbers per observation, "
                f"this one projects {self._projection.shape[1]}"
            )
        self._projection = A if A.shape[1] else None
        super()._restore(arrays, path)


class Recency(Bonus):
    """Pay for an action by how long ago it was last tried in the same state (Dyna-Q+; Sutton 1990).

        F_t = α √τ(s_t, a_t),   τ the steps since the pair was last tried

    A step is one call with a valid row, of all environments together; a pair that was never tried counts as tried at
    step 0. All environments share the memory, which outlives episodes. `key` and `normalise` are those of `Count`.
    Sutton adds the bonus to planned steps; this adds it to real ones.

    >>> import numpy as np
    >>> bonus, state = Recency(alpha=1.0, normalise=False), np.array([0])
    >>> [float(bonus(state, np.array([a]), state, {})[0]) for a in (0, 0, 1, 1, 0)][2:]
    [1.7320508075688772, 1.0, 1.7320508075688772]
    """

    def __init__(self, alpha: float = ALPHA, *, key: Key | None = None, normalise: bool = True):
        super().__init__("Recency", alpha, normalise, Scale())
        self._key = key
        self._tried: dict[Hashable, int] = {}
        self._now = 0

    def _novelty(self, obs: Any, action: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        states = row_keys("Recency", obs, self._key)
        actions = [] if action is None else row_keys("Recency", action, None)
        refuse_other_actions("Recency", None if action is None else len(actions), len(states))
        pairs = list(zip(states, actions, strict=True))
        self._now += valid is None or bool(valid.any())
        waited = np.array([self._now - self._tried.get(pair, 0) for pair in pairs], dtype=np.float64)
        for k, pair in enumerate(pairs):
            if valid is None or valid[k]:
                self._tried[pair] = self._now
        return np.sqrt(waited)

    def _arrays(self) -> dict[str, np.ndarray]:
        tried = np.array(list(self._tried.values()), dtype=np.int64)
        return {"keys": keys_as_array("Recency", self._tried), "tried": tried, "now": np.array(self._now)}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        self._tried = dict(zip(array_as_keys(arrays["keys"]), arrays["tried"].tolist(), strict=True))
        self._now = int(arrays["now"])
