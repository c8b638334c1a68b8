"""Repay a fixed share of the debt at each step: the mechanism behind `match_geometric`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, Mask, float_dtype, namespace, wide_constant
from payback.core.blocks import debts_before_rows, split_by_row
from payback.core.transform import Repayment, Schedule


class GeometricState(NamedTuple):
    """The debt of each environment."""

    debt: Array  # (B,), valued at the next step
    terms: Array  # (2,) γ and the rate
    constants = ("terms",)


@dataclass(frozen=True, repr=False)
class RepayGeometric(Repayment):
    """Repay the share 1 − rate of the debt at each step and the rest at the last: P ← (λP + F_t)/γ."""

    gamma: float
    rate: float
    _name = "match_geometric"
    _kind = GeometricState

    def __post_init__(self) -> None:
        """A debt that grows faster than its discount never falls due."""
        vars(self).update(falls_due_alone=self.rate < self.gamma)

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.array([self.gamma, self.rate])

    def init(self, example: Any, /) -> GeometricState:
        """Begin without a debt."""
        xp = namespace(example)
        debt = xp.zeros_like(example, dtype=float_dtype(xp, example))
        return GeometricState(debt, wide_constant(xp, self._terms, debt))

    def _repay(self, xp: Any, state: Any, reward: Array, done: Mask, settle: Mask) -> tuple[GeometricState, Array]:
        rate = self.rate
        shaped = reward - (1 - rate) * state.debt
        debt = (rate * state.debt + reward) / self.gamma
        if done is not None:
            shaped, debt = xp.where(done, -state.debt, shaped), xp.where(done, 0.0, debt)
        return GeometricState(debt, state.terms), shaped

    def owed(self, state: GeometricState, /) -> Array:
        """Return a copy of the debt."""
        return namespace(state.debt).asarray(state.debt, copy=True)

    def _schedule(self) -> Schedule:
        return Schedule(np.array([0.0, 1 - self.rate]), self.rate)

    def _numpy_block(self, state: Any, rewards: np.ndarray, dones: np.ndarray, settle: Mask) -> Any:
        share, fade, rewards = 1 - self.rate, self.rate / self.gamma, np.ascontiguousarray(rewards)
        # Carry the due part instead of the debt, which saves one pass a row.
        due = state.debt * share
        lent = rewards * (share / self.gamma)
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
        return GeometricState(due / share, state.terms), shaped

    def _device_block(self, xp: Any, state: Any, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        growth = self.rate / self.gamma
        debts, left = debts_before_rows(xp, state.debt, rewards, dones, valid, self.gamma, growth, dones)
        shaped = xp.where(dones, -debts, rewards - (1 - self.rate) * debts)
        return GeometricState(left.to(state.debt.dtype), state.terms), shaped
