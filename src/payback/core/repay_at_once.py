"""Loans repaid all at once: the mechanism behind `match_at_end` and `match_when`.

The debt Σ_i γ^(i−t) F_i grows as γ⁻ᵗ. It is kept as S = Σ_i γ^i F_i, valued at the step of the first loan,
and multiplied by γ⁻ᵗ only when it is due: the interest is then one exponential, where repeated division by a
rounded γ would drift by t roundings. While nothing is owed the clock stands at 0.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, can_look, first_not_finite, float_dtype, namespace
from payback.core.blocks import invalid_only_between_episodes, lump_block
from payback.core.errors import InterestWarning
from payback.core.transform import RewardTransform
from payback.core.validate import fit_state, read_flags, read_state, read_step

LONG_EPISODE = 10_000
"""Episodes up to this length are within reach: `init` warns when one would overflow."""


class LumpState(NamedTuple):
    """The loans of each episode, in one sum."""

    lent: Array
    """(B,) Σ_i γ^i F_i, i counted from the step that the loans are valued at."""
    age: Array
    """(B,) int32, steps since then."""


def lump_match(name: str, gamma: float, on_event: bool) -> RewardTransform:
    """Repay all earlier loans at the episode's last step and, `on_event`, at flagged steps before it."""
    log_interest = -math.log(gamma)

    def init(example: Array) -> LumpState:
        xp = namespace(example)
        lent = xp.zeros_like(example, dtype=float_dtype(xp, example))
        limit = _longest(xp, lent, gamma)
        if limit < LONG_EPISODE:
            warnings.warn(
                f"{name}: at γ = {gamma} the interest γ⁻ᵏ overflows {lent.dtype} in episodes longer than {limit:,} "
                f"steps; if yours may be, {_remedy(lent)}",
                InterestWarning,
                stacklevel=2,
            )
        return LumpState(lent, xp.zeros_like(example, dtype=xp.int32))

    def owed(state: LumpState) -> Array:
        read_state(name, state, LumpState)
        xp = namespace(state.lent)
        return _multiply(xp, state.lent, _interest(xp, log_interest, state.lent, state.age))

    def update(
        state: LumpState, reward: Array, done: Array, valid: Array | None = None, settle: Array | None = None
    ) -> tuple[LumpState, Array]:
        read_state(name, state, LumpState)
        xp, reward, done, valid = read_step(name, state.lent, reward, done, valid)
        lent, age = state.lent, xp.where(state.lent == 0, 0, state.age)
        interest = _interest(xp, log_interest, lent, age)
        due, shaped = _multiply(xp, lent, interest), reward
        if on_event and settle is not None:
            event = read_flags(name, "settle", settle, reward)
            event = event if valid is None else event & valid
            shaped = reward - xp.where(event, due, 0.0)
            lent, age, interest = xp.where(event, 0.0, lent), xp.where(event, 0, age), xp.where(event, 1.0, interest)
        shaped = xp.where(done, -due, shaped)
        lent = xp.where(done, 0.0, lent + reward / interest)
        age = xp.where(done, 0, age + 1)
        if valid is not None:
            shaped = xp.where(valid, shaped, 0.0)
            lent, age = xp.where(valid, lent, state.lent), xp.where(valid, age, state.age)
        _refuse_overflow(xp, name, gamma, shaped)
        return LumpState(lent, age), shaped

    def drop(state: LumpState, where: Array) -> LumpState:
        xp = namespace(state.lent)
        return LumpState(xp.where(where, 0.0, state.lent), xp.where(where, 0, state.age))

    def rollout(
        state: LumpState, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
    ) -> tuple[LumpState, Array]:
        read_state(name, state, LumpState)
        fit_state(name, state.lent, rewards)
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None and not invalid_only_between_episodes(dones, valid, state.lent == 0):
            return NotImplemented
        events = None if settle is None or not on_event else settle if valid is None else settle & valid
        lent = state.lent.astype(np.float64)
        debt, shaped = lump_block(gamma, lent * _interest(np, log_interest, lent, state.age), rewards, dones, events)
        _refuse_overflow(np, name, gamma, shaped)
        with np.errstate(over="ignore"):  # refused when it is due
            return LumpState(debt.astype(rewards.dtype), np.zeros_like(state.age)), shaped

    return RewardTransform(init, update, gamma=gamma, owed=owed, drop=drop, rollout=rollout)


def _interest(xp: Any, log_interest: float, lent: Array, age: Array) -> Array:
    """γ^(−age), 1 where nothing is owed; infinite where the dtype cannot hold it."""
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
    """The last age whose interest the dtype still holds."""
    return math.inf if gamma == 1 else math.floor(math.log(float(xp.finfo(lent.dtype).max)) / -math.log(gamma))


def _remedy(rewards: Array) -> str:
    wider = "" if "float64" in str(rewards.dtype) else "use rewards in float64, or "
    return f"{wider}repay sooner, with grm and a delay"


def _refuse_overflow(xp: Any, name: str, gamma: float, shaped: Array) -> None:
    where = first_not_finite(xp, shaped) if can_look(xp, shaped) else None
    if where is not None:
        raise OverflowError(
            f"{name}: the settlement of environment {where[-1]} overflows {shaped.dtype}: at γ = {gamma} its interest "
            f"can be held for {_longest(xp, shaped, gamma):,} steps; {_remedy(shaped)}"
        )
