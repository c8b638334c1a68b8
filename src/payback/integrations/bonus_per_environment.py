"""One bonus for each environment of a host that steps its environments one by one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np


class BonusPerEnvironment:
    """The bonus of each environment of a runner, called on batches of one.

    A bonus that has `reset` remembers the episode under way, so each environment gets a copy; others are shared.
    """

    def __init__(self, bonus: Any, num_envs: int):
        self._episodic = callable(getattr(bonus, "reset", None))
        self._bonuses: list[Any] = [bonus] * num_envs
        if self._episodic:
            self._bonuses[1:] = [deepcopy(bonus) for _ in range(num_envs - 1)]

    def of(self, env_index: int) -> Any:
        """Return the bonus of one environment."""
        return self._bonuses[env_index]

    def reset(self, where: np.ndarray) -> None:
        """Tell the bonuses of the environments in the (B,) mask that their episodes are over."""
        if self._episodic:
            for k in np.flatnonzero(where):
                self._bonuses[k].reset(np.ones(1, dtype=bool))
