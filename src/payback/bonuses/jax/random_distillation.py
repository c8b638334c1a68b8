"""Random Network Distillation in JAX (Burda, Edwards, Storkey, Klimov 2018)."""

# JAX's array constructors take a dtype and a sharding without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Unpack

import jax
import jax.numpy as jnp

from payback.bonuses.jax.curiosity import Curiosity, Options, Rows, Weights
from payback.bonuses.jax.networks import init_mlp, mlp
from payback.bonuses.jax.pure import PureBonus


def rnd(
    alpha: float = 0.05, *, width: int = 256, latent: int = 128, rate: float = 1e-3, **options: Unpack[Options]
) -> PureBonus:
    """Pay for observations whose random features a predictor has not learned yet.

        F_t = α ‖f̂(s_{t+1}) − f(s_{t+1})‖²

    What `payback.bonuses.torch.RND` computes for vectors, from the same weights; images are flattened. Where rows are
    invalid it draws from all rows and gives the invalid ones no weight.

    >>> bonus, obs = rnd(width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> state, F = jax.jit(bonus.update)(state, obs, None, obs, jnp.zeros(3, bool))
    >>> F.shape
    (3,)
    """

    def build(key: jax.Array, size: int) -> tuple[Weights, Weights]:
        one, two = jax.random.split(key)
        return init_mlp(one, size, width, latent), init_mlp(two, size, width, width, width, latent)

    return Curiosity(
        build=build,
        novelty=error,
        losses=lambda fixed, trained, rows: error(fixed, trained, rows) / latent,
        encode=lambda action, B: jnp.zeros((B, 0)),
        looks_back=False,
        alpha=alpha,
        rate=rate,
        **options,
    ).bonus()


def error(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    """Return ‖f̂(s′) − f(s′)‖², (B,)."""
    return ((mlp(trained, rows.y) - mlp(fixed, rows.y)) ** 2).sum(axis=-1)
