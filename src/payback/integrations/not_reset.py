"""Environments that the caller must reset, and that are stepped on after their episode's end."""

from __future__ import annotations

import warnings

import numpy as np

from payback.integrations.shaping_warning import ShapingWarning


class NotReset:
    """Says once that an environment was stepped after an episode's end without a reset.

    For environments that do not reset themselves (Gymnasium's DISABLED, and single ones): a step after the end is then
    an autoreset row of something inside that resets by itself, which the shaping takes for a transition.

    >>> not_reset = NotReset()
    >>> not_reset.step(np.array([True]), 1)
    >>> not_reset.reset(None)
    >>> not_reset.step(None, 2)
    """

    def __init__(self) -> None:
        self._over: np.ndarray | None = None
        self._said = False

    def reset(self, mask: np.ndarray | None) -> None:
        """Take note of a reset of all environments, or those of the (B,) mask."""
        self._over = None if mask is None or self._over is None else self._over & ~mask

    def step(self, ended: np.ndarray | None, steps: int) -> None:
        """Take note of a step and of the episodes that ended with it; warn of environments that were over before."""
        over, self._over = self._over, ended
        if over is None or self._said or not np.count_nonzero(over):
            return
        self._said = True
        warnings.warn(
            f"environment {int(np.flatnonzero(over)[0])} was stepped after its episode had ended (step {steps}), "
            "without a reset. If something inside the shaping resets by itself (gymnasium.wrappers.Autoreset, an "
            "environment of your own), its autoreset row was given a loan, which a learner that leaves the row out is "
            "to repay all the same: put Autoreset outside the shaping, or let a vector environment say its "
            "metadata['autoreset_mode']",
            ShapingWarning,
            stacklevel=4,
        )
