"""A bonus that depends on how often this episode has been where it arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from payback.bonuses.observations import Key
from payback.bonuses.visits import Visits


class PerVisit(Visits):
    """Multiply novelty by a factor of n(s′), the visits in this episode.

    >>> memory, place = PerVisit("RIDE", None, lambda n: 1 / np.sqrt(n)), np.array([[1.0]])
    >>> memory.pay(np.array([2.0]), -place, place, None), memory.pay(np.array([2.0]), place, place, None).round(2)
    (array([2.]), array([1.41]))
    """

    def __init__(self, name: str, key: Key | None, factor: Callable[[np.ndarray], np.ndarray]):
        super().__init__(name, key)
        self._factor = factor

    def pay(self, novelty: np.ndarray, obs: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        """Return novelty · factor(n), after counting s′."""
        return novelty * self._factor(self.arrive(obs, next_obs, valid))
