"""Count visits in tables of a fixed size, in JAX: `count`, `episodic_count`, and `episodic` around any pure bonus."""

# JAX's array constructors take a dtype and a sharding without types, and NamedTuples do not type their lambdas.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback.bonuses.bonus import ALPHA, LIMIT
from payback.core.validate import read_count

State = Any  # a tuple of arrays
Cell = Callable[[jax.Array], jax.Array]  # from observations (B, …) to the cell that each is in, 0 … cells − 1
Key = Callable[[jax.Array], jax.Array]  # from observations (B, …) to the numbers (B, …) that identify each of them
SLOTS = 2**14  # of a hashed table, per environment; a step reads and writes one, so more cost memory but no time


class PureBonus(NamedTuple):
    """An intrinsic reward without hidden state.

    >>> import jax, jax.numpy as jnp
    >>> from payback.bonuses.jax import count
    >>> bonus = count(cells=3, alpha=1.0, root=False)
    >>> state = bonus.init(jax.random.key(0), jnp.zeros(2, int))
    >>> state, F = bonus.update(state, jnp.array([0, 0]), None, jnp.array([1, 2]), jnp.zeros(2, bool))
    >>> F.tolist()
    [1.0, 1.0]
    """

    init: Callable[[jax.Array, jax.Array], State]  # (key, obs) → state: `obs` (B, …) shows the shapes
    update: Callable[..., tuple[State, jax.Array]]
    """(state, obs, action, next_obs, done, valid=None) → (state, F), F (B,)."""
    learn: Callable[[State, jax.Array, jax.Array, jax.Array], tuple[State, jax.Array]] | None = None
    """(state, obs, action, next_obs) → (state, loss): one gradient step on rows of the caller's choice."""
    for_actions: Callable[[int, bool], PureBonus] | None = None
    """(how many, whether discrete) → the bonus for these actions, of one that was made without `actions`."""

    def bind(self, action_space: Any) -> PureBonus:
        """Return the bonus for an action space of gymnax's or Gymnasium's; adapters call this."""
        if self.for_actions is None:
            return self
        n = getattr(action_space, "n", None)
        return self.for_actions(math.prod(action_space.shape), False) if n is None else self.for_actions(int(n), True)

    def of_rollout(
        self, state: State, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None
    ) -> tuple[State, jax.Array]:
        """Return (state, F) of a finished rollout of (T, B) blocks: `update` in one scan."""
        return jax.lax.scan(lambda at, row: self.update(at, *row), state, (obs, actions, next_obs, dones, valid))


class Visited(NamedTuple):
    """The visits of this episode, one row per environment.

    A slot that was visited n times in this episode holds `before` + n; every other slot holds at most `before`. The
    end of an episode therefore moves `before` past the largest entry and leaves the table as it is.
    """

    table: jax.Array  # (B, slots)
    before: jax.Array  # (B,)
    steps: jax.Array  # (B,), of this episode
    start: jax.Array  # (B,), the slot in which this episode started


class Visits(NamedTuple):
    """Count visits per environment and episode in a table: the present one included, and the start once."""

    slots: int
    slot: Callable[[jax.Array], jax.Array]  # from observations (B, …) to slots (B,)

    @classmethod
    def by_hash(cls, slots: int, key: Key | None = None) -> Visits:
        """Return a table in which two observations share a slot with probability 1/slots."""
        read_count("slots", slots, 1)
        return cls(slots, lambda obs: (hash_rows(obs if key is None else key(obs)) % slots).astype(jnp.int32))

    def init(self, obs: jax.Array) -> Visited:
        """Return empty tables for as many environments as `obs` has rows."""
        rows = self.slot(obs).shape
        zero = jnp.zeros(rows, jnp.int32)
        return Visited(jnp.zeros((*rows, self.slots), jnp.int32), zero, zero, zero)

    def arrive(
        self, state: Visited, obs: jax.Array, next_obs: jax.Array, done: jax.Array, valid: Any = None
    ) -> tuple[Visited, jax.Array]:
        """Return n(s′), int32 (B,), after counting s′; invalid rows are not counted and get 1."""
        counted = jnp.ones_like(done) if valid is None else valid
        here = self.slot(next_obs)
        start = jnp.where((state.steps == 0) & counted, self.slot(obs), state.start)
        where = jnp.arange(math.prod(here.shape)).reshape(here.shape) * self.slots + here
        flat = state.table.reshape(-1)
        found = flat[where]
        n = jnp.maximum(found - state.before, 0) + 1
        entry = jnp.where(counted, state.before + n, found)
        flat = flat.at[where].set(entry, mode="promise_in_bounds", unique_indices=True)
        ends, steps = done & counted, state.steps + counted
        table = flat.reshape(state.table.shape)
        before = jnp.where(ends, state.before + steps, state.before)
        return Visited(table, before, jnp.where(ends, 0, steps), start), jnp.where(counted, n + (here == start), 1)


def hash_rows(obs: jax.Array) -> jax.Array:
    """Return a 32-bit hash of each row, uint32 (B,).

    Each number is mixed, multiplied by an odd number of its own and summed mod 2³²; the sum is mixed again. Mixing
    first matters for floats, whose low bits are mostly 0.
    """
    rows = jnp.reshape(obs, (len(obs), -1))
    if jnp.issubdtype(rows.dtype, jnp.floating):
        words = jax.lax.bitcast_convert_type(rows.astype(jnp.float32) + 0.0, jnp.uint32)  # -0.0 + 0.0 is 0.0
    else:
        words = rows.astype(jnp.uint32)
    odd = np.random.default_rng(0).integers(2**31, size=words.shape[1], dtype=np.uint32) * 2 + 1
    return _mix((_mix(words) * odd).sum(axis=1, dtype=jnp.uint32))


def _mix(words: jax.Array) -> jax.Array:
    """Let every bit depend on every other (two rounds of multiply and shift)."""
    words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


def episodic_count(
    cells: int | None = None, alpha: float = ALPHA, *, root: bool = False, cell: Cell | None = None, slots: int = SLOTS
) -> PureBonus:
    """Pay for arriving in a cell, less with each visit in this episode.

        F_t = α / n(s_{t+1}),  or  α / √n(s_{t+1}) with root=True                          (tabular_im)

    A cell outside 0 … cells − 1 counts as the nearest, because nothing can be raised under `jit`. Without `cells`,
    observations of any shape (or what `cell` returns for them) are hashed to `slots` slots: after k different ones in
    an episode, a new one counts as visited with probability k/slots.

    >>> bonus = episodic_count(cells=3, alpha=1.0)
    >>> here, no = jnp.array([0]), jnp.array([False])
    >>> state = bonus.init(jax.random.key(0), here)
    >>> state, first = bonus.update(state, here, None, here + 1, no)
    >>> first.tolist(), bonus.update(state, here + 1, None, here, no)[1].tolist()
    ([1.0], [0.5])
    """
    visits = Visits.by_hash(slots, cell) if cells is None else Visits(cells, lambda obs: _cells(obs, cell, cells))
    F: Any = alpha
    return _divided(PureBonus(lambda key, obs: (), lambda state, *row: (state, F)), visits, root)


def episodic(bonus: PureBonus, *, root: bool = False, key: Key | None = None, slots: int = SLOTS) -> PureBonus:
    """Divide any pure bonus by the visits of the observation in this episode.

        F_t / n(s_{t+1}),  or  F_t / √n(s_{t+1}) with root=True

    Wrap bonuses that hardly change within an episode, such as `rnd`: see `payback.bonuses.episodic`. Observations, or
    what `key` returns for them, are hashed to `slots` slots per environment, as in `episodic_count`.

    >>> bonus = episodic(count(cells=3, alpha=1.0, root=False))
    >>> here, no = jnp.array([0]), jnp.array([False])
    >>> state = bonus.init(jax.random.key(0), here)
    >>> state, first = bonus.update(state, here, None, here + 1, no)
    >>> bonus.update(state, here + 1, None, here + 1, no)[1].tolist()
    [0.25]
    """
    return _divided(bonus, Visits.by_hash(slots, key), root)


class Episodic(NamedTuple):
    """The state of a bonus and the visits that divide it."""

    bonus: State
    visited: Visited


def _divided(bonus: PureBonus, visits: Visits, root: bool) -> PureBonus:
    def init(key: jax.Array, obs: jax.Array) -> Episodic:
        return Episodic(bonus.init(key, obs), visits.init(obs))

    def update(state: Episodic, obs: Any, action: Any, next_obs: Any, done: Any, valid: Any = None) -> tuple[Any, Any]:
        inner, F = bonus.update(state.bonus, obs, action, next_obs, done, valid)
        visited, n = visits.arrive(state.visited, obs, next_obs, done, valid)
        return Episodic(inner, visited), _pay(F, n, root, valid)

    def learn(state: Episodic, obs: Any, action: Any, next_obs: Any) -> tuple[Episodic, jax.Array]:
        assert bonus.learn is not None
        inner, loss = bonus.learn(state.bonus, obs, action, next_obs)
        return state._replace(bonus=inner), loss

    if bonus.for_actions is None:
        return PureBonus(init, update, None if bonus.learn is None else learn)
    made = bonus.for_actions
    return bonus._replace(for_actions=lambda *actions: _divided(made(*actions), visits, root))


class Scale(NamedTuple):
    """What `payback.bonuses.bonus.Scale` has measured, as three numbers."""

    seen: jax.Array  # valid rows
    square: jax.Array  # the mean of F² over the `measured` rows
    measured: jax.Array

    @classmethod
    def init(cls) -> Scale:
        """Return the scale before the first row."""
        return cls(jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))

    def of(self, F: jax.Array, *, warmup: int = 0, limit: float = LIMIT, first: float = 1.0) -> jax.Array:
        """Return F / √(mean of earlier F²), at most `limit`; 0 during the warm-up, `first` · F before any F > 0."""
        scaled = jnp.where(self.square > 0, F * jax.lax.rsqrt(jnp.maximum(self.square, 1e-30)), first * F)
        scaled = jnp.minimum(scaled, limit) if limit < math.inf else scaled
        return jnp.where(self.seen >= warmup, scaled, 0.0) if warmup else scaled

    def add(self, F: jax.Array, rows: jax.Array, warmup: int = 0) -> Scale:
        """Take F, which is 0 in invalid rows, into account from the next call on; `rows` are valid."""
        # F of observations that are not yet whitened on their own scale says nothing about later F.
        new = jnp.where(self.seen >= warmup // 2, rows, 0.0) if warmup else rows
        weight = new / jnp.maximum(self.measured + new, 1)
        square = self.square + weight * ((F * F).sum() / jnp.maximum(rows, 1) - self.square)
        return Scale(self.seen + rows, square, self.measured + new)


class Counted(NamedTuple):
    """Visits of all cells in all of training, (cells,), and the size of the bonus so far."""

    table: jax.Array
    scale: Scale


def count(
    cells: int, alpha: float = ALPHA, *, root: bool = True, cell: Cell | None = None, normalise: bool = True
) -> PureBonus:
    """Pay for arriving in a cell, less with each visit in all episodes of all environments.

        F_t = α / √n(s_{t+1}),  or  α / n(s_{t+1}) with root=False

    A cell outside 0 … cells − 1 counts as the nearest.

    >>> bonus = count(cells=2, alpha=1.0, root=False)
    >>> state = bonus.init(jax.random.key(0), jnp.array([0, 0]))
    >>> bonus.update(state, None, None, jnp.array([1, 1]), jnp.zeros(2, bool))[1].tolist()
    [0.5, 0.5]
    """

    def update(state: Counted, obs: Any, action: Any, next_obs: Any, done: Any, valid: Any = None) -> tuple[Any, Any]:
        here = _cells(next_obs, cell, cells)
        counts = jnp.ones(here.shape, jnp.int32) if valid is None else valid.astype(jnp.int32)
        table = state.table.at[here].add(counts)
        F = _pay(1.0, jnp.maximum(table[here], 1), root, valid)
        scale = state.scale.add(F, counts.sum().astype(jnp.float32))
        return Counted(table, scale), alpha * (state.scale.of(F) if normalise else F)

    return PureBonus(lambda key, obs: Counted(jnp.zeros(cells, jnp.int32), Scale.init()), update)


def _cells(obs: jax.Array, cell: Cell | None, cells: int) -> jax.Array:
    """Return the nearest existing cells: one outside the table would be counted nowhere and always pay α."""
    found = obs if cell is None else cell(obs)
    whole = found.astype(jnp.int32) if found.dtype == bool else found  # as an index, booleans would be a mask
    return jnp.clip(whole, 0, cells - 1).astype(jnp.int32)


def _pay(F: float | jax.Array, n: jax.Array, root: bool, valid: Any) -> jax.Array:
    visits = n.astype(jnp.float32)
    paid = F / (jnp.sqrt(visits) if root else visits)
    return paid if valid is None else jnp.where(valid, paid, 0.0)
