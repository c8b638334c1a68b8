"""Loans of which a fixed share is repaid at each step: the mechanism behind `match_geometric`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from payback.core.arrays import Array, float_dtype, namespace
from payback.core.blocks import geometric_block, invalid_only_between_episodes
from payback.core.transform import RewardTransform
from payback.core.validate import fit_state, read_state, read_step


class GeometricState(NamedTuple):
    """What each environment owes."""

    debt: Array
    """(B,), valued at the next step."""


def geometric_match(gamma: float, rate: float) -> RewardTransform:
    """Repay the share 1 − rate of the debt at each step and the rest at the last: P ← (λP + F_t)/γ."""

    def init(example: Array) -> GeometricState:
        xp = namespace(example)
        return GeometricState(xp.zeros_like(example, dtype=float_dtype(xp, example)))

    def update(
        state: GeometricState,
        reward: Array,
        done: Array,
        valid: Array | None = None,
        settle: Array | None = None,
    ) -> tuple[GeometricState, Array]:
        read_state("match_geometric", state, GeometricState)
        xp, reward, done, valid = read_step("match_geometric", state.debt, reward, done, valid)
        shaped = xp.where(done, -state.debt, reward - (1 - rate) * state.debt)
        debt = xp.where(done, 0.0, (rate * state.debt + reward) / gamma)
        if valid is not None:
            shaped, debt = xp.where(valid, shaped, 0.0), xp.where(valid, debt, state.debt)
        return GeometricState(debt), shaped

    def owed(state: GeometricState) -> Array:
        read_state("match_geometric", state, GeometricState)
        return state.debt + 0.0  # a copy: a caller may write into what it is told

    def forget(state: GeometricState, where: Array) -> GeometricState:
        xp = namespace(state.debt)
        return GeometricState(xp.where(where, 0.0, state.debt))

    def rollout(
        state: GeometricState, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
    ) -> tuple[GeometricState, Array]:
        read_state("match_geometric", state, GeometricState)
        fit_state("match_geometric", state.debt, rewards)
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None and not invalid_only_between_episodes(dones, valid, state.debt == 0):
            return NotImplemented
        debt, shaped = geometric_block(gamma, rate, state.debt, rewards, dones)
        return GeometricState(debt), shaped

    return RewardTransform(
        init,
        update,
        gamma=gamma,
        owed=owed,
        drop=forget,
        carries=rate < gamma,
        rollout=rollout,
    )
