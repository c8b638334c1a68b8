"""The pure machine that RND and ICM share: read, pay, remember, learn."""

# JAX's array constructors take a dtype without a type, and jax.tree.map does not type what it passes to its function.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, cast

import jax
import jax.numpy as jnp

from payback.bonuses.jax.networks import Adam, adam, init_adam
from payback.bonuses.jax.pure import PureBonus
from payback.core.validate import read_count

CLIP = 5.0
Weights = Any


class Rows(NamedTuple):
    """Transitions as the networks read them: s and s′ not yet whitened, a one-hot or as it is."""

    x: jax.Array
    a: jax.Array
    y: jax.Array
    valid: jax.Array


class CuriosityState(NamedTuple):
    """Everything that a self-training bonus knows."""

    fixed: Weights
    trained: Weights
    optimiser: Adam
    mean: jax.Array
    var: jax.Array
    square: jax.Array
    """The mean of F²."""
    seen: jax.Array
    """The valid rows of earlier calls, whose statistics these are."""
    kept: Rows
    """(learn_every, B, …): what will be learned from."""
    calls: jax.Array
    """Calls since it last learned."""
    key: jax.Array


class Options(TypedDict, total=False):
    """What every network bonus takes beside its own sizes, as in `payback.bonuses.torch`."""

    normalise: bool
    """Divide F by the root mean square of all earlier F. True."""
    whiten: bool
    """Whiten observations by the statistics of all earlier ones, clipped to ±5. True."""
    learn_every: int
    """Learn after so many calls, from the transitions of those calls; 0 leaves it to `learn`. 32."""
    share: float
    """The share of these transitions that is learned from, drawn at random. 0.25."""
    batch_size: int
    """At most so many transitions per gradient step. 256."""


@dataclass(frozen=True, kw_only=True)
class Curiosity:
    """The networks, the formula and the loss of a bonus, with the options that all of them take."""

    build: Callable[[jax.Array, int], tuple[Weights, Weights]]
    """(key, size of an observation) → (fixed, trained) weights."""
    novelty: Callable[[Weights, Weights, Rows], jax.Array]
    """(fixed, trained, rows) → F before it is scaled, (B,)."""
    losses: Callable[[Weights, Weights, Rows], jax.Array]
    """(fixed, trained, rows) → the loss of each row, (B,)."""
    encode: Callable[[Any, int], jax.Array]
    """(action, B) → (B, actions) floats; the action is None where only the shape is asked for."""
    looks_back: bool
    """Whether the networks read s as well as s′; otherwise s is not kept."""
    alpha: float
    rate: float
    normalise: bool = True
    whiten: bool = True
    learn_every: int = 32
    share: float = 0.25
    batch_size: int = 256

    def __post_init__(self) -> None:
        read_count("learn_every", self.learn_every, 0)
        read_count("batch_size", self.batch_size, 1)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must lie in (0, 1], got {self.share!r}")

    def bonus(self) -> PureBonus:
        """Return the pure functions."""
        return PureBonus(self.init, self.update, self.learn)

    def init(self, key: jax.Array, obs: jax.Array) -> CuriosityState:
        """Draw weights, for as many environments as `obs` has rows."""
        obs = _flat(obs)
        B, size = obs.shape
        key, draw = jax.random.split(key)
        fixed, trained = self.build(draw, size)
        row = self._read(obs, None, obs, jnp.zeros(B, bool))
        return CuriosityState(
            fixed=fixed,
            trained=trained,
            optimiser=init_adam(trained),
            mean=jnp.zeros(size),
            var=jnp.ones(size),
            square=jnp.zeros(()),
            seen=jnp.zeros(()),
            kept=jax.tree.map(lambda part: jnp.zeros((self.learn_every, *part.shape), part.dtype), row),
            calls=jnp.zeros((), jnp.int32),
            key=key,
        )

    def update(
        self, state: CuriosityState, obs: Any, action: Any, next_obs: jax.Array, done: Any, valid: Any = None
    ) -> tuple[CuriosityState, jax.Array]:
        """Return F by the statistics and weights of earlier calls, then learn if it is time."""
        rows = self._read(obs, action, next_obs, valid)
        F = self.novelty(state.fixed, state.trained, self._see(state, rows))
        scaled = jnp.where(state.square > 0, F * jax.lax.rsqrt(jnp.maximum(state.square, 1e-30)), 0.0)
        paid = jnp.where(rows.valid, self.alpha * (scaled if self.normalise else F), 0.0)
        state = _count(state, jnp.where(rows.valid, F, 0.0), rows)
        if self.learn_every:
            kept = jax.tree.map(lambda every, one: every.at[state.calls].set(one), state.kept, rows)
            state = state._replace(kept=kept, calls=state.calls + rows.valid.any())
            is_time = state.calls == self.learn_every
            state = cast(CuriosityState, jax.lax.cond(is_time, self._learn_kept, lambda same: same, state))
        return state, paid

    def learn(
        self, state: CuriosityState, obs: Any, action: Any, next_obs: jax.Array
    ) -> tuple[CuriosityState, jax.Array]:
        """Take one gradient step on rows of the caller's choice, and return its loss."""
        return self._step(state, self._read(obs, action, next_obs, None))

    def _read(self, obs: Any, action: Any, next_obs: jax.Array, valid: Any) -> Rows:
        y = _flat(next_obs)
        x = _flat(obs) if self.looks_back else jnp.zeros((len(y), 0))
        counted = jnp.ones(len(y), bool) if valid is None else valid
        # Invalid rows may hold anything: 0 keeps what is not finite out of the sums.
        x, a, y = (jnp.where(counted[:, None], part, 0.0) for part in (x, self.encode(action, len(y)), y))
        return Rows(x, a, y, counted)

    def _see(self, state: CuriosityState, rows: Rows) -> Rows:
        """Whiten s and s′ by the rows of earlier calls."""
        if not self.whiten:
            return rows
        scale = jax.lax.rsqrt(state.var + 1e-8)
        y = jnp.clip((rows.y - state.mean) * scale, -CLIP, CLIP)
        x = jnp.clip((rows.x - state.mean) * scale, -CLIP, CLIP) if self.looks_back else rows.x
        return rows._replace(x=x, y=y)

    def _learn_kept(self, state: CuriosityState) -> CuriosityState:
        key, draw = jax.random.split(state.key)
        N = state.kept.valid.size
        rows = jax.tree.map(lambda part: part.reshape(N, *part.shape[2:]), state.kept)
        drawn = jax.random.permutation(draw, N)[: max(1, round(self.share * N))]
        for begin in range(0, len(drawn), self.batch_size):
            part = drawn[begin : begin + self.batch_size]
            state, _ = self._step(state, jax.tree.map(lambda column, part=part: column[part], rows))
        return state._replace(key=key, calls=jnp.zeros_like(state.calls))

    def _step(self, state: CuriosityState, rows: Rows) -> tuple[CuriosityState, jax.Array]:
        """Take one gradient step on the valid rows, if there are any."""
        seen, count = self._see(state, rows), rows.valid.sum()

        def loss(trained: Weights) -> jax.Array:
            return jnp.where(seen.valid, self.losses(state.fixed, trained, seen), 0.0).sum() / jnp.maximum(count, 1)

        value, gradient = jax.value_and_grad(loss)(state.trained)
        old = state.optimiser, state.trained
        new = adam(*old, gradient, self.rate)
        optimiser, trained = jax.tree.map(lambda one, other: jnp.where(count > 0, one, other), new, old)
        return state._replace(optimiser=optimiser, trained=trained), value


def _count(state: CuriosityState, F: jax.Array, rows: Rows) -> CuriosityState:
    """Take rows into the statistics that the next call reads (Chan et al. 1979)."""
    n = rows.valid.sum().astype(jnp.float32)
    weight, least = rows.valid[:, None], jnp.maximum(n, 1)
    mean = rows.y.sum(0) / least
    var = jnp.where(weight, (rows.y - mean) ** 2, 0.0).sum(0) / least
    share = n / jnp.maximum(state.seen + n, 1)
    delta = mean - state.mean
    spread = jnp.where(state.seen > 0, (1 - share) * delta * delta, 0.0)
    return state._replace(
        mean=state.mean + share * delta,
        var=state.var + share * (var - state.var + spread),
        square=state.square + share * ((F * F).sum() / least - state.square),
        seen=state.seen + n,
    )


def _flat(obs: jax.Array) -> jax.Array:
    return jnp.reshape(obs, (len(obs), -1)).astype(jnp.float32)
