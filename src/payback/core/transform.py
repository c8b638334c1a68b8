"""What a reward transform is: `RewardTransform`; `Match`, one that repays what it pays; `chain`, several in a row.

A transform is a pair of pure functions, `init` and `update`. payback's own are frozen dataclasses of their parameters,
so they compare by them and can be pickled; `Repayment` is what the matches have in common. `update` validates the
arrays once and takes the raw `_step`, which trusts them; `chain` and `shape_rollout` validate once for all their parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from payback.core import validate
from payback.core.arrays import Array, Mask, fields_of, is_a, namespace
from payback.core.validate import ExpectedShape, read_flags, read_made, read_state, read_step, refuse_overflow

T = TypeVar("T", bound="RewardTransform")
State = Any  # a transform's state: a NamedTuple of arrays, or a tuple of states for a chain
TransformInit = Callable[[Any], State]
"""`init(example) -> state`, for rewards like `example`: any array of their library, dtype, device and shape (B,)."""


class TorchLike(Protocol):
    """Structural type for `torch.Tensor`."""

    def detach(self) -> Any: ...  # noqa: D102


class JaxLike(Protocol):
    """Structural type for `jax.Array`."""

    def block_until_ready(self) -> Any: ...  # noqa: D102


Rewards = NDArray[np.floating[Any]] | NDArray[np.integer[Any]] | TorchLike | JaxLike
"""Rewards: numbers, so that a type checker notices `reward` and `done` swapped."""
Flags = NDArray[np.bool_] | TorchLike | JaxLike  # booleans; integers 0 and 1 work at run time, too


class TransformUpdate(Protocol):
    """`update(state, reward, done, valid=None, settle=None) -> (state, shaped)`: the next state and F′_t.

    All arrays are (B,), or () for one environment under `jax.vmap`.
    `state`: what `init` or the last `update` returned; it is not changed.
    `reward`: F_t, the intrinsic reward that came with this transition.
    `done`: whether this transition ended its episode, terminated or truncated.
    `valid`: False marks an invalid row, such as Gymnasium's autoreset row: it is paid 0 and changes nothing.
    `settle`: True marks an event at which `match_when` repays; other transforms ignore it.
    """

    def __call__(  # noqa: D102
        self, state: Any, reward: Rewards, done: Flags, valid: Flags | None = None, settle: Flags | None = None
    ) -> tuple[State, Any]: ...


class Schedule(NamedTuple):
    """m_k, the share of a loan that is repaid at age k while its episode goes on; the rest is due at the end."""

    shares: np.ndarray  # (n,) m_0 … m_{n−1}
    fade: float = 0.0  # each later share over the one before it


class RewardTransform:
    """A pure pair of functions that turns a stream of rewards F_t into another, F′_t.

    `RewardTransform(init, update)` is all that a causal transform of your own needs; see `TransformInit` and
    `TransformUpdate` for the arguments. Write one that repays as a `Match`.

    >>> import numpy as np
    >>> double = RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, 2 * r))
    >>> double.update((), np.array([1.0, 3.0]), np.array([False, True]))[1]
    array([2., 6.])
    """

    _name: ClassVar[str] = ""  # the public function that makes it, for errors and `repr`
    _named: ClassVar[bool] = True  # whether `repr` names the arguments
    _factor: float | None = None  # the constant c of a transform F′ = c·F, the only kind that may follow a match
    _parts: tuple[RewardTransform, ...] = ()  # a chain's members, in order
    _call: str | None = None  # the call that made it, if it is not the one of its class

    def __init__(self, init: TransformInit, update: TransformUpdate) -> None:
        vars(self).update(init=init, update=update)  # because attributes cannot be set

    def init(self, example: Any, /) -> State:
        """Make a state for rewards like `example`; see `TransformInit`."""
        raise NotImplementedError(f"{type(self).__name__} has no init")

    def update(
        self, state: Any, reward: Rewards, done: Flags, valid: Flags | None = None, settle: Flags | None = None
    ) -> tuple[State, Any]:
        """Return the next state and F′_t; see `TransformUpdate`."""
        xp, r_t, ends, valid, settle = read_step(self._name, self._expected(state), reward, done, valid, settle)
        state, shaped = self._step(xp, state, r_t, ends, valid, settle)
        refuse_overflow(xp, self._name, shaped)
        return state, shaped

    def _expected(self, state: State) -> ExpectedShape | None:
        """Return what rewards must fit, None if any will do; refuse the state of another transform."""

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        """Take one step with validated arrays: floats of the state's dtype, booleans, 0 and no end in invalid rows."""
        # NumPy's `done` is None if no episode ends. This default calls the `update` of a user-defined transform.
        ends: Any = xp.zeros_like(reward, dtype=bool) if done is None else done
        state, shaped = self.update(state, reward, ends, valid, settle)
        return state, read_made(xp, self, shaped, reward, valid)

    def _block(self, state: State, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        """Return (state, shaped) of a validated (T, B) block, or NotImplemented to step through it."""
        return NotImplemented

    def _device_block(self, xp: Any, state: State, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        """Do the same to Torch tensors on an accelerator; what invalid rows get means nothing."""
        return NotImplemented

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to {name!r}: make another {type(self).__name__}")

    def __getstate__(self) -> dict[str, Any]:
        """Return what to pickle or copy: everything but cached properties."""
        kind = type(self)
        return {k: x for k, x in vars(self).items() if not isinstance(getattr(kind, k, None), cached_property)}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((type(self), *self.__getstate__().values()))

    def __repr__(self) -> str:
        if self._call or not self._name:
            return self._call or f"{type(self).__name__}(init={self.init!r}, update={self.update!r})"
        given = [(f.name, value) for f in fields(cast(Any, self)) if (value := getattr(self, f.name)) != f.default]
        shown = [(f"{name}=" if self._named else "") + getattr(x, "__name__", repr(x)) for name, x in given]
        return f"{self._name}({', '.join(shown)})"


class Match(RewardTransform):
    """A transform that repays: it takes back every reward it pays, later in the same episode and with interest.

    The guarantee holds for a learner that discounts with its `gamma`. A matching of your own works in chains, adapters,
    resets and with `save_state`; `payback.check_transform` checks that it repays exactly.

    `falls_due_alone`: whether each loan falls due after a bounded time; `on_truncation="carry"` needs it.

    >>> import numpy as np, payback
    >>> def update(paid, reward, done, valid=None, settle=None):  # take each reward back one step later
    ...     valid = np.ones_like(done) if valid is None else valid
    ...     shaped = np.where(done, -paid / 0.9, reward - paid / 0.9)
    ...     return np.where(valid, np.where(done, 0, reward), paid), np.where(valid, shaped, 0)
    >>> at_next_step = Match(  # the state is (B,), what was paid last
    ...     np.zeros_like, update, gamma=0.9,
    ...     owed=lambda paid: paid / 0.9, drop=lambda paid, where: np.where(where, 0, paid),
    ... )
    >>> at_next_step.update(np.array([0.9]), np.array([2.0]), np.array([False]))[1]
    array([1.])
    >>> report = payback.check_transform(at_next_step, gamma=0.9, effort="quick")
    """

    gamma: float
    """γ of the interest: the learner's own discount."""
    falls_due_alone: bool = False

    def __init__(
        self,
        init: TransformInit,
        update: TransformUpdate,
        *,
        gamma: float,
        owed: Callable[[Any], Any],
        drop: Callable[[Any, Any], State],
        falls_due_alone: bool = False,
    ) -> None:
        for name, function in {"init": init, "update": update, "owed": owed, "drop": drop}.items():
            if not callable(function):
                raise TypeError(f"Match: {name} must be a function, got {function!r}")
        super().__init__(init, update)
        vars(self).update(gamma=validate.read_gamma(gamma), owed=owed, drop=drop, falls_due_alone=falls_due_alone)

    def owed(self, state: Any, /) -> Any:
        """Return the debt of each environment, (B,), valued at its next step."""
        raise NotImplementedError(f"{type(self).__name__} has no owed")

    def drop(self, state: Any, where: Any, /) -> State:
        """Return the state without the debt of the environments `where`."""
        raise NotImplementedError(f"{type(self).__name__} has no drop")

    def _schedule(self) -> Schedule | None:
        """Return when a loan is repaid; None if `felt_share` has to find out with one loan."""


class Repayment(Match):
    """A matching of ours. Its state holds arrays of each environment, the debt or the loans first, and `terms` last."""

    _kind: ClassVar[type[Any]]
    _repay: Callable[..., tuple[State, Array]]  # a step of valid rows, (xp, state, reward, done, settle)
    _numpy_block: Callable[..., tuple[State, Array]]  # (state, rewards, dones, settle); invalid rows are 0

    @cached_property
    def _terms(self) -> np.ndarray:
        """γ, then whatever else distinguishes it from others of its kind."""
        return np.array([self.gamma])

    def _expected(self, state: State) -> ExpectedShape:
        read_state(self._name, state, self._kind, self._terms)
        return state[0], state[0].shape

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        after, shaped = self._repay(xp, state, reward, done, settle)
        if valid is None:
            return after, shaped
        return self._where(xp, valid, after, state), xp.where(valid, shaped, 0.0)

    def drop(self, state: State, where: Array, /) -> State:
        """Forget the debts of the environments `where`."""
        return self._where(namespace(state[0]), where, (0,) * len(state), state)

    def _where(self, xp: Any, where: Array, new: Any, old: Any) -> State:
        """Return the `new` arrays of the environments `where`, and the `old` ones of all others."""
        return self._kind(*(xp.where(where, x, y) for x, y in zip(new[:-1], old[:-1], strict=True)), old[-1])

    def _block(self, state: State, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None:
            # The loans of an environment must stop ageing in its invalid rows, unless it has none there.
            debtless: Any = np.atleast_2d(state[0] == 0).all(axis=0)
            if not (valid | np.concatenate((debtless[None], dones[:-1] | ~valid[:-1]))).all():
                return NotImplemented
        return self._numpy_block(state, rewards, dones, settle)


def altered(transform: T, **attributes: Any) -> T:
    """Return a copy with other attributes, such as another `_call`."""
    copy = object.__new__(type(transform))
    vars(copy).update(transform.__getstate__(), **attributes)
    return copy


def owed(transform: RewardTransform, state: State) -> Array:
    """Return the debt of each environment, valued at its next step; 0 right after an episode's end.

        Debt_t = Σ_{i<t} γ^(i−t) F_i (1 − Σ_{j<t} m(j,i))            (the zero-sum property)

    The rest of the episode's shaped rewards return exactly −Debt_t, whatever the agent does. You may change the array.

    >>> import numpy as np, payback
    >>> match = payback.match_at_end(0.5)
    >>> state, _ = match.update(match.init(np.zeros(1)), np.array([3.0]), np.array([False]))
    >>> owed(match, state)
    array([6.])
    """
    match = _match(transform)
    match._expected(state)
    return match.owed(state)


def drop(transform: RewardTransform, state: State, where: Array) -> tuple[State, Array]:
    """Drop the debt of the environments `where`; return the new state and the dropped debts.

    For a reset in mid-episode, and for a truncation whose debt the bootstrapped value carries.

    >>> import numpy as np, payback
    >>> match = payback.match_at_end(0.5)
    >>> state, _ = match.update(match.init(np.zeros(2)), np.array([3.0, 1.0]), np.array([False, False]))
    >>> state, dropped = drop(match, state, np.array([True, False]))
    >>> dropped, owed(match, state)
    (array([6., 0.]), array([0., 2.]))
    """
    match, debt = _match(transform), owed(transform, state)
    where = read_flags("drop", "where", where, debt)
    return match.drop(state, where), namespace(debt).where(where, debt, 0.0)


def _match(transform: RewardTransform) -> Match:
    if not isinstance(transform, Match):
        raise TypeError(f"{transform!r} has no debt, because it contains no match; end the chain with a match")
    return transform


def chain(*transforms: RewardTransform) -> RewardTransform:
    """Pass the reward through the transforms, first to last; the result is a `Match` if one of them is.

    Only a constant `scale` may follow a match: anything else would undo the exact repayment, so `chain` refuses it.

    >>> import numpy as np, payback
    >>> shaping = chain(payback.clip(-1, 1), payback.scale(0.5))
    >>> shaping.update(shaping.init(np.zeros(2)), np.array([4.0, 0.5]), np.array([False, False]))[1]
    array([0.5 , 0.25])
    >>> chain(payback.center(), payback.match_at_end(0.9))
    chain(center(), match_at_end(gamma=0.9))
    """
    if not transforms:
        raise ValueError("chain needs at least one transform")
    for k, part in enumerate(transforms):
        if not isinstance(part, RewardTransform):
            raise TypeError(f"chain: member {k} is a {type(part).__name__}, not a transform such as payback.center()")
    matches = [k for k, part in enumerate(transforms) if isinstance(part, Match)]
    if not matches:
        return Chain(transforms)
    if len(matches) > 1:
        both = f"transforms {matches[0]} and {matches[1]} are both matches"
        raise ValueError(f"chain: {both}; a second one would repay again what is already repaid: keep one")
    for k, part in enumerate(transforms):
        if k > matches[0] and part._factor is None:
            why = "a change of rewards after the match breaks the guarantee: put it before the match"
            raise ValueError(f"chain: transform {k} stands after the match and is not a constant scale; {why}")
    return ChainWithMatch(transforms, matches[0])


@dataclass(frozen=True, repr=False)
class Chain(RewardTransform):
    """Several transforms without a match."""

    _parts: tuple[RewardTransform, ...]
    _name = "chain"

    def __post_init__(self) -> None:
        """Multiply the constants of a chain that does nothing but scale."""
        factors = [part._factor for part in self._parts if part._factor is not None]
        vars(self).update(_factor=math.prod(factors) if len(factors) == len(self._parts) else None)

    @cached_property
    def _steps(self) -> tuple[Any, ...]:
        return tuple(part._step for part in self._parts)

    def init(self, example: Any, /) -> State:
        """Make the states of the parts."""
        return tuple(part.init(example) for part in self._parts)

    def _expected(self, state: State) -> ExpectedShape | None:
        length, found = len(self._parts), None
        if not is_a(state, tuple) or fields_of(state) or len(state) != length:
            other = f"a state of another transform ({type(state).__name__})"
            raise TypeError(f"chain of {length} transforms was given {other}; {validate.OWN}")
        for part, part_state in zip(self._parts, state):  # noqa: B905  strict takes half a microsecond more
            found = part._expected(part_state) or found
        return found

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        states: list[State] = []
        for step, part_state in zip(self._steps, state):  # noqa: B905
            part_state, reward = step(xp, part_state, reward, done, valid, settle)
            states.append(part_state)
        return tuple(states), reward

    def __repr__(self) -> str:
        return self._call or f"chain({', '.join(map(repr, self._parts))})"


@dataclass(frozen=True, repr=False)
class ChainWithMatch(Chain, Match):
    """Several transforms, one of them a match."""

    _at: int = 0  # the place of the match
    _after: float = field(init=False, compare=False)  # the constant that multiplies its rewards, and so its debt

    def __post_init__(self) -> None:
        match, scales = _match(self._parts[self._at]), self._parts[self._at + 1 :]
        after = math.prod(scale._factor or 0.0 for scale in scales)
        vars(self).update(_after=after, gamma=match.gamma, falls_due_alone=match.falls_due_alone)

    def owed(self, state: Any, /) -> Any:
        """Return the debt of the match, times the constants after it."""
        debt = _match(self._parts[self._at]).owed(state[self._at])
        return debt if self._after == 1 else self._after * debt

    def drop(self, state: Any, where: Any, /) -> State:
        """Return the state without the debt of the environments `where`."""
        at = self._at
        return (*state[:at], drop(self._parts[at], state[at], where)[0], *state[at + 1 :])
