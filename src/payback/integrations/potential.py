"""Potential-based shaping in the hosts: pay γΦ(s′) − Φ(s), with Φ = 0 after a true end.

    F_t = γΦ(s_{t+1}) − Φ(s_t),   Φ = 0 where an episode terminates                      (grzes_potential)

At a truncation Φ(s_{t+1}) is kept, because the learner bootstraps there: V(s_{t+1}) then holds −Φ(s_{t+1}). The rest of
an episode pays −Φ(s_t) in total, which is fixed before the action: `owed` is Φ(s_{t+1}). An autoreset row pays 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from payback.core.validate import read_gamma
from payback.integrations.host import read_intrinsic
from payback.theory import shape_episodic

Potential = Callable[[Any], Any]  # obs → Φ, (B,), on batches of observations; pure, and fixed during training


class Potentials:
    """The potential of B environments' current observations, in NumPy."""

    def __init__(self, potential: Potential, gamma: float, num_envs: int):
        refuse_no_function(potential)
        self.gamma = read_gamma(gamma)
        self._potential, self._B, self._steps = potential, num_envs, 0
        self._now = np.zeros(num_envs)

    def begin(self, obs: Any) -> None:
        """Take the observations that the next step begins with, where a reset has changed some."""
        self._now = self._read(obs)

    def step(self, next_obs: Any, terminated: Any, valid: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """Return (Φ(s′), γΦ(s′) − Φ(s), the debt), 0 in rows that are not `valid`; `next_obs` ends the transition."""
        self._steps += 1
        terminated = np.zeros(self._B, dtype=bool) if terminated is None else terminated
        before, self._now = self._now, self._read(next_obs)
        shaped = shape_episodic(before, self._now, terminated, self.gamma)
        columns = self._now, shaped, np.where(terminated, 0.0, self._now)
        return columns if valid is None else tuple(np.where(valid, column, 0.0) for column in columns)

    def _read(self, obs: Any) -> np.ndarray:
        # A copy, because the function may write its next answer into the same memory.
        return read_intrinsic(self._potential(obs), self._B, self._steps, what="potential").copy()


def refuse_no_function(potential: Any) -> None:
    """Refuse a potential that cannot be called."""
    if not callable(potential):
        raise TypeError(f"potential must be a function obs → Φ of shape (B,) on batches, got {potential!r:.100}")
