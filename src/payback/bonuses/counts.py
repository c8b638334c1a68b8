"""Bonuses that count: visits within an episode or over all of training, hashes, and steps since an action was tried."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from typing import Any, cast

import numpy as np

from payback.bonuses import observations as rows
from payback.bonuses.bonus import ALPHA, Bonus, Scale, as_tensor_like
from payback.bonuses.observations import Key, View, row_keys
from payback.core.arrays import is_a
from payback.core.validate import read_count


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
        obs, next_obs = (rows.map_parts(rows.as_array, part) for part in (obs, next_obs))
        n = np.ones(ends.shape, dtype=np.int64)
        for t in range(len(ends)):
            n[t] = self.arrive(rows.rows_at(obs, t), rows.rows_at(next_obs, t), None if valid is None else valid[t])
            if ends[t].any():
                self.reset(ends[t])
        return n

    def reset(self, where: Any) -> None:
        """Forget the visits of the environments in the mask; a mask of all may have another length."""
        where = rows.rows_to_reset(self._name, where)
        if where.all():
            self._seen = [Counter() for _ in where]
        for k in np.flatnonzero(where):
            self._tables(len(where))[k] = Counter()

    def _tables(self, B: int) -> list[Counter[Hashable]]:
        if self._seen is None:
            self._seen = [Counter() for _ in range(B)]
        rows.refuse_other_number(self._name, len(self._seen), B)
        return self._seen

    def _arrays(self) -> dict[str, np.ndarray]:
        tables = self._seen or []
        keys = keys_as_array(self._name, (key for table in tables for key in table))
        counts = np.array([n for table in tables for n in table.values()], dtype=np.int64)
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        return {"visit_keys": keys, "visit_counts": counts, "visit_lengths": lengths}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        counts: list[int] = arrays["visit_counts"].tolist()
        pairs = iter(zip(array_as_keys(arrays["visit_keys"]), counts, strict=True))
        tables = [Counter(dict(next(pairs) for _ in range(n))) for n in arrays["visit_lengths"].tolist()]
        self._seen = tables or None


class EpisodicCount(Bonus):
    """Pay for arriving at an observation, less with each visit in this episode: the bonus of the paper's DoorKey.

        F_t = α / n(s_{t+1}),  or  α / √n(s_{t+1}) with root=True                          (tabular_im)

    n counts the visits in this episode, the present one included; the start counts once, without pay. `key` takes one
    environment's observation and returns what is counted, for instance `key=lambda obs: tuple(obs["position"])`;
    without it, the exact observation. F starts at α in every episode and needs no normalisation.

    >>> bonus = EpisodicCount(alpha=1.0)
    >>> [float(bonus(np.array([0]), np.array([0]), np.array([cell]), {})[0]) for cell in (1, 1, 0)]
    [1.0, 0.5, 0.5]
    >>> bonus.reset(np.array([True]))
    >>> bonus(np.array([0]), np.array([0]), np.array([1]), {})
    array([1.])
    """

    def __init__(self, alpha: float = ALPHA, *, root: bool = False, key: Key | None = None, normalise: bool = False):
        super().__init__("EpisodicCount", alpha, normalise, Scale(), Visits("EpisodicCount", key))
        self.root = root

    def _novelty(self, obs: Any, action: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        return 1 / _divisor(self._memory.arrive(obs, next_obs, valid), self.root)


class episodic(Bonus):  # noqa: N801  used as a function, like `functools.partial`
    """Divide any bonus by the visits of the observation in this episode.

        F_t / n(s_{t+1}),  or  F_t / √n(s_{t+1}) with root=True

    Wrap bonuses that hardly change within an episode, such as `RND`: they pay every visit the same, so what GRM repays
    nearly cancels what it pays. Visits are counted as in `EpisodicCount`. `bonus` may be a callable of your own.

    >>> from payback.bonuses import Count
    >>> bonus, here = episodic(Count(alpha=1.0, root=False, normalise=False)), np.array([0])
    >>> [float(bonus(here, None, here + 1, {})[0]) for _ in range(2)]
    [1.0, 0.25]
    """

    def __init__(self, bonus: Callable[..., Any], *, root: bool = False, key: Key | None = None):
        if not callable(bonus):
            raise TypeError(f"episodic needs a bonus, (obs, action, next_obs, info) → F, got a {type(bonus).__name__}")
        name = f"episodic {getattr(bonus, 'name', getattr(bonus, '__name__', type(bonus).__name__))}"
        super().__init__(name, 1.0, False, Scale(), Visits(name, key))
        self.bonus: Any = bonus
        self.root = root

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> Any:
        """Return F (B,) of a batch of transitions."""
        F = self.bonus(obs, action, next_obs, info)
        n = self._memory.arrive(obs, next_obs, self._valid(info, next_obs))
        return F / _divisor(n, self.root)

    def of_rollout(self, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None) -> Any:
        """Return F (T, B) of a finished rollout; visits are counted on the host, F stays on its device."""
        if not hasattr(self.bonus, "of_rollout"):
            return super().of_rollout(obs, actions, next_obs, dones, valid)
        ends, counted = rows.rollout_flags(self.name, (obs, actions, next_obs), dones, valid)
        F = self.bonus.of_rollout(obs, actions, next_obs, dones, valid)
        return F / as_tensor_like(F, _divisor(self._memory.of_rollout(obs, next_obs, ends, counted), self.root))

    def bind(self, observation_space: Any, action_space: Any) -> None:
        """Pass the spaces on."""
        if hasattr(self.bonus, "bind"):
            self.bonus.bind(observation_space, action_space)

    def reset(self, where: Any) -> None:
        """Forget the current episodes of the environments in the (B,) mask."""
        super().reset(where)
        if hasattr(self.bonus, "reset"):
            self.bonus.reset(where)

    def learn(self, batch: tuple[Any, Any, Any]) -> float:
        """Take one gradient step on rows of the caller's choice, and return the loss."""
        return self.bonus.learn(batch)

    def fork(self) -> episodic:
        """Return this bonus with other visits, for a host that steps one environment at a time: networks are shared."""
        other = deepcopy(self, {} if getattr(self.bonus, "episodic", True) else {id(self.bonus): self.bonus})
        other.reset(np.ones(1, dtype=bool))
        return other

    def _sizes(self) -> Any:
        if not isinstance(self.bonus, Bonus):
            raise TypeError(f"{self.name} cannot be saved or loaded, because its bonus is a function of your own")
        return self.bonus._sizes()

    def _arrays(self) -> dict[str, np.ndarray]:
        inner = {f"bonus.{name}": array for name, array in self.bonus._arrays().items()}
        return {**super()._arrays(), **inner}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        inner = {name.removeprefix("bonus."): value for name, value in arrays.items() if name.startswith("bonus.")}
        self.bonus._restore(inner, path)
        super()._restore(arrays, path)


class Count(Bonus):
    """Pay for observations that were rarely seen in all of training (MBIE-EB; Strehl and Littman 2008).

        F_t = α / √n(s_{t+1}),  or  α / n(s_{t+1}) with root=False

    n includes the present visit and is shared by all environments; all rows of a batch are counted before one is paid.
    F is divided by the root mean square of all earlier F (`normalise`). `key` is that of `EpisodicCount`: pass one for
    continuous observations, or use `SimHash`. Strehl and Littman count pairs (s, a); this counts s′, as deep variants.

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
        return {**super()._arrays(), "keys": keys_as_array(self.name, self._seen), "counts": counts}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        self._seen = Counter(dict(zip(array_as_keys(arrays["keys"]), arrays["counts"].tolist(), strict=True)))
        super()._restore(arrays, path)


class SimHash(Count):
    """Pay for vectors and images unlike those seen in all of training: similar ones share a hash (Tang et al. 2017).

        F_t = α / √n(h(s_{t+1})),   h(s) = sign(A g(s)) ∈ {−1, 1}ᵏ,   A of k rows drawn from N(0, 1) once

    More `bits` k distinguish more observations. `view` is g, from a batch of observations to (B, …) numbers; without
    it the observation itself is projected, the arrays of a Dict flattened and concatenated. Centre observations that
    are all positive, such as pixels, with `view=lambda obs: obs - c`: their projections differ little in sign.

    >>> bonus = SimHash(alpha=1.0, bits=8, normalise=False)
    >>> here, far = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.3]])
    >>> [round(float(bonus(here, np.array([0]), seen, {})[0]), 2) for seen in (here, 1.001 * here, far)]
    [1.0, 0.71, 1.0]
    """

    def __init__(
        self, alpha: float = ALPHA, *, bits: int = 64, view: View | None = None, normalise: bool = True, seed: int = 0
    ):
        super().__init__(alpha, normalise=normalise)
        self.bits, self._view, self._seed = read_count("bits", bits, 1), view, seed
        self._projection: np.ndarray | None = None

    def _keys(self, next_obs: Any) -> list[Hashable]:
        numbers = rows.flat_rows(self.name, next_obs if self._view is None else self._view(next_obs))
        size = numbers.shape[1]
        if self._projection is None:
            self._projection = np.random.default_rng(self._seed).normal(size=(self.bits, size))
        if self._projection.shape[1] != size:
            raise ValueError(f"SimHash projects {self._projection.shape[1]} numbers per observation, got {size}")
        return [row.tobytes() for row in np.packbits(numbers @ self._projection.T > 0, axis=1)]

    def _sizes(self) -> dict[str, Any]:
        return {"bits": self.bits}

    def _arrays(self) -> dict[str, np.ndarray]:
        A = np.zeros((self.bits, 0)) if self._projection is None else self._projection
        return {"A": A, **super()._arrays()}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        A = arrays["A"]
        size, own = A.shape[1], 0 if self._projection is None else self._projection.shape[1]
        if own and size not in (0, own):
            raise ValueError(f"{path} holds a SimHash of {size} numbers per observation, this one projects {own}")
        self._projection = A if A.shape[1] else None
        super()._restore(arrays, path)


class Recency(Bonus):
    """Pay for an action by how long ago it was last tried in the same state (Dyna-Q+; Sutton 1990).

        F_t = α √τ(s_t, a_t),   τ the steps since the pair was last tried

    A step is one call with a valid row, of all environments together; a pair that was never tried counts as tried at
    step 0. All environments share the memory, which outlives episodes. `key` and `normalise` are those of `Count`.
    Sutton adds the bonus to planned steps; this adds it to real ones.

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
        rows.refuse_other_actions("Recency", None if action is None else len(actions), len(states))
        pairs = list(zip(states, actions, strict=True))
        self._now += valid is None or bool(valid.any())
        waited = np.array([self._now - self._tried.get(pair, 0) for pair in pairs], dtype=np.float64)
        self._tried |= {pair: self._now for k, pair in enumerate(pairs) if valid is None or valid[k]}
        return np.sqrt(waited)

    def _arrays(self) -> dict[str, np.ndarray]:
        tried = np.array(list(self._tried.values()), dtype=np.int64)
        keys = keys_as_array("Recency", self._tried)
        return {**super()._arrays(), "keys": keys, "tried": tried, "now": np.array(self._now)}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        self._tried = dict(zip(array_as_keys(arrays["keys"]), arrays["tried"].tolist(), strict=True))
        self._now = int(arrays["now"])
        super()._restore(arrays, path)


def _divisor(n: np.ndarray, root: bool) -> np.ndarray:
    return np.sqrt(n) if root else n.astype(np.float64)


def keys_as_array(name: str, keys: Iterable[Hashable]) -> np.ndarray:
    """Return the keys of counted rows as bytes of JSON, which has no bytes: they become {"bytes": hexadecimal}."""

    def encode(key: Any) -> Any:
        if isinstance(key, bytes):
            return {"bytes": key.hex()}
        if isinstance(key, np.generic):
            return cast(Any, key).item()
        remedy = "let the key function return numbers, strings, bytes or tuples of these"
        raise TypeError(f"{name} cannot save the key {key!r}, a {type(key).__name__}; {remedy}")

    return np.frombuffer(json.dumps(list(keys), default=encode).encode(), dtype=np.uint8)


def array_as_keys(array: np.ndarray) -> list[Hashable]:
    """Return the keys that `keys_as_array` was given."""
    return list(map(_as_key, json.loads(array.tobytes(), object_hook=lambda found: bytes.fromhex(found["bytes"]))))


def _as_key(found: Any) -> Hashable:
    return tuple(map(_as_key, found)) if is_a(found, list) else found
