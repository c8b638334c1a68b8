"""What may stand before a match: `scale`, `clip`, any function of the reward, and division by a running scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

from payback.core.arrays import Array, cast_to, namespace, plain, running_zero, wide_dtype
from payback.core.transform import Door, RewardTransform, State
from payback.core.validate import read_fade, read_horizon, read_state, refuse_made


def scale(c: float) -> RewardTransform:
    """Multiply every reward by the constant c: F′_t = c·F_t. Allowed before and after a match.

    >>> import numpy as np
    >>> scale(0.1).update((), np.array([5.0]), np.array([False]))[1]
    array([0.5])
    """
    if not isinstance(c, Real) or not math.isfinite(c):
        raise ValueError(f"scale needs a finite number, got {c!r}")
    constant = float(c)
    return _memoryless("scale", lambda xp, reward: reward * constant, f"scale({plain(c)!r})", constant)


def clip(low: float, high: float) -> RewardTransform:
    """Clip every reward into [low, high]: F′_t = min(max(F_t, low), high). Allowed before a match only.

    >>> import numpy as np
    >>> clip(0, 1).update((), np.array([-3.0, 0.5, 9.0]), np.zeros(3, dtype=bool))[1]
    array([0. , 0.5, 1. ])
    """
    if not (isinstance(low, Real) and isinstance(high, Real) and low <= high):
        raise ValueError(f"clip needs low ≤ high, got {low!r} and {high!r}")
    least, most = float(low), float(high)
    return _memoryless(
        "clip", lambda xp, reward: xp.clip(reward, least, most), f"clip({plain(low)!r}, {plain(high)!r})"
    )


def stateless(f: Callable[[Any], Any]) -> RewardTransform:
    """Apply a function of the reward to every valid reward: F′_t = f(F_t). Allowed before a match only.

    `f` takes and returns an array of any shape, entry by entry, in the caller's array library.

    >>> import numpy as np
    >>> stateless(np.sqrt).update((), np.array([4.0, 9.0]), np.zeros(2, dtype=bool))[1]
    array([2., 3.])
    """
    if not callable(f):
        raise TypeError(f"stateless needs a function of the reward, got {f!r}")

    def apply(xp: Any, reward: Array) -> Array:
        shaped = f(reward)
        if getattr(shaped, "shape", None) != reward.shape:
            raise ValueError(
                f"stateless: the function returned shape {getattr(shaped, 'shape', None)} for rewards of shape "
                f"{tuple(reward.shape)}; it must return one number per reward"
            )
        shaped = shaped if shaped.dtype == reward.dtype else cast_to(xp, shaped, reward.dtype)
        return shaped * 1 if shaped is reward else shaped  # what is paid is the caller's to change

    return _memoryless("stateless", apply, f"stateless({getattr(f, '__name__', f)})", refuse=refuse_made)


class RmsState(NamedTuple):
    """The running mean square. Scalars, shared over the B environments."""

    weight: Array
    """Weight of the valid rewards seen: their number, or less with a horizon."""
    squares: Array
    """Σ F² over them, with the same weights."""
    fade: Array
    """What an old reward keeps of its weight when a new one comes: 1 − 1/horizon, or 1."""


def scale_by_rms(horizon: float | None = None) -> RewardTransform:
    """Divide every reward by the root mean square of all valid rewards of earlier calls. Allowed before a match only.

        F′_t = F_t / √(Σ_{i<t} w_i F_i² / Σ_{i<t} w_i)         w_i = 1, or (1 − 1/horizon)^(rewards since)

    The scale is read before the step that it scales, so it is causal, unlike a normalisation by statistics of the whole
    rollout. While no reward but 0 was seen, nothing is divided. It outlives episodes.

    >>> import numpy as np
    >>> shrink = scale_by_rms()
    >>> state = shrink.init(np.zeros(1))
    >>> for reward in (2.0, 4.0):
    ...     state, shaped = shrink.update(state, np.array([reward]), np.array([False]))
    ...     print(shaped)
    [2.]
    [2.]
    """
    fade = read_horizon(horizon)

    def init(example: Array) -> RmsState:
        zero = running_zero(example, wide_dtype(namespace(example)))
        return RmsState(zero, zero, zero + fade)

    def step(
        xp: Any, state: RmsState, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[RmsState, Array]:
        wide = state.squares.dtype
        rms = xp.where(state.squares > 0, xp.sqrt(state.squares / xp.where(state.weight > 0, state.weight, 1.0)), 1.0)
        seen = xp.asarray(math.prod(reward.shape) if valid is None else xp.sum(valid), dtype=wide)
        kept = 1.0 if fade == 1 else state.fade**seen
        # Squared in the wide dtype, because the square of a large float32 reward overflows its own.
        squares = kept * state.squares + xp.sum(cast_to(xp, reward, wide) ** 2)
        return RmsState(kept * state.weight + seen, squares, state.fade), reward / cast_to(xp, rms, reward.dtype)

    def fit(state: State) -> None:
        read_state("scale_by_rms", state, RmsState)
        read_fade("scale_by_rms", state.fade, fade)

    call = f"scale_by_rms({'' if horizon is None else f'horizon={plain(horizon)!r}'})"
    return RewardTransform(init, Door("scale_by_rms", fit, step), _call=call)


def _memoryless(
    name: str,
    apply: Callable[[Any, Array], Array],
    call: str,
    factor: float | None = None,
    refuse: Callable[[Any, str, Array], None] | None = None,
) -> RewardTransform:
    """Make a transform that keeps nothing: each valid reward becomes apply(xp, reward), which `refuse` may look at."""

    def step(
        xp: Any, state: State, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[State, Array]:
        shaped = apply(xp, reward)
        if valid is not None:
            shaped = xp.where(valid, shaped, 0.0)
        if refuse is not None:  # after the invalid rows are 0, because they were 0 before, of which a log makes −∞
            refuse(xp, name, shaped)
        return state, shaped

    def block(state: State, rewards: Array, dones: Array, valid: Array | None, settle: Array | None) -> Any:
        return step(namespace(rewards), state, rewards, dones, valid, settle)

    def fit(state: State) -> None:
        if state != ():
            raise TypeError(f"{name} keeps no state but was given a {type(state).__name__}; pass ()")

    return RewardTransform(lambda example: (), Door(name, fit, step), _block=block, _factor=factor, _call=call)
