"""RLlib: F̄ in the environment runners, and in the algorithm's state, which is what its checkpoints hold."""

# RLlib's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np

from payback.core.center import CenterState, center

COMPONENT = "shaping"
"""The name of F̄ in an algorithm's state."""


def centers_of(state: Any) -> list[CenterState]:
    """Return every F̄ in a state, in order."""
    if isinstance(state, CenterState):
        return [state]
    return [found for part in state for found in centers_of(part)] if type(state) is tuple else []


def with_centers(state: Any, centers: list[CenterState]) -> Any:
    """Return the state with its F̄ replaced, in order, as far as there are new ones."""
    left = iter(centers)

    def replace(part: Any) -> Any:
        if isinstance(part, CenterState):
            return next(left, part)
        return tuple(replace(x) for x in part) if type(part) is tuple else part

    return replace(state)


def centers_in(env_runner: Any) -> list[CenterState]:
    """Return every F̄ of an environment runner; none before it has sampled."""
    ledger = getattr(env_runner, "shaping", None)
    return [] if ledger is None else centers_of(ledger.state)


def set_centers(env_runner: Any, centers: list[CenterState]) -> None:
    """Give F̄ to an environment runner, also to one that has not begun to sample."""
    env_runner.shaping_means = centers
    ledger = getattr(env_runner, "shaping", None)
    if ledger is not None:
        ledger.state = with_centers(ledger.state, centers)


def _center(row: list[float]) -> CenterState:
    """One F̄ from the numbers of its fields: counts are integers, the rest float64."""
    fresh = centers_of(center().init(np.zeros(1)))[0]
    return CenterState(*(like.dtype.type(x) for like, x in zip(fresh, row, strict=True)))


def save_with(algorithm: Any, shaping: Any) -> None:
    """Make F̄ a part of the algorithm's state, which is what its checkpoints hold; callbacks have no state of theirs."""
    group, get_state, set_state = algorithm.env_runner_group, algorithm.get_state, algorithm.set_state

    def get(*args: Any, **kwargs: Any) -> dict[str, Any]:
        means = [[x.item() for x in mean] for mean in shaping.merge(group)]
        return {**get_state(*args, **kwargs), COMPONENT: means}

    def put(state: dict[str, Any]) -> None:
        set_state(state)
        if COMPONENT in state:
            shaping.hand_out(group, [_center(row) for row in state[COMPONENT]])

    algorithm.get_state, algorithm.set_state = get, put
