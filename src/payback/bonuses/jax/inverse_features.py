"""The Intrinsic Curiosity Module in JAX (Pathak, Agrawal, Efros, Darrell 2017)."""

# JAX's array constructors take a dtype and a sharding without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, Unpack

import jax
import jax.numpy as jnp

from payback.bonuses.jax.curiosity import Curiosity, Options, Rows, Weights
from payback.bonuses.jax.networks import init_mlp, mlp
from payback.bonuses.jax.pure import PureBonus
from payback.core.validate import read_count


def icm(
    actions: int,
    alpha: float = 0.05,
    *,
    discrete: bool = True,
    width: int = 256,
    latent: int = 32,
    rate: float = 3e-4,
    forward: float = 0.2,
    inverse: float = 0.8,
    **options: Unpack[Options],
) -> PureBonus:
    """Pay for transitions that a forward model predicts badly, in features of what actions influence.

        F_t = α ‖φ(s_{t+1}) − g(φ(s_t), a_t)‖²

    What `payback.bonuses.torch.ICM` computes for vectors, from the same weights. `actions` is their number, or with
    `discrete=False` how many numbers an action has.

    >>> bonus, obs = icm(actions=2, width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> state, F = jax.jit(bonus.update)(state, obs, jnp.array([0, 1, 0]), obs, jnp.zeros(3, bool))
    >>> F.shape
    (3,)
    """
    read_count("actions", actions, 1)

    def build(key: jax.Array, size: int) -> tuple[Weights, Weights]:
        one, two, three = jax.random.split(key, 3)
        trained = {
            "encoder": init_mlp(one, size, width, width, latent),
            "model": init_mlp(two, latent + actions, width, latent),
            "inverse": init_mlp(three, 2 * latent, width, actions),
        }
        return (), trained

    def losses(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
        return forward * 0.5 * surprise(trained, rows) + inverse * misread(trained, rows, discrete)

    return Curiosity(
        build=build,
        novelty=lambda fixed, trained, rows: surprise(trained, rows),
        losses=losses,
        encode=lambda action, B: encode(action, B, actions, discrete),
        looks_back=True,
        alpha=alpha,
        rate=rate,
        **options,
    ).bonus()


def surprise(trained: Weights, rows: Rows) -> jax.Array:
    """Return ‖φ(s′) − g(φ(s), a)‖², (B,)."""
    before, after = mlp(trained["encoder"], rows.x), mlp(trained["encoder"], rows.y)
    return ((mlp(trained["model"], jnp.concatenate([before, rows.a], axis=-1)) - after) ** 2).sum(axis=-1)


def misread(trained: Weights, rows: Rows, discrete: bool) -> jax.Array:
    """Return how badly a is told from φ(s) and φ(s′): cross-entropy, or the mean squared error of numbers, (B,)."""
    before, after = mlp(trained["encoder"], rows.x), mlp(trained["encoder"], rows.y)
    guess = mlp(trained["inverse"], jnp.concatenate([before, after], axis=-1))
    if discrete:
        return -(jax.nn.log_softmax(guess) * rows.a).sum(axis=-1)
    return ((guess - rows.a) ** 2).mean(axis=-1)


def encode(action: Any, B: int, actions: int, discrete: bool) -> jax.Array:
    """Return the actions as (B, actions) floats, one-hot if they are discrete; 0 for None."""
    if action is None:
        return jnp.zeros((B, actions))
    return jax.nn.one_hot(action, actions) if discrete else jnp.reshape(action, (B, actions)).astype(jnp.float32)
