"""What a reward transform is: `RewardTransform`, and `Match`, one that repays what it pays.

A transform is a pair of pure functions. Our own `update` is a `Door`: it reads the caller's arrays once, then takes the
transform's raw step, which trusts them; `chain` and `shape_rollout` read at their own door and take the raw steps too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from payback.core.arrays import Array, namespace
from payback.core.validate import Fit, read_flags, read_gamma, read_made, read_step, refuse_overflow

State = Any
"""A transform's state: a NamedTuple of arrays, or a tuple of states for a chain."""


class TorchLike(Protocol):
    """A Torch tensor, told from a NumPy array by what only it has."""

    def detach(self) -> Any:
        """Return the tensor without its graph."""
        ...


class JaxLike(Protocol):
    """A JAX array, told from a NumPy array by what only it has."""

    def block_until_ready(self) -> Any:
        """Wait for the array to be computed."""
        ...


Rewards = NDArray[np.floating[Any]] | NDArray[np.integer[Any]] | TorchLike | JaxLike
"""Rewards: numbers, so that a type checker finds `reward` and `done` swapped."""
Flags = NDArray[np.bool_] | TorchLike | JaxLike
"""Flags: booleans. At run time integers 0 and 1 are taken too."""


class TransformInit(Protocol):
    """`init(example) -> state`: the state before the first step."""

    def __call__(self, example: Any, /) -> State:
        """Make a state for rewards like `example`: any array of their library, dtype, device and shape (B,)."""
        ...


class TransformUpdate(Protocol):
    """`update(state, reward, done, valid=None, settle=None) -> (state, shaped)`: one step of B environments."""

    def __call__(
        self, state: Any, reward: Rewards, done: Flags, valid: Flags | None = None, settle: Flags | None = None
    ) -> tuple[State, Any]:
        """Return the next state and F′_t. All arrays are (B,), or () for one environment under `jax.vmap`.

        `state`: what `init` or the last `update` returned; it is not changed.
        `reward`: F_t, the intrinsic reward that came with this transition.
        `done`: whether this transition ended its episode, terminated or truncated.
        `valid`: False marks an invalid row, such as Gymnasium's autoreset row: it is paid 0 and changes nothing.
        `settle`: True marks an event at which `match_when` repays; other transforms ignore it.
        """
        ...


Step = Callable[[Any, State, Array, Array | None, Array | None, Array | None], tuple[State, Array]]
"""(xp, state, reward, done, valid, settle) → (state, shaped), on arrays that were read: floats of the state's dtype and
shape, booleans, reward 0 and no end in invalid rows. NumPy's `done` is None where no episode ends."""
Block = Callable[[State, Array, Array, Array | None, Array | None], Any]
"""(state, rewards, dones, valid, settle) → (state, shaped) for a read (T, B) block; NotImplemented: step through it."""


class Schedule(NamedTuple):
    """m_k, the share of a loan that is repaid at age k while its episode goes on; what is left is due at the end."""

    shares: np.ndarray
    """(n,) m_0 … m_{n−1}."""
    fade: float = 0.0
    """Each later share over the one before it."""


@dataclass(frozen=True, repr=False)
class RewardTransform:
    """A pure pair of functions that turns a stream of rewards F_t into another, F′_t.

    `RewardTransform(init, update)` is all that a causal transform of your own needs; see `TransformInit` and
    `TransformUpdate` for the arguments. One that repays is a `Match`.

    >>> import numpy as np
    >>> double = RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, 2 * r))
    >>> double.update((), np.array([1.0, 3.0]), np.array([False, True]))[1]
    array([2., 6.])
    """

    init: TransformInit
    update: TransformUpdate
    _: KW_ONLY
    _block: Block | None = None
    """A fast form of the step over (T, B) blocks."""
    _factor: float | None = None
    """The constant c of a transform that does nothing but F′ = c·F: all that may follow a match."""
    _parts: tuple[RewardTransform, ...] = ()
    """A chain's members, in order."""
    _call: str | None = None
    """The call that made it."""

    def __repr__(self) -> str:
        return self._call or f"{type(self).__name__}(init={self.init!r}, update={self.update!r})"


@dataclass(frozen=True, repr=False)
class Match(RewardTransform):
    """A transform that repays: every reward it pays is taken back later in the same episode, with interest.

    `isinstance(transform, Match)` is the test for the guarantee, which holds for learners that discount with `gamma`.
    Your own matching is a `Match`: give `gamma`, `owed` and `drop` beside `init` and `update`, and it works in chains,
    in every adapter, through resets, and with `save_state`. `payback.check_transform` says whether it keeps the law.

    >>> import numpy as np, payback
    >>> def update(paid, reward, done, valid=None, settle=None):  # each reward is taken back one step later
    ...     valid = np.ones_like(done) if valid is None else valid
    ...     shaped = np.where(done, -paid / 0.9, reward - paid / 0.9)
    ...     return np.where(valid, np.where(done, 0, reward), paid), np.where(valid, shaped, 0)
    >>> at_next_step = Match(  # the state is (B,), what was paid last
    ...     np.zeros_like, update, gamma=0.9,
    ...     owed=lambda paid: paid / 0.9, drop=lambda paid, where: np.where(where, 0, paid),
    ... )
    >>> at_next_step.update(np.array([0.9]), np.array([2.0]), np.array([False]))[1]
    array([1.])
    >>> tried = payback.check_transform(at_next_step, gamma=0.9, effort="quick")
    """

    _: KW_ONLY
    gamma: float
    """γ of the interest: the learner's own discount."""
    owed: Callable[[State], Array]
    """state → (B,), the debt of each environment valued at its next step."""
    drop: Callable[[State, Array], State]
    """(state, where) → the state without the debt of the environments `where`."""
    falls_due_alone: bool = field(default=False)
    """Whether each loan falls due after a bounded time, whenever the episode ends; `on_truncation="carry"` needs it."""
    _schedule: Schedule | None = field(default=None, compare=False)
    """When a loan is repaid, where that is known; `felt_share` feeds the others one loan."""

    def __post_init__(self) -> None:
        """Refuse a match whose γ, debt or reset could not be used."""
        object.__setattr__(self, "gamma", read_gamma(self.gamma))
        for name in ("init", "update", "owed", "drop"):
            if not callable(getattr(self, name)):
                raise TypeError(f"Match: {name} must be a function, got {getattr(self, name)!r}")


class Door:
    """`update` of our own transforms: read the arrays once, take the raw step, refuse what overflowed."""

    __slots__ = ("__weakref__", "fit_of", "name", "step")

    def __init__(self, name: str, fit_of: Callable[[State], Fit | None], step: Step) -> None:
        self.name = name
        self.fit_of = fit_of
        """state → what rewards must fit, None where any will do; raises if the state is not this transform's."""
        self.step = step

    def __call__(
        self, state: Any, reward: Any, done: Any, valid: Any | None = None, settle: Any | None = None
    ) -> tuple[State, Any]:
        """Read, step, look at what is paid."""
        xp, reward, done, valid, settle = read_step(self.name, self.fit_of(state), reward, done, valid, settle)
        state, shaped = self.step(xp, state, reward, done, valid, settle)
        refuse_overflow(xp, self.name, shaped)
        return state, shaped


def raw_step(transform: RewardTransform) -> Step:
    """Return the raw step of a transform; one that is not ours is asked through its `update`."""
    update, name = transform.update, repr(transform)
    if isinstance(update, Door):
        return update.step

    def step(
        xp: Any, state: State, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[State, Array]:
        ends: Any = xp.zeros_like(reward, dtype=bool) if done is None else done
        state, shaped = update(state, reward, ends, valid, settle)
        return state, read_made(xp, name, shaped, reward, valid)

    return step


def fit_of(transform: RewardTransform, state: State) -> Fit | None:
    """Return what rewards must fit for a state of ours; None where any will do."""
    return transform.update.fit_of(state) if isinstance(transform.update, Door) else None


def owed(transform: RewardTransform, state: State) -> Array:
    """Read the debt of each environment, valued at its next step; 0 right after an episode's end.

        Debt_t = Σ_{i<t} γ^(i−t) F_i (1 − Σ_{j<t} m(j,i))            (the law)

    The rest of the episode returns exactly −Debt_t, whatever the agent does. For a chain the constants that follow the
    match are included. The array is the caller's own.

    >>> import numpy as np, payback
    >>> match = payback.match_at_end(0.5)
    >>> state, _ = match.update(match.init(np.zeros(1)), np.array([3.0]), np.array([False]))
    >>> owed(match, state)
    array([6.])
    """
    fit_of(transform, state)
    return _match(transform).owed(state)


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
    match, debt = _match(transform), owed(transform, state)
    where = read_flags("drop", "where", where, debt)
    return match.drop(state, where), namespace(debt).where(where, debt, 0.0)


def _match(transform: RewardTransform) -> Match:
    if not isinstance(transform, Match):
        raise TypeError(f"{transform!r} owes nothing, because there is no match in it: end a chain with a match")
    return transform
