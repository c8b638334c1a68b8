"""Loans of which a fixed share is repaid at each step: the mechanism behind `match_geometric`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, constant, float_dtype, namespace, wide_dtype
from payback.core.block_rows import invalid_only_between_episodes, split_by_row
from payback.core.transform import Door, Match, Schedule
from payback.core.validate import Fit, read_state, read_terms


class GeometricState(NamedTuple):
    """What each environment owes."""

    debt: Array
    """(B,), valued at the next step."""
    terms: Array
    """(2,) γ and the rate."""


def match_geometrically(name: str, gamma: float, rate: float) -> Match:
    """Repay the share 1 − rate of the debt at each step and the rest at the last: P ← (λP + F_t)/γ."""
    terms = np.array([gamma, rate])

    def init(example: Array) -> GeometricState:
        xp = namespace(example)
        debt = xp.zeros_like(example, dtype=float_dtype(xp, example))
        return GeometricState(debt, constant(xp, terms, debt, wide_dtype(xp)))

    def fit(state: GeometricState) -> Fit:
        read_state(name, state, GeometricState)
        read_terms(name, state.terms, terms)
        return state.debt, state.debt.shape

    def step(
        xp: Any, state: GeometricState, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[GeometricState, Array]:
        shaped = reward - (1 - rate) * state.debt
        debt = (rate * state.debt + reward) / gamma
        if done is not None:
            shaped, debt = xp.where(done, -state.debt, shaped), xp.where(done, 0.0, debt)
        if valid is not None:
            shaped, debt = xp.where(valid, shaped, 0.0), xp.where(valid, debt, state.debt)
        return GeometricState(debt, state.terms), shaped

    def owed(state: GeometricState) -> Array:
        return namespace(state.debt).asarray(state.debt, copy=True)

    def drop(state: GeometricState, where: Array) -> GeometricState:
        return GeometricState(namespace(state.debt).where(where, 0.0, state.debt), state.terms)

    def block(state: GeometricState, rewards: Array, dones: Array, valid: Array | None, settle: Array | None) -> Any:
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None and not invalid_only_between_episodes(dones, valid, state.debt == 0):
            return NotImplemented
        debt, shaped = _repay_block(gamma, rate, state.debt, rewards, dones)
        return GeometricState(debt, state.terms), shaped

    return Match(
        init,
        Door(name, fit, step),
        gamma=gamma,
        owed=owed,
        drop=drop,
        falls_due_alone=rate < gamma,
        _schedule=Schedule(np.array([0.0, 1 - rate]), rate),
        _block=block,
        _call=f"{name}(gamma={gamma!r}, rate={rate!r})",
    )


def _repay_block(
    gamma: float, rate: float, debt: np.ndarray, rewards: np.ndarray, dones: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repay the share 1 − rate of the debt at each step, the rest at the episode's end, over a (T, B) block."""
    share, fade, rewards = 1 - rate, rate / gamma, np.ascontiguousarray(rewards)
    # What is due is carried instead of what is owed: one pass less a row.
    due = debt * share
    lent = rewards * (share / gamma)
    shaped = np.empty_like(rewards)
    ends = np.flatnonzero(dones)
    columns, starts = split_by_row(ends, *rewards.shape)
    settlement = np.empty(ends.size, dtype=rewards.dtype)
    for t in range(len(rewards)):
        np.subtract(rewards[t], due, out=shaped[t])
        ended = columns[starts[t] : starts[t + 1]]
        if ended.size:
            # Not read off `shaped`, because a large last reward takes the digits of what is due.
            settlement[starts[t] : starts[t + 1]] = due[ended]
        due *= fade
        due += lent[t]
        if ended.size:
            due[ended] = 0
    shaped.reshape(-1)[ends] = -settlement / share
    return due / share, shaped
