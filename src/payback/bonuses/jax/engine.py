"""The pure engine of all network bonuses: read, pay, remember, learn. A bonus adds its networks, formula and loss."""

# JAX's array constructors take a dtype without a type, and jax.tree.map does not type what it passes to its function.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback.bonuses.bonus import CLIP, LIMIT, WARMUP, read_options
from payback.bonuses.jax.counts import Scale
from payback.core.validate import read_count

Weights = Any
Layers = list[tuple[jax.Array, jax.Array]]  # weights (inputs, outputs) and biases, layer by layer


def init_mlp(key: jax.Array, *sizes: int) -> Layers:
    """Draw orthogonal weights of gain √2 and set biases to 0."""
    draw = jax.nn.initializers.orthogonal(math.sqrt(2))
    keys = jax.random.split(key, len(sizes) - 1)
    return [(draw(k, (i, o), jnp.float32), jnp.zeros(o)) for k, (i, o) in zip(keys, pairwise(sizes), strict=True)]


def mlp(layers: Layers, x: jax.Array) -> jax.Array:
    """Apply the layers with ReLU between them."""
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


class Adam(NamedTuple):
    """The running moments of gradients (Kingma and Ba 2015)."""

    step: jax.Array
    first: Any
    second: Any


def adam(state: Adam, weights: Any, gradient: Any, rate: float) -> tuple[Adam, Any]:
    """Take one step, with Torch's defaults β = (0.9, 0.999), ε = 1e-8."""
    step = state.step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state.second, gradient)
    one, two = 1 - 0.9**step, 1 - 0.999**step
    weights = jax.tree.map(lambda w, m, v: w - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8), weights, first, second)
    return Adam(step, first, second), weights


class Rows(NamedTuple):
    """s, a (one-hot or as it is) and s′; None for what is not read, because Orbax saves no array without entries."""

    x: Any
    a: Any
    y: jax.Array
    valid: jax.Array


class Memory(NamedTuple):
    """What a bonus remembers of the current episodes, and the F that it pays by that."""

    init: Callable[[jax.Array], Any]  # obs (B, …) → state
    # (state, novelty, obs, next_obs, done, valid) → (state, F), F (B,); clears the episodes that end here.
    pay: Callable[..., tuple[Any, jax.Array]]


NO_MEMORY = Memory(lambda obs: (), lambda state, novelty, *rest: (state, novelty))


class NetworkState(NamedTuple):
    """Everything that a self-training bonus knows."""

    fixed: Weights
    trained: Weights
    optimiser: Adam
    mean: jax.Array
    var: jax.Array
    scale: Scale  # the size of F; `mean` and `var` are the statistics of its `seen` rows
    memory: Any  # of the current episodes
    kept: Rows | None  # (learn_every, B, …), to learn from; None where only the caller's `learn` does
    calls: jax.Array  # since it last learned
    key: jax.Array  # raw, because neither Orbax nor flax's `to_bytes` saves a typed key


@dataclass(frozen=True)
class PureNetworkBonus:
    """The networks, the formula and the loss of a bonus, with the options that all of them take."""

    build: Callable[[jax.Array, int], tuple[Weights, Weights]]  # (key, size of an observation) → (fixed, trained)
    novelty: Callable[[Weights, Weights, Rows], jax.Array]  # F before it is scaled, (B,), or what `memory.pay` takes
    losses: Callable[[Weights, Weights, Rows], jax.Array]  # of each row, (B,)
    memory: Memory = NO_MEMORY
    _: KW_ONLY
    actions: int | None = None  # how many discrete actions, or numbers of an action; None if the networks read none
    discrete: bool = True
    looks_back: bool = False  # whether the networks read s beside s′, as all that read actions do
    alpha: float
    rate: float
    normalise: bool = True
    warmup: int = WARMUP
    clip: float = LIMIT
    whiten: bool = True
    learn_every: int = 32
    share: float = 0.25
    batch_size: int = 256

    def __post_init__(self) -> None:
        read_options(self.learn_every, self.share, self.batch_size, self.warmup, self.clip)
        if self.actions is not None:
            read_count("actions", self.actions, 1)

    def init(self, key: jax.Array, obs: jax.Array) -> NetworkState:
        """Draw weights, for as many environments as `obs` has rows."""
        rows = _flat(obs)
        B, size = rows.shape
        key, draw = jax.random.split(_raw(key))
        fixed, trained = self.build(draw, size)
        action = jnp.zeros(B, jnp.int32) if self.discrete else jnp.zeros((B, self.actions or 0))
        row = self._read(rows, action, rows, jnp.zeros(B, bool))
        kept = jax.tree.map(lambda part: jnp.zeros((self.learn_every, *part.shape), part.dtype), row)
        zeros, mean, var = jax.tree.map(jnp.zeros_like, trained), jnp.zeros(size), jnp.ones(size)
        optimiser, calls = Adam(jnp.zeros((), jnp.int32), zeros, zeros), jnp.zeros((), jnp.int32)
        memory, kept = self.memory.init(obs), kept if self.learn_every else None
        return NetworkState(fixed, trained, optimiser, mean, var, Scale.init(), memory, kept, calls, key)

    def update(
        self, state: NetworkState, obs: Any, action: Any, next_obs: jax.Array, done: Any, valid: Any = None
    ) -> tuple[NetworkState, jax.Array]:
        """Return F by the statistics and weights of earlier calls, then learn if it is time."""
        rows = self._read(obs, action, next_obs, valid)
        novelty = self.novelty(state.fixed, state.trained, self._see(state, rows))
        memory, F = self.memory.pay(state.memory, novelty, obs, next_obs, done, rows.valid)
        scaled = state.scale.of(F, warmup=self.warmup, limit=self.clip, first=0.0) if self.normalise else F
        paid = jnp.where(rows.valid, self.alpha * scaled, 0.0)
        state = self._measure(state, jnp.where(rows.valid, F, 0.0), rows)._replace(memory=memory)
        if self.learn_every:
            kept = jax.tree.map(lambda every, one: every.at[state.calls].set(one), state.kept, rows)
            state = self._learn_if_it_is_time(state._replace(kept=kept, calls=state.calls + rows.valid.any()))
        return state, paid

    def learn(self, state: NetworkState, obs: Any, action: Any, next_obs: jax.Array) -> tuple[NetworkState, jax.Array]:
        """Take one gradient step on rows of the caller's choice, and return its loss."""
        return self._step(state, self._read(obs, action, next_obs, None))

    def _read(self, obs: Any, action: Any, next_obs: jax.Array, valid: Any) -> Rows:
        y = _flat(next_obs)
        x = _flat(obs) if self.looks_back or self.actions is not None else None
        a = None
        if self.actions is not None:
            if action is None:
                raise ValueError("this bonus needs the action of every step, got None: pass the actions taken")
            B, n = len(y), self.actions
            a = jax.nn.one_hot(action, n) if self.discrete else jnp.reshape(action, (B, n)).astype(jnp.float32)
        counted = jnp.ones(len(y), bool) if valid is None else valid
        # Invalid rows may hold anything: 0 keeps what is not finite out of the sums.
        x, a, y = jax.tree.map(lambda part: jnp.where(counted[:, None], part, 0.0), (x, a, y))
        return Rows(x, a, y, counted)

    def _see(self, state: NetworkState, rows: Rows) -> Rows:
        if not self.whiten:
            return rows
        scale = jax.lax.rsqrt(state.var + 1e-8)
        y, x = jax.tree.map(lambda s: jnp.clip((s - state.mean) * scale, -CLIP, CLIP), (rows.y, rows.x))
        return rows._replace(x=x, y=y)

    def _measure(self, state: NetworkState, F: jax.Array, rows: Rows) -> NetworkState:
        """Take rows into the statistics that the next call reads (Chan et al. 1979)."""
        n = rows.valid.sum().astype(jnp.float32)
        weight, least = rows.valid[:, None], jnp.maximum(n, 1)
        mean = rows.y.sum(0) / least
        var = jnp.where(weight, (rows.y - mean) ** 2, 0.0).sum(0) / least
        share = n / jnp.maximum(state.scale.seen + n, 1)
        delta = mean - state.mean
        spread = jnp.where(state.scale.seen > 0, (1 - share) * delta * delta, 0.0)
        mean, var = state.mean + share * delta, state.var + share * (var - state.var + spread)
        return state._replace(mean=mean, var=var, scale=state.scale.add(F, n, self.warmup))

    def _learn_if_it_is_time(self, state: NetworkState) -> NetworkState:
        def learn(trained: Weights, optimiser: Adam, key: jax.Array, calls: jax.Array) -> tuple[Any, ...]:
            after, (key, draw) = state._replace(trained=trained, optimiser=optimiser), jax.random.split(key)
            rows = jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), state.kept)
            N = len(rows.valid)
            drawn = jax.random.permutation(draw, N)[: max(1, round(self.share * N))]
            for begin in range(0, len(drawn), self.batch_size):
                part = drawn[begin : begin + self.batch_size]
                after, _ = self._step(after, jax.tree.map(lambda column, part=part: column[part], rows))
            return after.trained, after.optimiser, key, jnp.zeros_like(calls)

        # Only what learning changes passes through `cond`, because XLA copies it: a table of visits would be too much.
        part = state.trained, state.optimiser, state.key, state.calls
        trained, optimiser, key, calls = jax.lax.cond(state.calls == self.learn_every, learn, lambda *same: same, *part)
        return state._replace(trained=trained, optimiser=optimiser, key=key, calls=calls)

    def _step(self, state: NetworkState, rows: Rows) -> tuple[NetworkState, jax.Array]:
        seen, count = self._see(state, rows), rows.valid.sum()

        def loss(trained: Weights) -> jax.Array:
            return jnp.where(seen.valid, self.losses(state.fixed, trained, seen), 0.0).sum() / jnp.maximum(count, 1)

        value, gradient = jax.value_and_grad(loss)(state.trained)
        old = state.optimiser, state.trained
        new = adam(*old, gradient, self.rate)
        optimiser, trained = jax.tree.map(lambda one, other: jnp.where(count > 0, one, other), new, old)
        return state._replace(optimiser=optimiser, trained=trained), value


def _raw(key: jax.Array) -> jax.Array:
    """Return the words of a key, which draw the same; a key of another than the default generator stays as it is."""
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    default = jax.random.key_impl(key) == jax.random.key_impl(jax.random.key(0))
    return jax.random.key_data(key) if default else key


def _flat(obs: jax.Array) -> jax.Array:
    return jnp.reshape(obs, (len(obs), -1)).astype(jnp.float32)
