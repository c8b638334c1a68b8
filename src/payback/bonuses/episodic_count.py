"""The bonus of the paper's DoorKey: a place pays less with each visit in the same episode."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from payback.bonuses.observations import Key, batch_size, valid_rows
from payback.bonuses.saved import read, write
from payback.bonuses.visits import Visits


class EpisodicCount:
    """Pay for arriving at a place, less with each visit in this episode.

        F_t = α / n(s_{t+1}),  or  α / √n(s_{t+1}) with root=True                          (tabular_im)

    n counts the visits in this episode, the present one included, so that the first pays α; where an episode starts
    has been visited once, without pay. `key` takes one environment's observation and returns what stands for the
    place, for instance `key=lambda obs: tuple(obs["position"])`; without it the whole observation does, to the bit.
    The memory lasts one episode: `reset(where)` clears it, and nothing else does.

    >>> import numpy as np
    >>> bonus = EpisodicCount(alpha=1.0)
    >>> [float(bonus(np.array([0]), np.array([0]), np.array([cell]), {})[0]) for cell in (1, 1, 0)]
    [1.0, 0.5, 0.5]
    >>> bonus.reset(np.array([True]))
    >>> bonus(np.array([0]), np.array([0]), np.array([1]), {})
    array([1.])
    """

    def __init__(self, alpha: float = 0.02, *, root: bool = False, key: Key | None = None):
        self.alpha, self.root = float(alpha), root
        self._visits = Visits("EpisodicCount", key)

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions."""
        valid = valid_rows(info, batch_size("EpisodicCount", next_obs))
        n = self._visits.arrive(obs, next_obs, valid)
        F = self.alpha / (np.sqrt(n) if self.root else n)
        return F if valid is None else np.where(valid, F, 0.0)

    def reset(self, where: Any) -> None:
        """Forget the visits of the environments in the (B,) mask: their episodes are over."""
        self._visits.reset(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the visits of the episodes under way to an NPZ file."""
        write(path, "EpisodicCount", {}, self._visits.arrays())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from the visits that were saved."""
        self._visits.restore(read(path, "EpisodicCount", {}))
