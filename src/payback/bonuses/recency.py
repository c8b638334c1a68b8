"""Pay for trying again what has not been tried for long (Dyna-Q+; Sutton 1990)."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

import numpy as np

from payback.bonuses.observations import Key, refuse_other_actions, row_keys, valid_rows
from payback.bonuses.saved import array_as_keys, keys_as_array, read, write


class Recency:
    """Pay for an action by how long ago it was last tried in the same place.

        F_t = κ √τ(s_t, a_t),   τ the steps since the pair was last tried

    A step is one call with a valid row, of all environments together; a pair that was never tried counts as tried at
    step 0. All environments share the memory, which lasts over episodes. `key` takes one environment's observation and
    returns what stands for the place; without it the whole observation does, to the bit. Sutton adds the bonus to
    planned steps; this adds it to real ones.

    >>> import numpy as np
    >>> bonus, place = Recency(kappa=1.0), np.array([0])
    >>> [float(bonus(place, np.array([a]), place, {})[0]) for a in (0, 0, 1, 1, 0)][2:]
    [1.7320508075688772, 1.0, 1.7320508075688772]
    """

    def __init__(self, kappa: float = 1e-3, *, key: Key | None = None):
        self.kappa = float(kappa)
        self._key = key
        self._tried: dict[Hashable, int] = {}
        self._now = 0

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions."""
        places = row_keys("Recency", obs, self._key)
        actions = [] if action is None else row_keys("Recency", action, None)
        refuse_other_actions("Recency", None if action is None else len(actions), len(places))
        pairs = list(zip(places, actions, strict=True))
        valid = valid_rows(info, len(pairs))
        self._now += valid is None or bool(valid.any())
        waited = np.array([self._now - self._tried.get(pair, 0) for pair in pairs], dtype=np.float64)
        for k, pair in enumerate(pairs):
            if valid is None or valid[k]:
                self._tried[pair] = self._now
        F = self.kappa * np.sqrt(waited)
        return F if valid is None else np.where(valid, F, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write when each pair was last tried to an NPZ file."""
        arrays = {
            "keys": keys_as_array("Recency", self._tried),
            "tried": np.array(list(self._tried.values()), dtype=np.int64),
            "now": np.array(self._now),
        }
        write(path, "Recency", {}, arrays)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from the times that were saved."""
        arrays = read(path, "Recency", {})
        self._tried = dict(zip(array_as_keys(arrays["keys"]), arrays["tried"].tolist(), strict=True))
        self._now = int(arrays["now"])
