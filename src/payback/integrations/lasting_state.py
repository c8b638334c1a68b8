"""The part of a shaping state that outlives episodes and is shared by all environments: F̄, and what else is learned.

It is told from the loans by its shape, which does not grow with the number of environments, so that it can be kept
where their number changes. Constants (γ, shares, horizons) belong to the transform and are not kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from payback.core.arrays import fields_of, is_tuple
from payback.core.center import CenterState
from payback.core.state_io import load_state
from payback.core.transform import RewardTransform

CONSTANTS = ("terms", "fade")
"""Fields of our states that say which transform it is."""


def leaves(state: Any) -> Iterator[Any]:
    """Yield the arrays of a state, in order."""
    if is_tuple(state):
        for part in state:
            yield from leaves(part)
    else:
        yield state


def rebuild(outline: Any, arrays: Iterator[Any]) -> Any:
    """Return a state like `outline` that holds `arrays`, in the order of `leaves`."""
    if not is_tuple(outline):
        return next(arrays)
    parts = [rebuild(part, arrays) for part in outline]
    return type(outline)(*parts) if fields_of(outline) else tuple(parts)


def lasting(transform: RewardTransform, state: Any) -> list[Any]:
    """Return the arrays of `state` that outlive episodes, in order.

    >>> import payback
    >>> grm = payback.grm(0.9, delay=2)
    >>> state, _ = grm.update(grm.init(np.zeros(2)), np.array([1.0, 3.0]), np.array([False, False]))
    >>> lasting(grm, state)[2].item()  # F̄
    2.0
    """
    return [array for array, kept in zip(leaves(state), _which(transform), strict=True) if kept]


def with_lasting(transform: RewardTransform, state: Any, arrays: list[Any]) -> Any:
    """Return `state` with the arrays that outlive episodes replaced; raise ValueError where they do not fit."""
    which = _which(transform)
    own = lasting(transform, state)
    if [np.shape(x) for x in own] != [np.shape(x) for x in arrays]:
        raise ValueError(f"a state of another transform than {transform!r}: it has other running means")
    new = iter([np.asarray(x, dtype=like.dtype)[()] for x, like in zip(arrays, own, strict=True)])
    return rebuild(state, iter([next(new) if kept else x for x, kept in zip(leaves(state), which, strict=True)]))


def running_mean(state: Any) -> float | None:
    """Return F̄, the first one where a chain centres twice; None where nothing is centred."""
    if isinstance(state, CenterState):
        return float(state.mean)
    if not is_tuple(state):
        return None
    return next((mean for part in state if (mean := running_mean(part)) is not None), None)


def load_for_others(path: str | os.PathLike[str], transform: RewardTransform) -> object | None:
    """Return a state of `transform` that was saved for another number of environments, None if it is not one."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            sizes = {stored[name].shape[-1] for name in stored.files if stored[name].ndim}
    except (OSError, ValueError):
        return None
    for num_envs in sizes:
        try:
            return load_state(path, like=transform.init(np.zeros(num_envs)))
        except ValueError:
            continue
    return None


@lru_cache(maxsize=32)
def _which(transform: RewardTransform) -> list[bool]:
    two, three = (transform.init(np.zeros(n)) for n in (2, 3))
    shapes = zip(leaves(two), leaves(three), _names(two), strict=True)
    return [np.shape(a) == np.shape(b) and name not in CONSTANTS for a, b, name in shapes]


def _names(state: Any, name: str = "") -> Iterator[str]:
    if not is_tuple(state):
        yield name
        return
    for part, field in zip(state, fields_of(state) or [""] * len(state), strict=True):
        yield from _names(part, field)
