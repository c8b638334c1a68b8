"""Transforms for use before a match: `scale`, `clip`, any function of the reward, division by a running RMS."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, Mask, can_look, cast_to, constant, float_dtype, namespace, plain, wide_constant
from payback.core.blocks import before_each_row, sums_before_rows, wide
from payback.core.center import RunningStatistic
from payback.core.transform import RewardTransform, State
from payback.core.validate import UNCHANGED, ExpectedShape, read_gamma, read_made, read_state

Moments = tuple[Array, Array, Array]  # the weight, mean and spread of a state


def scale(c: float) -> RewardTransform:
    """Multiply every reward by the constant c: F′_t = c·F_t. Allowed before and after a match.

    >>> import numpy as np
    >>> scale(0.1).update((), np.array([5.0]), np.array([False]))[1]
    array([0.5])
    """
    if not isinstance(c, Real) or not math.isfinite(c):
        raise ValueError(f"scale needs a finite number, got {c!r}")
    return _Scale(plain(c))


def clip(low: float, high: float) -> RewardTransform:
    """Clip every reward into [low, high]: F′_t = min(max(F_t, low), high). Allowed before a match only.

    >>> import numpy as np
    >>> clip(0, 1).update((), np.array([-3.0, 0.5, 9.0]), np.zeros(3, dtype=bool))[1]
    array([0. , 0.5, 1. ])
    """
    if not (isinstance(low, Real) and isinstance(high, Real) and low <= high):
        raise ValueError(f"clip needs low ≤ high, got {low!r} and {high!r}")
    return _Clip(plain(low), plain(high))


def stateless(f: Callable[[Any], Any]) -> RewardTransform:
    """Apply a function of the reward to every valid reward: F′_t = f(F_t). Allowed before a match only.

    `f` maps an array of any shape to one of the same shape, entry by entry, in the caller's array library.

    >>> import numpy as np
    >>> stateless(np.sqrt).update((), np.array([4.0, 9.0]), np.zeros(2, dtype=bool))[1]
    array([2., 3.])
    """
    if not callable(f):
        raise TypeError(f"stateless needs a function of the reward, got {f!r}")
    return _Stateless(f)


class RmsState(NamedTuple):
    """The running mean square: scalars, shared by all environments."""

    weight: Array  # the number of valid rewards so far, or less with a horizon
    squares: Array  # Σ F² over them, with the same weights
    fade: Array  # as in `CenterState`
    shared = ("weight", "squares")
    constants = ("fade",)


def scale_by_rms(horizon: float | None = None) -> RewardTransform:
    """Divide every reward by the root mean square of all valid rewards of earlier calls. Allowed before a match only.

        F′_t = F_t / √(Σ_{i<t} w_i F_i² / Σ_{i<t} w_i)         w_i = 1, or (1 − 1/horizon)^(rewards since)

    Causal, unlike statistics of a whole rollout. The scale outlives episodes; it is 1 until a reward is not 0.

    >>> import numpy as np, payback
    >>> shrink, F = scale_by_rms(), np.array([[2.0], [4.0]])
    >>> payback.shape_rollout(shrink, shrink.init(F[0]), F, F < 0)[1].tolist()
    [[2.0], [2.0]]
    """
    return _ScaleByRms(plain(horizon))


@dataclass(frozen=True, repr=False)
class _ScaleByRms(RunningStatistic):
    _name = "scale_by_rms"
    _kind = RmsState

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        wide = state.squares.dtype
        rms = xp.where(state.squares > 0, xp.sqrt(state.squares / xp.where(state.weight > 0, state.weight, 1.0)), 1.0)
        seen = xp.asarray(math.prod(reward.shape) if valid is None else xp.sum(valid), dtype=wide)
        kept = 1.0 if self._fade == 1 else state.fade**seen
        # Squared in the wide dtype, because the square of a large float32 reward overflows its own.
        squares = kept * state.squares + xp.sum(cast_to(xp, reward, wide) ** 2)
        return RmsState(kept * state.weight + seen, squares, state.fade), reward / cast_to(xp, rms, reward.dtype)

    def _device_block(self, xp: Any, state: RmsState, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        before, values = (wide(xp, state.weight), wide(xp, state.squares)), wide(xp, rewards).square()
        weights, squares, _ = sums_before_rows(xp, self._fade, *before, values, valid)
        rms = xp.where(squares > 0, (squares / xp.where(weights > 0, weights, 1.0)).sqrt(), 1.0)
        after = RmsState(weights[-1].to(state.weight.dtype), squares[-1].to(state.squares.dtype), state.fade)
        return after, rewards / rms[:-1].to(rewards.dtype)[:, None]


class StdState(NamedTuple):
    """The running mean and spread: scalars, shared by all environments."""

    weight: Array  # the number of valid rewards so far, or less with a horizon
    mean: Array  # F̄ of them
    spread: Array  # Σ (F − F̄)² over them, with the same weights
    fade: Array  # as in `CenterState`
    shared = ("weight", "mean", "spread")
    constants = ("fade",)


def scale_by_std(horizon: float | None = None) -> RewardTransform:
    """Divide every reward by the standard deviation of all valid rewards of earlier calls. Allowed before a match only.

        F′_t = F_t / σ_t,   σ_t² = Σ_{i<t} w_i (F_i − F̄)² / Σ_{i<t} w_i     w_i = 1, or (1 − 1/horizon)^(rewards since)

    The mean stays in F′; `center` removes it. Causal, and outlives episodes. While σ is less than a thousandth of the
    mean, nothing is divided. Put `clip` after it if the first rewards may be unlike the later ones.

    >>> import numpy as np, payback
    >>> shrink, F = scale_by_std(), np.array([[2.0, 6.0], [4.0, 6.0]])
    >>> payback.shape_rollout(shrink, shrink.init(F[0]), F, F < 0)[1].tolist()
    [[2.0, 6.0], [2.0, 3.0]]
    """
    return _ScaleByStd(plain(horizon))


@dataclass(frozen=True, repr=False)
class _ScaleByStd(RunningStatistic):
    _name = "scale_by_std"
    _kind = StdState

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        std = _deviation(xp, *state[:3])
        moments = _with_rows(xp, state[:3], reward, valid, None if self._fade == 1 else state.fade)
        return StdState(*moments, state.fade), reward / cast_to(xp, std, reward.dtype)

    def _device_block(self, xp: Any, state: StdState, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        moments, std = _moments_before_rows(xp, self._fade, state[:3], wide(xp, rewards), valid)
        return StdState(*moments, state.fade), rewards / std.to(rewards.dtype)[:, None]


class ReturnStdState(NamedTuple):
    """The running mean and spread of discounted returns, as in `StdState`, and each environment's return so far."""

    weight: Array
    mean: Array
    spread: Array
    returns: Array  # (B,) R of each environment's current episode
    terms: Array  # (1,) γ
    shared = ("weight", "mean", "spread")
    constants = ("terms",)


def scale_by_return_std(gamma: float) -> RewardTransform:
    """Divide every reward by the deviation of the discounted sums of earlier rewards. Allowed before a match only.

        F′_t = F_t / σ(R_0 … R_{t−1}),   R_t = F_t + γ R_{t−1},   R before an episode's first step is 0

    What Gymnasium's NormalizeReward, CleanRL's RND and rsl_rl divide by, but read before the step that it scales. A
    small deviation, the ends of episodes and the first rewards are treated as by `scale_by_std`.

    >>> import numpy as np, payback
    >>> shrink, F = scale_by_return_std(0.5), np.array([[2.0], [5.0], [4.0]])  # R = 2, then 6, whose deviation is 2
    >>> payback.shape_rollout(shrink, shrink.init(F[0]), F, F < 0)[1].tolist()
    [[2.0], [5.0], [2.0]]
    """
    return _ScaleByReturnStd(read_gamma(gamma))


@dataclass(frozen=True, repr=False)
class _ScaleByReturnStd(RewardTransform):
    gamma: float
    _name = "scale_by_return_std"

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.array([self.gamma])

    def init(self, example: Any, /) -> ReturnStdState:
        xp = namespace(example)
        returns = xp.zeros_like(example, dtype=float_dtype(xp, example))
        zero = wide_constant(xp, np.zeros(()), example)
        return ReturnStdState(zero, zero, zero, returns, wide_constant(xp, self._terms, example))

    def _expected(self, state: ReturnStdState) -> ExpectedShape:
        read_state(self._name, state, ReturnStdState, self._terms)
        return state.returns, state.returns.shape

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        std = _deviation(xp, *state[:3])
        returns = reward + self.gamma * state.returns
        moments = _with_rows(xp, state[:3], returns, valid, None)
        if valid is not None:
            returns = xp.where(valid, returns, state.returns)
        if done is not None:
            returns = xp.where(done, 0.0, returns)
        return ReturnStdState(*moments, returns, state.terms), reward / cast_to(xp, std, reward.dtype)

    def _device_block(self, xp: Any, state: ReturnStdState, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        F = wide(xp, rewards)
        kept, added = xp.where(dones, 0.0, xp.full_like(F, self.gamma)), xp.where(dones, 0.0, F)
        if valid is not None:
            kept = xp.where(valid, kept, 1.0)
        returns = before_each_row(xp, kept, added, wide(xp, state.returns))
        moments, std = _moments_before_rows(xp, 1.0, state[:3], F + self.gamma * returns[:-1], valid)
        after = ReturnStdState(*moments, returns[-1].to(rewards.dtype), state.terms)
        return after, rewards / std.to(rewards.dtype)[:, None]


class ScheduleState(NamedTuple):
    """The number of valid rewards of earlier calls: a scalar, shared by all environments."""

    steps: Array
    shared = ("steps",)


def scale_by_schedule(f: Callable[[Any], Any]) -> RewardTransform:
    """Multiply every reward by a coefficient that changes with the number of steps. Allowed before a match only.

        F′_t = f(n) F_t,   n the valid rewards of all environments in earlier calls

    `f` takes n as an array of one number, in the caller's array library, and returns one finite number. A loan is
    repaid with the coefficient that it was paid with. PIES (Behboudian et al. 2022), for instance, falls from 1 to 0:

    >>> import numpy as np, payback
    >>> pies, F = scale_by_schedule(lambda steps: (1 - steps / 4).clip(0, 1)), np.array([[1.0, 2.0]] * 3)
    >>> payback.shape_rollout(pies, pies.init(F[0]), F, F < 0)[1].tolist()
    [[1.0, 2.0], [0.5, 1.0], [0.0, 0.0]]
    """
    if not callable(f):
        raise TypeError(f"scale_by_schedule needs a function of the number of steps, got {f!r}")
    return _ScaleBySchedule(f)


@dataclass(frozen=True, repr=False)
class _ScaleBySchedule(RewardTransform):
    f: Callable[[Any], Any]
    _name = "scale_by_schedule"
    _named = False

    def init(self, example: Any, /) -> ScheduleState:
        xp = namespace(example)
        # In float32 a count would stop at 2²⁴; the library's default integer stops near 2³¹ at the earliest.
        return ScheduleState(constant(xp, np.zeros(()), example, xp.asarray(0).dtype))

    def _expected(self, state: State) -> None:
        read_state(self._name, state, ScheduleState)

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        coefficient = self._coefficient(xp, reward, state.steps)
        seen = math.prod(reward.shape) if valid is None else cast_to(xp, xp.sum(valid), state.steps.dtype)
        steps = state.steps + seen
        if xp is not np:  # JAX's 32 bits would start anew from −2³¹
            steps = xp.where(steps < state.steps, state.steps, steps)
        return ScheduleState(steps), reward * coefficient

    def _device_block(self, xp: Any, state: Any, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        seen = (xp.ones_like(rewards, dtype=xp.bool) if valid is None else valid).sum(1)
        steps = state.steps + seen.cumsum(0)
        try:
            coefficients = xp.vmap(partial(self._coefficient, xp, rewards))(steps - seen)
        except RuntimeError:  # a schedule that branches on the number of steps
            return NotImplemented
        return ScheduleState(steps[-1].to(state.steps.dtype)), rewards * coefficients[:, None]

    def _coefficient(self, xp: Any, reward: Array, steps: Array) -> Array:
        found = self.f(steps)
        shape = tuple(getattr(found, "shape", ()))
        if shape or not (hasattr(found, "dtype") or isinstance(found, Real)):
            got = f"shape {shape}" if shape else f"a {type(found).__name__}"
            raise ValueError(f"scale_by_schedule: the schedule returned {got}, not one number")
        if isinstance(found, Real):
            found = xp.asarray(float(found), dtype=reward.dtype)
        if can_look(xp, found) and not math.isfinite(float(found)):
            got = f"the schedule returned {float(found)} after {int(steps)} steps"
            raise ValueError(f"scale_by_schedule: {got}; let it return a finite number {UNCHANGED}")
        return cast_to(xp, found, reward.dtype)


def _deviation(xp: Any, weight: Array, mean: Array, spread: Array) -> Array:
    """Return √(spread/weight), or 1 where that is less than a thousandth of the mean."""
    variance = spread / xp.where(weight > 0, weight, 1.0)
    varies = variance > 1e-6 * mean**2
    return xp.sqrt(xp.where(varies, variance, 1.0))


def _with_rows(xp: Any, moments: Moments, rows: Array, valid: Mask, fade: Array | None) -> Moments:
    """Add the valid rows to (weight, mean, spread), of which old ones keep `fade` per row (Chan et al. 1979)."""
    weight, mean, spread = moments
    rows = cast_to(xp, rows, mean.dtype)
    n = xp.asarray(math.prod(rows.shape) if valid is None else xp.sum(valid), dtype=mean.dtype)
    rows = rows if valid is None else xp.where(valid, rows, 0.0)
    own = xp.sum(rows) / xp.where(n > 0, n, 1.0)
    away = rows - own if valid is None else xp.where(valid, rows - own, 0.0)
    kept = 1.0 if fade is None else fade**n
    weight = kept * weight
    share = n / xp.where(weight + n > 0, weight + n, 1.0)
    spread = kept * spread + xp.sum(away**2) + (own - mean) ** 2 * weight * share
    return weight + n, mean + share * (own - mean), spread


def _moments_before_rows(xp: Any, fade: float, moments: Moments, rows: Array, valid: Any) -> tuple[Moments, Array]:
    """Return (weight, mean, spread) after a Torch block, and the deviation before each of its rows."""
    weight, mean, spread = (wide(xp, x) for x in moments)
    many = rows.numel() if valid is None else valid.sum()
    # From a point among the values, so that squares of a large mean do not cancel.
    near = (weight * mean + (rows if valid is None else rows * valid).sum()) / (weight + many).clip(min=1.0)
    away, before = rows - near if valid is None else (rows - near) * valid, mean - near
    weights, sums, _ = sums_before_rows(xp, fade, weight, weight * before, away, valid)
    _, squares, _ = sums_before_rows(xp, fade, weight, spread + weight * before**2, away**2, valid)
    means = sums / weights.clip(min=1e-30)
    spreads = (squares - sums * means).clip(min=0.0)
    weight, mean, spread = (x[-1].to(moments[0].dtype) for x in (weights, near + means, spreads))
    return (weight, mean, spread), _deviation(xp, weights[:-1], near + means[:-1], spreads[:-1])


class _Memoryless(RewardTransform):
    """A transform that keeps no state."""

    _named = False

    def init(self, example: Any, /) -> State:
        return ()

    def _expected(self, state: State) -> None:
        if state != ():
            raise TypeError(f"{self._name} keeps no state but was given a {type(state).__name__}; pass ()")

    def _block(self, state: State, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        return self._step(namespace(rewards), state, rewards, dones, valid, settle)


@dataclass(frozen=True, repr=False)
class _Scale(_Memoryless):
    c: float
    _name = "scale"

    def __post_init__(self) -> None:
        vars(self).update(_factor=float(self.c))

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        shaped = reward * self._factor
        return state, shaped if valid is None else xp.where(valid, shaped, 0.0)


@dataclass(frozen=True, repr=False)
class _Clip(_Memoryless):
    low: float
    high: float
    _name = "clip"

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        shaped = xp.clip(reward, float(self.low), float(self.high))
        return state, shaped if valid is None else xp.where(valid, shaped, 0.0)


@dataclass(frozen=True, repr=False)
class _Stateless(_Memoryless):
    f: Callable[[Any], Any]
    _name = "stateless"

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        shaped = read_made(xp, "stateless: the function", self.f(reward), reward, valid)
        return state, shaped * 1 if shaped is reward else shaped  # the caller may change what is paid
