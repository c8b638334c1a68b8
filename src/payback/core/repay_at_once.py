"""Loans repaid all at once: the mechanism behind `match_at_end` and `match_when`.

The debt Σ_i γ^(i−t) F_i grows as γ⁻ᵗ. The state holds S = Σ_i γ^i F_i, valued at the first loan's step, and multiplies
it by γ⁻ᵗ only when it is due, because dividing by a rounded γ at every step would drift by t roundings. Without a debt
the age is 0.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from payback.core.arrays import Array, Mask, constant, first_not_finite, float_dtype, namespace, wide_dtype
from payback.core.errors import InterestWarning
from payback.core.rollout import accumulate, invalid_only_between_episodes
from payback.core.transform import Match, Schedule
from payback.core.validate import ExpectedShape, place_of, read_state, read_terms

LONG_EPISODE = 10_000
"""`init` warns where an episode of up to this length would overflow."""


class AtEndState(NamedTuple):
    """The loans of each episode, in one sum."""

    lent: Array
    """(B,) Σ_i γ^i F_i, with i counted from the step of the first loan."""
    age: Array
    """(B,) int32, steps since then."""
    terms: Array
    """(1,) γ."""
    constants = ("terms",)


class WhenState(AtEndState):
    """The loans of each episode since its last event, in one sum."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class RepayAtOnce(Match):
    """Repay all earlier loans at the last step and, with `WhenState`, at flagged steps before it."""

    gamma: float
    _kind: ClassVar[type[AtEndState] | type[WhenState]] = AtEndState

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.array([self.gamma])

    @cached_property
    def _log_interest(self) -> float:
        return -math.log(self.gamma)

    def init(self, example: Any, /) -> AtEndState | WhenState:
        """Begin without a debt; warn if the interest of a long episode would overflow."""
        xp = namespace(example)
        lent = xp.zeros_like(example, dtype=float_dtype(xp, example))
        limit = _longest(xp, lent, self.gamma)
        if limit < LONG_EPISODE:
            warnings.warn(
                f"{self._name}: at γ = {self.gamma} the interest γ⁻ᵏ overflows {lent.dtype} in episodes longer than "
                f"{limit:,} steps; if yours may be, {_remedy(lent)}",
                InterestWarning,
                stacklevel=2,
            )
        terms = constant(xp, self._terms, lent, wide_dtype(xp))
        return self._kind(lent, xp.zeros_like(example, dtype=xp.int32), terms)

    def _expected(self, state: AtEndState | WhenState) -> ExpectedShape:
        read_state(self._name, state, self._kind)
        read_terms(self._name, state.terms, self._terms)
        return state.lent, state.lent.shape

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        lent, age = state.lent, xp.where(state.lent == 0, 0, state.age)
        interest = _interest(xp, self._log_interest, lent, age)
        # A copy: if the caller changes the shaped rewards in place, its own rewards stay as they are.
        due, shaped = _multiply(xp, lent, interest), reward * 1
        if self._kind is WhenState and settle is not None:
            shaped = reward - xp.where(settle, due, 0.0)
            lent, age, interest = xp.where(settle, 0.0, lent), xp.where(settle, 0, age), xp.where(settle, 1.0, interest)
        lent, age = lent + reward / interest, age + 1
        if done is not None:
            shaped, lent, age = xp.where(done, -due, shaped), xp.where(done, 0.0, lent), xp.where(done, 0, age)
        if valid is not None:
            shaped = xp.where(valid, shaped, 0.0)
            lent, age = xp.where(valid, lent, state.lent), xp.where(valid, age, state.age)
        _refuse_overflow(xp, self._name, self.gamma, shaped, state.age)
        return self._kind(lent, age, state.terms), shaped

    def owed(self, state: AtEndState | WhenState, /) -> Array:
        """Return the loans with their interest."""
        xp = namespace(state.lent)
        return _multiply(xp, state.lent, _interest(xp, self._log_interest, state.lent, state.age))

    def drop(self, state: AtEndState | WhenState, where: Array, /) -> AtEndState | WhenState:
        """Forget the loans."""
        xp = namespace(state.lent)
        return self._kind(xp.where(where, 0.0, state.lent), xp.where(where, 0, state.age), state.terms)

    def _schedule(self) -> Schedule:
        return Schedule(np.zeros(1))

    def _block(self, state: Any, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None and not invalid_only_between_episodes(dones, valid, state.lent == 0):
            return NotImplemented
        lent = state.lent.astype(np.float64)
        debt = lent * _interest(np, self._log_interest, lent, state.age)
        events = settle if self._kind is WhenState else None
        debt, shaped = _repay_block(self.gamma, debt, rewards, dones, events)
        _refuse_overflow(np, self._name, self.gamma, shaped, None)
        with np.errstate(over="ignore"):  # raises when it is due
            return self._kind(debt.astype(rewards.dtype), np.zeros_like(state.age), state.terms), shaped


def _repay_block(
    gamma: float, debt: np.ndarray, rewards: np.ndarray, dones: np.ndarray, settle: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Repay everything at the episode's end, or at the next event, over a (T, B) block.

    `debt` (B,) is valued at the block's first step; returned valued at the step after the block.
    """
    settled = np.flatnonzero(dones if settle is None else dones | settle)
    shaped = rewards.copy(order="C")
    flat, over = shaped.reshape(-1), dones.reshape(-1)[settled]
    # After an event its own reward is owed; an episode's last reward is repaid at once.
    flat[settled[over]] = 0
    fresh = flat[settled].astype(np.float64) / gamma
    debt, due = accumulate(1 / gamma, debt, rewards, settled, settled, fresh)
    with np.errstate(over="ignore"):  # the caller raises, naming the place
        flat[settled] -= due.astype(rewards.dtype)
    return debt, shaped


def _interest(xp: Any, log_interest: float, lent: Array, age: Array) -> Array:
    """γ^(−age), 1 without a debt, infinite if it overflows the dtype."""
    age = xp.where(lent == 0, 0, age)
    if xp is np:
        with np.errstate(over="ignore"):
            return np.exp(age.astype(lent.dtype) * log_interest)
    return xp.exp(xp.astype(age, lent.dtype) * log_interest)


def _multiply(xp: Any, lent: Array, interest: Array) -> Array:
    if xp is np:
        with np.errstate(over="ignore"):
            return lent * interest
    return lent * interest


def _longest(xp: Any, lent: Array, gamma: float) -> float:
    """Return the last age whose interest the dtype still holds."""
    return math.inf if gamma == 1 else math.floor(math.log(float(xp.finfo(lent.dtype).max)) / -math.log(gamma))


def _remedy(rewards: Array) -> str:
    wider = "" if "float64" in str(rewards.dtype) else "use rewards in float64, or "
    return f"{wider}repay sooner, with grm and a delay"


def _refuse_overflow(xp: Any, name: str, gamma: float, shaped: Array, age: Array | None) -> None:
    where = first_not_finite(xp, shaped)
    if where is not None:
        after = "" if age is None else f" after {int(age[where])} steps"
        raise OverflowError(
            f"{name}: the settlement of {place_of(where)} overflows {shaped.dtype}{after}: at γ = {gamma} its interest "
            f"can be held for {_longest(xp, shaped, gamma):,} steps; {_remedy(shaped)}"
        )
