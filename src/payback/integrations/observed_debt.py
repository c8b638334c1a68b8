"""Showing the debt to the learner: an observation with what is owed beside it.

A value function that sees the debt can be exact about it; that is what `on_truncation="carry"` needs, since
a bootstrapped value then stands for loans that are still open.
"""

# Gymnasium's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np

from payback.integrations.host import host

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    from gymnasium import Space, spaces

KEY = "debt"
"""The name of the debt in a dictionary observation."""


def space_with_debt(space: Space) -> Space:
    """Return the space of one environment's observations with the debt in them.

    >>> space_with_debt(spaces.Box(0.0, 1.0, (3,), np.float32)).shape
    (4,)
    """
    if isinstance(space, spaces.Dict):
        if KEY in space.spaces:
            raise ValueError(f"the observation space already has a {KEY!r}: rename it, or use observe_debt=False")
        return spaces.Dict({**space.spaces, KEY: spaces.Box(-np.inf, np.inf, (1,), np.float32)})
    if isinstance(space, spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
        low, high = np.append(space.low, -np.inf), np.append(space.high, np.inf)
        return spaces.Box(low.astype(space.dtype), high.astype(space.dtype), dtype=space.dtype.type)
    raise ValueError(
        f"the observation space {space} cannot hold the debt: it must be a flat Box of floats or a Dict; "
        "put the observation in a Dict, or use observe_debt=False"
    )


def with_debt(observation: Any, owed: np.ndarray) -> Any:
    """Return the observation with the debt: one environment's (`owed` a scalar) or a batch (`owed` (B,))."""
    column = np.asarray(owed)[..., None]
    if isinstance(observation, dict):
        return {**observation, KEY: column.astype(np.float32)}
    return np.concatenate((observation, column.astype(observation.dtype)), axis=-1)
