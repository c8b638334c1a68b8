"""Bonuses that count visits within an episode: `EpisodicCount`, and `episodic` around any other bonus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from copy import deepcopy
from typing import Any

import numpy as np

from payback.bonuses.bonus import ALPHA, Bonus, Scale, array_as_keys, as_tensor_like, keys_as_array
from payback.bonuses.observations import (
    Key,
    as_array,
    batch_size,
    map_parts,
    refuse_other_number,
    rollout_flags,
    row_keys,
    rows_to_reset,
    valid_rows,
)


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

    def of_rollout(self, obs: Any, next_obs: Any, ends: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
        """Return n(s′), int64 (T, B), of a rollout; a Torch block is copied to the host once."""
        obs, next_obs = (map_parts(as_array, part) for part in (obs, next_obs))
        n = np.ones(ends.shape, dtype=np.int64)
        for t in range(len(ends)):
            here, there = (map_parts(lambda array, t=t: array[t], part) for part in (obs, next_obs))
            n[t] = self.arrive(here, there, None if valid is None else valid[t])
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


class EpisodicCount(Bonus):
    """Pay for arriving at an observation, less with each visit in this episode: the bonus of the paper's DoorKey.

        F_t = α / n(s_{t+1}),  or  α / √n(s_{t+1}) with root=True                          (tabular_im)

    n counts the visits in this episode, the present one included; the start counts once, without pay. `key` takes one
    environment's observation and returns what is counted, for instance `key=lambda obs: tuple(obs["position"])`;
    without it the whole observation is, to the bit. F starts at α in every episode and needs no normalisation. The
    memory lasts one episode, until `reset(where)`.

    >>> import numpy as np
    >>> bonus = EpisodicCount(alpha=1.0)
    >>> [float(bonus(np.array([0]), np.array([0]), np.array([cell]), {})[0]) for cell in (1, 1, 0)]
    [1.0, 0.5, 0.5]
    >>> bonus.reset(np.array([True]))
    >>> bonus(np.array([0]), np.array([0]), np.array([1]), {})
    array([1.])
    """

    episodic = True

    def __init__(self, alpha: float = ALPHA, *, root: bool = False, key: Key | None = None, normalise: bool = False):
        super().__init__("EpisodicCount", alpha, normalise, Scale())
        self.root, self._visits = root, Visits("EpisodicCount", key)

    def reset(self, where: Any) -> None:
        """Forget the visits of the environments in the (B,) mask: their episodes are over."""
        self._visits.reset(where)

    def _novelty(self, obs: Any, action: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        return 1 / _divisor(self._visits.arrive(obs, next_obs, valid), self.root)

    def _arrays(self) -> dict[str, np.ndarray]:
        return self._visits.arrays()

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        self._visits.restore(arrays)


class Episodic(Bonus):
    """A bonus divided by this episode's visits; `episodic` makes it."""

    episodic = True

    def __init__(self, bonus: Callable[..., Any], root: bool, key: Key | None):
        if not callable(bonus):
            raise TypeError(f"episodic needs a bonus, (obs, action, next_obs, info) → F, got a {type(bonus).__name__}")
        inner = getattr(bonus, "name", getattr(bonus, "__name__", type(bonus).__name__))
        super().__init__(f"episodic {inner}", 1.0, False, Scale())
        self.bonus: Any = bonus
        self.root, self._visits = root, Visits(self.name, key)

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> Any:
        """Return F (B,) of a batch of transitions."""
        F = self.bonus(obs, action, next_obs, info)
        n = self._visits.arrive(obs, next_obs, valid_rows(info, batch_size(self.name, next_obs)))
        return F / _divisor(n, self.root)

    def of_rollout(self, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None) -> Any:
        """Return F (T, B) of a finished rollout; visits are counted on the host, F stays on its device."""
        if not hasattr(self.bonus, "of_rollout"):
            return super().of_rollout(obs, actions, next_obs, dones, valid)
        ends, counted = rollout_flags(self.name, dones, valid)
        F = self.bonus.of_rollout(obs, actions, next_obs, dones, valid)
        return F / as_tensor_like(F, _divisor(self._visits.of_rollout(obs, next_obs, ends, counted), self.root))

    def bind(self, observation_space: Any, action_space: Any) -> None:
        """Pass the spaces on."""
        if hasattr(self.bonus, "bind"):
            self.bonus.bind(observation_space, action_space)

    def reset(self, where: Any) -> None:
        """Forget the current episodes of the environments in the (B,) mask."""
        self._visits.reset(where)
        if hasattr(self.bonus, "reset"):
            self.bonus.reset(where)

    def learn(self, batch: tuple[Any, Any, Any]) -> float:
        """Take one gradient step on rows of the caller's choice, and return the loss."""
        return self.bonus.learn(batch)

    def fork(self) -> Episodic:
        """Return this bonus with other visits, for a host that steps one environment at a time: networks are shared."""
        other = deepcopy(self, {} if getattr(self.bonus, "episodic", True) else {id(self.bonus): self.bonus})
        other.reset(np.ones(1, dtype=bool))
        return other

    def _saved(self) -> Bonus:
        if not isinstance(self.bonus, Bonus):
            raise TypeError(f"{self.name} cannot be saved or loaded, because its bonus is a function of your own")
        return self.bonus

    def _sizes(self) -> Any:
        return self._saved()._sizes()

    def _arrays(self) -> dict[str, np.ndarray]:
        bonus = self._saved()
        inner = {**bonus._scale.arrays(), **bonus._arrays()}
        return {**self._visits.arrays(), **{f"bonus.{name}": array for name, array in inner.items()}}

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        bonus = self._saved()
        inner = {name.removeprefix("bonus."): value for name, value in arrays.items() if name.startswith("bonus.")}
        bonus._restore(inner, path)
        bonus._scale.restore(inner)
        self._visits.restore(arrays)


def episodic(bonus: Callable[..., Any], *, root: bool = False, key: Key | None = None) -> Episodic:
    """Divide any bonus by the visits of the observation in this episode.

        F_t / n(s_{t+1}),  or  F_t / √n(s_{t+1}) with root=True

    Wrap bonuses that hardly change within an episode, such as `RND`: they pay every visit alike, so what GRM repays
    nearly cancels what it pays. Visits are counted as in `EpisodicCount`, by `key` of one environment's observation.
    `bonus` is a ready one or a callable of your own.

    >>> import numpy as np
    >>> from payback.bonuses import Count
    >>> bonus, here = episodic(Count(alpha=1.0, root=False, normalise=False)), np.array([0])
    >>> [float(bonus(here, None, here + 1, {})[0]) for _ in range(2)]
    [1.0, 0.25]
    """
    return Episodic(bonus, root, key)


def _divisor(n: np.ndarray, root: bool) -> np.ndarray:
    return np.sqrt(n) if root else n.astype(np.float64)
