"""One bonus for each environment of a host that steps its environments one by one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np


class BonusPerEnvironment:
    """The bonus of each environment of a runner, called on batches of one.

    An episodic bonus remembers the episode under way, so each environment gets a copy; others are shared. A bonus that
    has `reset` is taken for episodic, unless its attribute `episodic` is False: so RND has one predictor for all.
    """

    def __init__(self, bonus: Any, num_envs: int):
        self._told = callable(getattr(bonus, "reset", None))
        self._bonuses: list[Any] = [bonus] * num_envs
        if self._told and getattr(bonus, "episodic", True):
            self._bonuses[1:] = [deepcopy(bonus) for _ in range(num_envs - 1)]

    def of(self, env_index: int) -> Any:
        """Return the bonus of one environment."""
        return self._bonuses[env_index]

    def reset(self, where: np.ndarray) -> None:
        """Tell the bonuses of the environments in the (B,) mask that their episodes are over."""
        if self._told:
            for k in np.flatnonzero(where):
                self._bonuses[k].reset(np.ones(1, dtype=bool))
