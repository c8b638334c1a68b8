"""Prior methods that need critics: what they add depends on learned values, not on the reward alone."""

from __future__ import annotations

from payback.core.arrays import Array
from payback_lab.learners.arena.preference import approach_preference, keep_preference

__all__ = ["approach_preference", "bias_choice", "keep_preference"]


def bias_choice(q: Array, phi: Array, xi: float) -> Array:
    """Score actions by the environment's own values and by advice that fades out (PIES, Behboudian et al. 2022).

        act by argmax_a Q(s,a) − ξΦ(s,a),   ξ → 0

    Q is learned from the environment's reward alone; −Φ is the value of the advice. The optimal policies are preserved
    only at ξ = 0, where nothing is left of the advice.

    >>> import numpy as np
    >>> bias_choice(np.array([1.0, 0.9]), np.array([0.0, -1.0]), xi=0.5)
    array([1. , 1.4])
    """
    if xi < 0:
        raise ValueError(f"xi must not be negative, got {xi!r}; it fades to 0")
    return q - xi * phi
