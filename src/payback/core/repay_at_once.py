"""Loans repaid all at once: the mechanism behind `match_at_end` and `match_when`.

The debt Σ_i γ^(i−t) F_i grows as γ⁻ᵗ. The state holds S = Σ_i γ^i F_i, valued at the first loan's step, and multiplies
it by γ⁻ᵗ only when it is due, because dividing by a rounded γ at every step would drift by t roundings. Without a debt
the age is 0.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from payback.core.arrays import Array, Mask, cast_to, float_dtype, namespace, wide_constant
from payback.core.blocks import accumulate, debts_before_rows, wide
from payback.core.errors import InterestWarning
from payback.core.transform import Repayment, Schedule
from payback.core.validate import longest_held, refuse_overflow, repay_sooner

LONG_EPISODE = 10_000  # `init` warns where an episode of up to this length would overflow


class AtEndState(NamedTuple):
    """The loans of each episode, in one sum."""

    lent: Array  # (B,) Σ_i γ^i F_i, with i counted from the step of the first loan
    age: Array  # (B,) int32, steps since then
    terms: Array  # (1,) γ
    constants = ("terms",)


class WhenState(AtEndState):
    """The loans of each episode since its last event, in one sum."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class RepayAtOnce(Repayment):
    """Repay all earlier loans at the last step and, with `WhenState`, at flagged steps before it."""

    gamma: float
    _name = "match_at_end"
    _kind: ClassVar[type[AtEndState] | type[WhenState]] = AtEndState

    def init(self, example: Any, /) -> AtEndState | WhenState:
        """Begin without a debt; warn if the interest of a long episode would overflow."""
        xp = namespace(example)
        lent = xp.zeros_like(example, dtype=float_dtype(xp, example))
        limit = longest_held(xp, lent.dtype, self.gamma)
        if limit < LONG_EPISODE:
            overflows = f"the interest γ⁻ᵏ overflows {lent.dtype} in episodes longer than {limit:,} steps"
            words = f"{self._name}: at γ = {self.gamma} {overflows}; if yours may be, {repay_sooner(lent.dtype)}"
            warnings.warn(words, InterestWarning, stacklevel=2)
        return self._kind(lent, xp.zeros_like(example, dtype=xp.int32), wide_constant(xp, self._terms, lent))

    def _repay(self, xp: Any, state: Any, reward: Array, done: Mask, settle: Mask) -> tuple[Any, Array]:
        lent, age = state.lent, xp.where(state.lent == 0, 0, state.age)
        interest = self._interest(xp, lent, age)
        # A copy: if the caller changes the shaped rewards in place, its own rewards stay as they are.
        with np.errstate(over="ignore"):
            due, shaped = lent * interest, reward * 1
        if self._kind is WhenState and settle is not None:
            shaped = reward - xp.where(settle, due, 0.0)
            lent, age, interest = xp.where(settle, 0.0, lent), xp.where(settle, 0, age), xp.where(settle, 1.0, interest)
        lent, age = lent + reward / interest, age + 1
        if done is not None:
            shaped, lent, age = xp.where(done, -due, shaped), xp.where(done, 0.0, lent), xp.where(done, 0, age)
        refuse_overflow(xp, self._name, shaped, self.gamma)
        return self._kind(lent, age, state.terms), shaped

    def owed(self, state: AtEndState | WhenState, /) -> Array:
        """Return the loans with their interest."""
        xp = namespace(state.lent)
        with np.errstate(over="ignore"):
            return state.lent * self._interest(xp, state.lent, state.age)

    def _schedule(self) -> Schedule:
        return Schedule(np.zeros(1))

    def _numpy_block(self, state: Any, rewards: np.ndarray, dones: np.ndarray, settle: Mask) -> Any:
        settled = np.flatnonzero(dones if settle is None or self._kind is AtEndState else dones | settle)
        lent = state.lent.astype(np.float64)
        shaped = rewards.copy(order="C")
        flat, over = shaped.reshape(-1), dones.reshape(-1)[settled]
        # After an event its own reward is owed; an episode's last reward is repaid at once.
        flat[settled[over]] = 0
        fresh = flat[settled].astype(np.float64) / self.gamma
        debt = lent * self._interest(np, lent, state.age)
        debt, due = accumulate(1 / self.gamma, debt, rewards, settled, settled, fresh)
        with np.errstate(over="ignore"):  # raises now if it is due, or once it is
            flat[settled] -= due.astype(rewards.dtype)
            left = debt.astype(rewards.dtype)
        refuse_overflow(np, self._name, shaped, self.gamma)
        return self._kind(left, np.zeros_like(state.age), state.terms), shaped

    def _device_block(self, xp: Any, state: Any, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        events = dones if settle is None or self._kind is AtEndState else dones | settle
        lent = wide(xp, state.lent)
        debt = lent * xp.where(lent == 0, 1.0, xp.exp(-math.log(self.gamma) * wide(xp, state.age)))
        debts, left = debts_before_rows(xp, debt, rewards, dones, valid, self.gamma, 1 / self.gamma, events)
        shaped = xp.where(dones, 0.0, rewards) - xp.where(events, debts, 0.0)
        return self._kind(left.to(rewards.dtype), xp.zeros_like(state.age), state.terms), shaped

    def _interest(self, xp: Any, lent: Array, age: Array) -> Array:
        """γ^(−age), 1 without a debt, infinite if it overflows the dtype."""
        age = cast_to(xp, xp.where(lent == 0, 0, age), lent.dtype)
        with np.errstate(over="ignore"):
            return xp.exp(age * -math.log(self.gamma))
