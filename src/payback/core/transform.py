"""The shape of every reward transform, and what may stand before a match: `chain`, `scale`, `clip`."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from payback.core.arrays import Array, as_floats, dtype_for, float_dtype, namespace
from payback.core.validate import is_plain_step, read_flags, read_step

State = Any
"""A transform's state: a NamedTuple of arrays, or a tuple of states for a chain."""


class RewardTransform(NamedTuple):
    """A pure pair of functions that turns a stream of rewards F_t into another, F'_t.

    `RewardTransform(init, update)` alone is enough for a causal transform of your own:

        init(example) -> state                                  example: any (B,) array of rewards
        update(state, reward, done, valid=None, settle=None) -> (state, shaped)

    All arrays are (B,), one entry per environment. `done` marks the last transition of an episode,
    terminated or truncated; `valid=False` a row that is no transition (an autoreset row): it is paid 0
    and changes nothing; `settle=True` an event at which `match_when` repays.

    >>> import numpy as np
    >>> double = RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, 2 * r))
    >>> double.update((), np.array([1.0, 3.0]), np.array([False, True]))[1]
    array([2., 6.])
    """

    init: Callable[[Array], State]
    update: Callable[..., tuple[State, Array]]
    gamma: float | None = None
    """A match's γ. Whatever has one is a match and carries the guarantee; it holds for learners with this γ."""
    factor: float | None = None
    """The constant c of a transform that does nothing but F' = c·F: all that may follow a match."""
    owed: Callable[[State], Array] | None = None
    """state -> (B,), the debt valued at the next step."""
    drop: Callable[[State, Array], State] | None = None
    """(state, where) -> state without the debt of the environments `where`."""
    carries: bool = False
    """Whether the debt may be left to a bootstrapped value at a truncation: each loan falls due by itself."""
    rollout: Callable[..., Any] | None = None
    """A fast form of `update` over (T, B) blocks; may return NotImplemented, and the block is stepped through."""
    parts: tuple[RewardTransform, ...] = ()
    """A chain's members, in order."""
    quick: Callable[[State, Array, Array | None], tuple[State, Array] | None] | None = None
    """(state, reward, done): `update` for a step that `is_plain_step`, `done` being None where no episode ends. Returns
    None where the state does not fit, for `update` to say why."""


def chain(*transforms: RewardTransform) -> RewardTransform:
    """Feed the reward through the transforms, first to last.

    After a match only a constant `scale` may follow: clipping, centring, dividing by a drifting deviation
    or a second match would undo exact repayment, so they are refused here, when the chain is built.

    >>> import numpy as np
    >>> shaping = chain(clip(-1, 1), scale(0.5))
    >>> shaping.update(shaping.init(np.zeros(2)), np.array([4.0, 0.5]), np.array([False, False]))[1]
    array([0.5 , 0.25])
    """
    if not transforms:
        raise ValueError("chain needs at least one transform")
    matches = [k for k, part in enumerate(transforms) if part.gamma is not None]
    if len(matches) > 1:
        raise ValueError(
            f"chain: transforms {matches[0]} and {matches[1]} are both matches; "
            "what is repaid must not be repaid again: keep one"
        )
    if matches:
        for k, part in enumerate(transforms[matches[0] + 1 :], start=matches[0] + 1):
            if part.factor is None:
                raise ValueError(
                    f"chain: transform {k} stands after the match and is not a constant scale; "
                    "what changes rewards after they are matched breaks the guarantee: put it before the match"
                )

    def init(example: Array) -> State:
        return tuple(part.init(example) for part in transforms)

    def update(
        state: State, reward: Array, done: Array, valid: Array | None = None, settle: Array | None = None
    ) -> tuple[State, Array]:
        read_chain_state(state, len(transforms))
        if quick is not None and valid is None and is_plain_step(reward, done):
            step = quick(state, reward, done if np.count_nonzero(done) else None)
            if step is not None:
                return step
        reward = _as_state_floats(state, reward)
        states = []
        for part, part_state in zip(transforms, state, strict=True):
            part_state, reward = part.update(part_state, reward, done, valid, settle)
            states.append(part_state)
        return tuple(states), reward

    quick = _quick_chain([part.quick for part in transforms])
    factors = [part.factor for part in transforms]
    whole = math.prod(f for f in factors if f is not None)
    if not matches:
        constant = None if None in factors else whole
        return RewardTransform(init, update, factor=constant, parts=transforms, quick=quick)

    at = matches[0]
    match, after = transforms[at], math.prod(f for f in factors[at + 1 :] if f is not None)

    def owed_of(state: State) -> Array:
        read_chain_state(state, len(transforms))
        debt = owed(match, state[at])
        return debt if after == 1 else after * debt

    def drop_from(state: State, where: Array) -> State:
        return (*state[:at], drop(match, state[at], where)[0], *state[at + 1 :])

    return RewardTransform(
        init, update, match.gamma, owed=owed_of, drop=drop_from, carries=match.carries, parts=transforms, quick=quick
    )


def scale(c: float) -> RewardTransform:
    """Multiply every reward by the constant c: F'_t = c·F_t. Allowed before and after a match.

    >>> import numpy as np
    >>> scale(0.1).update((), np.array([5.0]), np.array([False]))[1]
    array([0.5])
    """
    if not isinstance(c, Real) or not math.isfinite(c):
        raise ValueError(f"scale needs a finite number, got {c!r}")
    return _stateless("scale", lambda xp, reward: reward * float(c))._replace(factor=float(c))


def clip(low: float, high: float) -> RewardTransform:
    """Clip every reward into [low, high]: F'_t = min(max(F_t, low), high). Allowed before a match only.

    >>> import numpy as np
    >>> clip(0, 1).update((), np.array([-3.0, 0.5, 9.0]), np.zeros(3, dtype=bool))[1]
    array([0. , 0.5, 1. ])
    """
    if not (isinstance(low, Real) and isinstance(high, Real) and low <= high):
        raise ValueError(f"clip needs low ≤ high, got {low!r} and {high!r}")
    return _stateless("clip", lambda xp, reward: xp.clip(reward, float(low), float(high)))


def owed(transform: RewardTransform, state: State) -> Array:
    """Read the debt of each environment, valued at its next step; 0 right after an episode's end.

        Debt_t = Σ_{i<t} γ^(i−t) F_i (1 − Σ_{j<t} m(j,i))            (the law)

    The rest of the episode returns exactly −Debt_t, whatever the agent does. For a chain the constants
    that follow the match are included.

    >>> import numpy as np, payback
    >>> match = payback.match_at_end(0.5)
    >>> state, _ = match.update(match.init(np.zeros(1)), np.array([3.0]), np.array([False]))
    >>> owed(match, state)
    array([6.])
    """
    if transform.owed is None:
        raise TypeError("this transform owes nothing: there is no match in it")
    return transform.owed(state)


def drop(transform: RewardTransform, state: State, where: Array) -> tuple[State, Array]:
    """Forget the debt of the environments `where`; return the new state and what each of them still owed.

    For a reset in mid-episode, and for a truncation whose debt is carried by the bootstrapped value.

    >>> import numpy as np, payback
    >>> match = payback.match_at_end(0.5)
    >>> state, _ = match.update(match.init(np.zeros(2)), np.array([3.0, 1.0]), np.array([False, False]))
    >>> state, dropped = drop(match, state, np.array([True, False]))
    >>> dropped, owed(match, state)
    (array([6., 0.]), array([0., 2.]))
    """
    debt = owed(transform, state)
    if transform.drop is None:
        raise TypeError("this transform does not say how to drop its debt: give its RewardTransform a `drop`")
    where = read_flags("drop", "where", where, debt)
    return transform.drop(state, where), namespace(debt).where(where, debt, 0.0)


def read_chain_state(state: State, length: int) -> None:
    """Refuse a state that is not a chain's of this length."""
    if not isinstance(state, tuple) or hasattr(state, "_fields") or len(state) != length:
        raise TypeError(
            f"chain of {length} transforms was given a state of another transform ({type(state).__name__}); "
            "use the state that this chain's init or update returned"
        )


def _quick_chain(quicks: list[Any]) -> Callable[[State, Array, Array | None], tuple[State, Array] | None] | None:
    """Feed a plain step through the quick forms, where every member has one."""
    if None in quicks:
        return None

    def quick(state: State, reward: Array, done: Array | None) -> tuple[State, Array] | None:
        if len(state) != len(quicks):
            return None
        states = []
        for part, part_state in zip(quicks, state):  # noqa: B905  strict takes half a microsecond more
            step = part(part_state, reward, done)
            if step is None:
                return None
            part_state, reward = step
            states.append(part_state)
        return tuple(states), reward

    return quick


def _as_state_floats(state: State, reward: Array) -> Array:
    """Return integer rewards in the dtype of the chain's match: what stands before it may not know it."""
    if type(reward) is np.ndarray and reward.dtype.kind == "f":
        return reward
    xp = namespace(reward)
    return as_floats(xp, reward, dtype_for(xp, state, reward) or float_dtype(xp, reward))


def _stateless(name: str, apply: Callable[[Any, Array], Array]) -> RewardTransform:
    def update(
        state: State, reward: Array, done: Array, valid: Array | None = None, settle: Array | None = None
    ) -> tuple[State, Array]:
        if state != ():
            raise TypeError(f"{name} keeps no state but was given a {type(state).__name__}; pass ()")
        xp = namespace(reward)
        reward = as_floats(xp, reward, float_dtype(xp, reward))
        xp, reward, done, valid = read_step(name, reward, reward, done, valid)
        return rollout(state, reward, done, valid, settle)

    def rollout(
        state: State, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
    ) -> tuple[State, Array]:
        xp = namespace(rewards)
        shaped = apply(xp, rewards)
        return state, shaped if valid is None else xp.where(valid, shaped, 0.0)

    return RewardTransform(lambda example: (), update, rollout=rollout)
