"""A bonus that depends on how often this episode has been where it arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from payback.bonuses.observations import Key
from payback.bonuses.visits import Visits


class PerVisit:
    """Multiply novelty by a factor of n(s′), the visits in this episode.

    >>> memory, place = PerVisit("RIDE", None, lambda n: 1 / np.sqrt(n)), np.array([[1.0]])
    >>> memory.pay(np.array([2.0]), -place, place, None), memory.pay(np.array([2.0]), place, place, None).round(2)
    (array([2.]), array([1.41]))
    """

    def __init__(self, name: str, key: Key | None, factor: Callable[[np.ndarray], np.ndarray]):
        self._visits, self._factor = Visits(name, key), factor

    def pay(self, novelty: np.ndarray, obs: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        """Return novelty · factor(n), after counting s′."""
        return novelty * self._factor(self._visits.arrive(obs, next_obs, valid))

    def reset(self, where: Any) -> None:
        """Forget the visits of the environments in the mask."""
        self._visits.reset(where)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        return self._visits.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what was saved."""
        self._visits.restore(arrays)
