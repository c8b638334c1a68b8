"""Saying outside `jit` what was seen inside: whether the shaped rewards of every finished episode cancel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.watch import TOLERANCE


def check_episodes(info: dict[str, Any]) -> int:
    """Warn if a finished episode's shaped rewards did not cancel, and return how many did not.

    `info` is what `step` returned, stacked by a scan or not: its "residual" is read outside `jit`, where values can be
    looked at. What overflowed float32 counts too, as it is not a number.

    >>> import jax.numpy as jnp
    >>> check_episodes({"residual": jnp.array([0.0, 3e-7])})
    0
    """
    residual = np.asarray(info["residual"])
    broken = int(np.count_nonzero(~(residual <= TOLERANCE)))
    if broken:
        warnings.warn(
            f"{broken} finished episodes did not cancel: |Σγ^t F′_t| is up to {np.max(residual):.3g} of Σγ^t |F′_t|, "
            "where 0 is right, so the bonus may change the optimal policy. The likely cause is a Match of your own "
            "that does not settle at `done` (payback.check_transform shows where), or, where it is nan, interest that "
            "float32 cannot hold: repay sooner, with grm and a shorter delay",
            ShapingWarning,
            stacklevel=2,
        )
    return broken
