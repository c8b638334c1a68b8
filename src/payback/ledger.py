"""Track the debts of B environments: one pure ledger for every host, in NumPy, Torch and JAX.

    ledger = payback.ledger.make(payback.grm(0.99, delay=30), on_truncation="settle")
    state = ledger.init(example)                                     example: (B,) floats, or () under jax.vmap
    state, step = ledger.step(state, reward, terminated, truncated)  learn from r_t + step.shaped, step.terminated, ...
    state, dropped = ledger.reset(state, where)                      after a reset in mid-episode

Nothing is mutable and nothing warns, so `step` runs under `jit`, `vmap` and `scan`. For hosts that run in Python
`payback.monitor.Monitor` wraps it; it warns, counts and writes the log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, Mask, any_of, can_look, constant, float_dtype, namespace
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_arrays, read_flags, refuse_not_finite, refuse_overflow
from payback.messages import refuse_unknown

OnTruncation = Literal["settle", "carry"]
"""What happens to the debt at a time limit. The default, None, is "settle", and the monitor warns of it once."""

TOLERANCE = 1e-5  # an episode cancels if its residual is at most this; correct matches reached 3.3e-6, in float32
WINDOW, FADED = 64, 0.05  # payments are compared with the debt every 64 steps, or sooner, so that γ^t > 0.05 between
LEAST = 1e-7  # initial value of Σγ^t |F′_t|, so that sums below `LEAST`·`TOLERANCE` = 1e-12 count as rounding
FRESH = np.array([0.0, LEAST, 0.0, 0.0])
FLOOR, ROUNDINGS = 1e-4, 8
"""A debt can be a small difference of large loans and carries their rounding. So this share of the episode's earlier
payments counts as paid, or more if eight roundings of them need it."""


class Paid(NamedTuple):
    """The debt that the payments imply, to compare with `owed`.

    debt   Σ_i γ^(i−t) F′_i, the debt that the payments imply
    size   Σ_i γ^(i−t) |F′_i| since the last comparison, plus |debt| + floor at that comparison
    floor  the share of earlier payments that counts as paid; see `FLOOR`
    worst  the largest residual of the comparisons so far
    """

    sums: Array  # (4, B) of each environment's current episode, as above
    steps: Array  # since the last comparison
    shared = ("steps",)


class LedgerState(NamedTuple):
    """What the ledger carries from step to step."""

    loans: Any  # the transform's state
    owed: Array  # (B,) the debt of each environment, valued at its next step
    paid: Any  # `Paid`, () without a match
    pending: tuple[Array, ...] = ()  # NumPy's latest payments, oldest first, not in `paid`: one by one they are slow


class Step(NamedTuple):
    """What one step pays and what the learner must see, all (B,); in NumPy the flags are None if `step` got None."""

    shaped: Array
    """F′_t, to add to the task's reward."""
    owed: Array
    """The debt after the step, before a carried debt is left to the bootstrapped value."""
    terminated: Array
    """Ends at which the debt is settled, so the learner must not bootstrap."""
    truncated: Array
    """Ends at which the debt is carried, so the learner must bootstrap."""
    residual: Array
    """|Σγ^t F′_t| / Σγ^t |F′_t| of an episode that settled at this step, 0 elsewhere."""


def make(transform: RewardTransform, on_truncation: OnTruncation | None = None, trusted: bool = False) -> Ledger:
    """Return the ledger of a transform.

    `on_truncation="settle"`, the default, collects the debt at a time limit and reports it as a termination; "carry"
    leaves the debt to the bootstrapped value. A transform without a match owes nothing: its truncations stay what they
    are. With `trusted`, `step` does not validate its arrays: the caller did, and set invalid rows to 0.

    >>> import numpy as np, payback
    >>> ledger = make(payback.match_at_end(0.5))
    >>> state, no, yes = ledger.init(np.zeros(1)), np.array([False]), np.array([True])
    >>> state, step = ledger.step(state, np.array([3.0]), no, no)
    >>> step.shaped, state.owed
    (array([3.]), array([6.]))
    >>> state, step = ledger.step(state, np.array([1.0]), terminated=no, truncated=yes)
    >>> step.shaped, step.terminated, step.truncated, step.residual
    (array([-6.]), array([ True]), array([False]), array([0.]))
    """
    return Ledger(transform, on_truncation, trusted)


@dataclass(frozen=True)
class Ledger:
    """Pure functions `init`, `step` and `reset`; made by `make`."""

    transform: RewardTransform
    on_truncation: OnTruncation | None = None
    trusted: bool = False

    def __post_init__(self) -> None:
        refuse_unknown(self.transform, self.on_truncation)

    @cached_property
    def settles(self) -> bool:
        """Whether a truncated episode's debt is settled at its last step."""
        return self.on_truncation != "carry" and self._match is not None

    @cached_property
    def _match(self) -> Match | None:
        return self.transform if isinstance(self.transform, Match) else None

    @cached_property
    def _window(self) -> int:
        gamma = 1.0 if self._match is None else self._match.gamma
        return WINDOW if gamma == 1 else max(1, min(WINDOW, int(math.log(FADED) / math.log(gamma))))

    @cached_property
    def _weights(self) -> np.ndarray:
        return self._match.gamma ** -np.arange(self._window, 0.0, -1.0)  # type: ignore[union-attr]

    def init(self, example: Array, loans: Any = None) -> LedgerState:
        """Return the state before the first step, or one that continues from the transform's state `loans`."""
        loans = self.transform.init(example) if loans is None else loans
        xp = namespace(example)
        nothing = xp.zeros_like(example, dtype=float_dtype(xp, example))
        if self._match is None:
            return LedgerState(loans, nothing, ())
        owed = self._match.owed(loans)
        steps = 0 if xp is np else constant(xp, np.zeros(()), example, xp.int32)
        return LedgerState(loans, owed, Paid(_stack(xp, owed, xp.abs(owed) + LEAST, nothing, nothing), steps))

    def step(
        self, state: LedgerState, reward: Any, terminated: Mask, truncated: Mask, valid: Mask = None, event: Mask = None
    ) -> tuple[LedgerState, Step]:
        """Step all environments and return the next state; NaN and overflow raise in NumPy and on a CPU.

        `reward`: F_t, the intrinsic reward. `terminated`, `truncated`: how episodes ended, None if none did.
        `valid`: False marks rows that are not a transition; they pay 0 and change nothing.
        `event`: True marks steps at which `match_when` repays.
        """
        if not self.trusted:
            reward, terminated, truncated, valid, event = self._read(state, reward, terminated, truncated, valid, event)
        xp = np if type(reward) is np.ndarray else namespace(reward)
        none_ends = xp is np and not (
            (terminated is not None and any_of(terminated)) or (truncated is not None and any_of(truncated))
        )
        if none_ends:
            settled, carried, done = terminated, truncated, None
        else:
            settled, carried = self._ends(xp, reward, terminated, truncated)
            done = settled if self._match is not None else settled | carried
            done = done if valid is None else done & valid
            done = None if xp is np and not any_of(done) else done
        loans, shaped = self.transform._step(xp, state.loans, reward, done, valid, event)
        if not self.trusted:
            refuse_overflow(xp, repr(self.transform), shaped)
        if self._match is None:
            return LedgerState(loans, state.owed, ()), Step(shaped, state.owed, settled, carried, state.owed)
        owed = self._match.owed(loans)
        # A payment of 0 in an invalid row changes nothing where nothing has been paid yet.
        if none_ends and (valid is None or not (state.pending or np.count_nonzero(state.paid.sums[0][~valid]))):
            pending = state.pending + (shaped,)  # noqa: RUF005  a fifth of a microsecond faster
            if state.paid.steps + len(pending) < self._window:
                residual = None if settled is None else np.zeros_like(shaped)
                return LedgerState(loans, owed, state.paid, pending), Step(shaped, owed, settled, carried, residual)
        paid, residual = self._add(xp, state, shaped, owed, done, valid)
        after = LedgerState(loans, owed, paid)
        if not (none_ends or self.settles) and _any(xp, carried):
            after, _ = self.reset(after, carried if valid is None else carried & valid)
        return after, Step(shaped, owed, settled, carried, None if settled is None else residual)

    def reset(self, state: LedgerState, where: Array) -> tuple[LedgerState, Array]:
        """Start new episodes in the environments `where`; return the state and the dropped debts.

        >>> import numpy as np, payback
        >>> ledger, no = make(payback.match_at_end(0.5)), np.array([False, False])
        >>> state, _ = ledger.step(ledger.init(np.zeros(2)), np.array([3.0, 1.0]), no, no)
        >>> state, dropped = ledger.reset(state, np.array([True, False]))
        >>> dropped, state.owed
        (array([6., 0.]), array([0., 2.]))
        """
        xp = namespace(state.owed)
        if not self.trusted:
            where = read_flags("reset", "where", where, state.owed)
        if self._match is None:
            return state, xp.zeros_like(state.owed)
        left, gone = xp.where(where, 0.0, state.owed), xp.where(where, state.owed, 0.0)
        sums, steps = self._sum(xp, state.paid, state.pending)
        return LedgerState(self._match.drop(state.loans, where), left, Paid(_begin(xp, sums, where), steps)), gone

    def _read(
        self, state: LedgerState, reward: Any, terminated: Any, truncated: Any, valid: Any, event: Any
    ) -> tuple[Array, Array, Array, Mask, Mask]:
        """Return floats and booleans that fit the state; raise if they do not."""
        fit, name = self.transform._expected(state.loans) or (state.owed, state.owed.shape), repr(self.transform)
        xp, reward, event, valid, _ = read_arrays(name, fit, reward, "event", event, valid, None)
        terminated = None if terminated is None else read_flags(name, "terminated", terminated, reward)
        truncated = None if truncated is None else read_flags(name, "truncated", truncated, reward)
        refuse_not_finite(xp, name, reward)
        return reward, terminated, truncated, valid, event

    def _ends(self, xp: Any, like: Array, terminated: Any, truncated: Any) -> tuple[Array, Array]:
        """Return the ends that are settled and those that are carried, never both."""
        terminated = xp.zeros_like(like, dtype=xp.bool) if terminated is None else terminated
        truncated = xp.zeros_like(like, dtype=xp.bool) if truncated is None else truncated
        if not _any(xp, truncated):
            return terminated, truncated
        if self.settles:
            return terminated | truncated, xp.zeros_like(truncated)
        return terminated, truncated & ~terminated

    def _add(self, xp: Any, state: Any, shaped: Array, owed: Array, ends: Mask, valid: Mask) -> tuple[Paid, Array]:
        """Add the payments, and return the residual of the episodes that settle at this step."""
        # The payments imply a debt D, 0 at first, then D ← (D + F′_t)/γ. With a correct match D = owed at every step,
        # and D = 0 after the last. Every `_window` steps D is compared with `owed` and set to it, which also detects a
        # debt left open late in a long episode.
        if valid is None:
            sums, steps = self._sum(xp, state.paid, (*state.pending, shaped))
        else:
            before = self._sum(xp, state.paid, state.pending)
            sums, steps = self._sum(xp, before, (shaped,))
            sums = xp.where(valid, sums, before.sums)
        if ends is None:
            residual = xp.zeros_like(shaped)
        else:
            residual = xp.where(ends, xp.maximum(sums[3], abs(sums[0]) / sums[1]), 0.0)
            sums = _begin(xp, sums, ends)
        due = steps >= self._window
        if due if xp is np else _any(xp, due):
            sums, steps = xp.where(due, self._compare(xp, sums, owed), sums), 0 if xp is np else xp.where(due, 0, steps)
        return Paid(sums, steps), residual

    def _sum(self, xp: Any, paid: Any, payments: tuple[Array, ...]) -> Paid:
        """Take D ← (D + F′)/γ for each payment, oldest first."""
        n, interest = len(payments), 1 / self._match.gamma  # type: ignore[union-attr]
        if n == 0:
            return paid
        if n == 1:
            debt, size, floor, worst = paid.sums
            size = (size + abs(payments[0])) * interest
            return Paid(_stack(xp, (debt + payments[0]) * interest, size, floor, worst), paid.steps + 1)
        block, sums = np.concatenate(payments).reshape(n, -1), paid.sums.copy()
        weights, open_ = self._weights[-n:].astype(block.dtype, copy=False), sums[:2]
        open_ *= weights[0]
        open_ += weights.dot(np.concatenate((block, abs(block)), axis=1)).reshape(2, -1)
        return Paid(sums, paid.steps + n)

    def _compare(self, xp: Any, sums: Array, owed: Array) -> Array:
        """Compare the implied debt with `owed`, and continue from `owed`."""
        debt, size, floor, worst = sums
        owed_size = abs(owed)
        worst = xp.maximum(worst, abs(debt - owed) / (size + owed_size))
        share = max(FLOOR, ROUNDINGS * float(xp.finfo(owed.dtype).eps) / TOLERANCE)
        share = min(share, self._match.gamma**self._window * 0.9)  # type: ignore[union-attr]
        floor = xp.maximum(floor, share * size)  # the last floor has grown in `size` by γ⁻ⁿ, n the window
        return _stack(xp, owed, owed_size + floor, floor, worst)


def _stack(xp: Any, *rows: Array) -> Array:
    return np.concatenate(rows).reshape(4, -1) if xp is np and rows[0].ndim else xp.stack(rows)


def _begin(xp: Any, sums: Array, where: Array) -> Array:
    """Reset the sums of the environments `where`."""
    return xp.where(where, constant(xp, FRESH.reshape(4, *(1,) * where.ndim), sums), sums)


def _any(xp: Any, flags: Array) -> bool:
    """Return whether a flag is set; True where values cannot be read, so that both cases are computed."""
    if xp is np:
        return any_of(flags)
    return is_jax_namespace(xp) or not can_look(xp, flags) or bool(xp.any(flags))
