"""Repay a fixed share of the debt at each step: the mechanism behind `match_geometric`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, Mask, constant, float_dtype, namespace, wide_dtype
from payback.core.rollout import invalid_only_between_episodes, split_by_row
from payback.core.transform import Match, Schedule
from payback.core.validate import ExpectedShape, read_state, read_terms


class GeometricState(NamedTuple):
    """The debt of each environment."""

    debt: Array
    """(B,), valued at the next step."""
    terms: Array
    """(2,) γ and the rate."""
    constants = ("terms",)


@dataclass(frozen=True, repr=False)
class RepayGeometric(Match):
    """Repay the share 1 − rate of the debt at each step and the rest at the last: P ← (λP + F_t)/γ."""

    gamma: float
    rate: float

    def __post_init__(self) -> None:
        """A debt that grows faster than its discount never falls due."""
        self._set(falls_due_alone=self.rate < self.gamma)

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.array([self.gamma, self.rate])

    def init(self, example: Any, /) -> GeometricState:
        """Begin without a debt."""
        xp = namespace(example)
        debt = xp.zeros_like(example, dtype=float_dtype(xp, example))
        return GeometricState(debt, constant(xp, self._terms, debt, wide_dtype(xp)))

    def _expected(self, state: GeometricState) -> ExpectedShape:
        read_state(self._name, state, GeometricState)
        read_terms(self._name, state.terms, self._terms)
        return state.debt, state.debt.shape

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        rate = self.rate
        shaped = reward - (1 - rate) * state.debt
        debt = (rate * state.debt + reward) / self.gamma
        if done is not None:
            shaped, debt = xp.where(done, -state.debt, shaped), xp.where(done, 0.0, debt)
        if valid is not None:
            shaped, debt = xp.where(valid, shaped, 0.0), xp.where(valid, debt, state.debt)
        return GeometricState(debt, state.terms), shaped

    def owed(self, state: GeometricState, /) -> Array:
        """Return a copy of the debt."""
        return namespace(state.debt).asarray(state.debt, copy=True)

    def drop(self, state: GeometricState, where: Array, /) -> GeometricState:
        """Set the debt to 0."""
        return GeometricState(namespace(state.debt).where(where, 0.0, state.debt), state.terms)

    def _schedule(self) -> Schedule:
        return Schedule(np.array([0.0, 1 - self.rate]), self.rate)

    def _block(self, state: GeometricState, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None and not invalid_only_between_episodes(dones, valid, state.debt == 0):
            return NotImplemented
        debt, shaped = _repay_block(self.gamma, self.rate, state.debt, rewards, dones)
        return GeometricState(debt, state.terms), shaped


def _repay_block(
    gamma: float, rate: float, debt: np.ndarray, rewards: np.ndarray, dones: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repay the share 1 − rate of the debt at each step, the rest at the episode's end, over a (T, B) block."""
    share, fade, rewards = 1 - rate, rate / gamma, np.ascontiguousarray(rewards)
    # Carry the due part instead of the debt, which saves one pass a row.
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
            # Not from `shaped`, in which a large last reward swallows the digits of a small repayment.
            settlement[starts[t] : starts[t + 1]] = due[ended]
        due *= fade
        due += lent[t]
        if ended.size:
            due[ended] = 0
    shaped.reshape(-1)[ends] = -settlement / share
    return due / share, shaped
