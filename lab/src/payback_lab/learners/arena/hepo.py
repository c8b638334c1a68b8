"""HEPO (Lee et al. 2024): a policy π for R and F that must not be worse at the task than a policy π_F for F alone.

    max_π J(π) + λJ_F(π)  subject to  J(π) ≥ J(π_F),      with a multiplier α ≥ 0
    A^π = A_E + λ/(1 + α)·A_I,      A^{π_F} = A_I

One trunk, two policies, an extrinsic and an intrinsic critic for each. π acts in the first half of the environments,
π_F in the second; each policy learns from all of them by the clipped ratio to the policy that acted, with the
advantages of that policy's critics; a critic learns from its own policy's steps alone.

    gradient of α = mean over π's steps of A_E^{π_F} − mean over π_F's steps of A_E^π   ≈ 2(J(π) − J(π_F))

the median of the last eight, clipped to ±1, by Adam with 0.01: α rises, and the bonus weighs less, while π is worse.

Readings. The formula and Adam's numbers are those of the released code; it normalises the advantages and trains two
networks, here nothing is normalised, as for all other methods, and the trunk is one. α starts at 0, where the bonus has
its own weight λ = 1, and stays at or above it, because the multiplier of a constraint J(π) ≥ J(π_F) is never negative:
a constraint that holds is left out, it does not reward being broken. The released code lets α fall to −0.99, where the
bonus weighs 100 times as much; docs/predictions.md says what came of it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import Estimates, estimated
from payback_lab.learners.arena.heads import Heads
from payback_lab.learners.arena.method import Method
from payback_lab.learners.arena.rollout import Collected, Control

LEAST = 0.0
"""The smallest multiplier: the bonus weighs at most λ."""
LARGEST_GRADIENT = 1.0
RECENT = 8
"""The multiplier's gradient is the median of so many."""


class State(NamedTuple):
    """Hold the multiplier with Adam's moments, and its latest gradients."""

    multiplier: jax.Array
    """α."""
    mean: jax.Array
    square: jax.Array
    taken: jax.Array
    """Adam steps taken, a float."""
    recent: jax.Array
    """(8,), oldest first; NaN where there is none yet."""


class Halves(NamedTuple):
    """Hold the advantages of every critic on every step, (T, B) each."""

    extrinsic: tuple[jax.Array, jax.Array]
    """By V_E of π, and of π_F."""
    intrinsic: tuple[jax.Array, jax.Array]


def hepo_method(name: str, config: ArenaPPO) -> Method:
    """Return HEPO."""
    if config.environments % 2:
        raise ValueError(f"environments is {config.environments}; HEPO's two policies act in half of them each")

    def init() -> State:
        zero = jnp.zeros(())
        return State(zero, zero, zero, zero, jnp.full(RECENT, jnp.nan))

    def control(state: State, z: jax.Array) -> Control:
        acting = jnp.arange(config.environments) >= config.environments // 2
        return Control(acting.astype(jnp.int32), jnp.ones(()), jnp.zeros(()))

    return Method(
        init=init,
        zeta=lambda share: jnp.zeros(()),
        control=control,
        estimates=partial(estimates, config),
        after=partial(next_multiplier, config),
        heads=Heads(policies=2, values=4),
        multiplier=lambda state: state.multiplier,
    )


def halves(config: ArenaPPO, collected: Collected) -> Halves:
    """Estimate the advantages; the critics are V_E and V_I of π, then those of π_F."""
    reward, bonus = collected.reward, collected.events.bonus
    by_critic = [estimated(config, collected, (reward, bonus)[n % 2], n) for n in range(4)]
    return Halves((by_critic[0], by_critic[2]), (by_critic[1], by_critic[3]))


def estimates(config: ArenaPPO, state: State, z: jax.Array, collected: Collected) -> Estimates:
    """Give every step the advantages of the critics of the policy that took it."""
    found, own = halves(config, collected), collected.acting == 0
    extrinsic, intrinsic = (jnp.where(own, *part) for part in found)
    value = collected.seen.value
    ordered = (found.extrinsic[0], found.intrinsic[0], found.extrinsic[1], found.intrinsic[1])
    first = jnp.broadcast_to(own, extrinsic.shape).astype(value.dtype)
    return Estimates(
        advantage=(extrinsic + config.hepo_weight / (1 + state.multiplier) * intrinsic, intrinsic),
        target=tuple(value[:, n] + part for n, part in enumerate(ordered)),
        counts=(first, first, 1 - first, 1 - first),
        paid=collected.events.bonus,
    )


def gradient(config: ArenaPPO, collected: Collected) -> jax.Array:
    """Return how much better π is at the task than π_F, by the advantages of each one's critic on the other's steps."""
    by_mixed, by_bonus = halves(config, collected).extrinsic
    half = config.environments // 2
    return by_bonus[:, :half].mean() - by_mixed[:, half:].mean()


def next_multiplier(config: ArenaPPO, before: State, state: State, collected: Collected) -> State:
    """Take one Adam step (β = 0.9, 0.999) down the median of the latest gradients."""
    recent = jnp.concatenate([state.recent[1:], gradient(config, collected)[None]])
    slope = jnp.clip(jnp.nanmedian(recent), -LARGEST_GRADIENT, LARGEST_GRADIENT)
    taken = state.taken + 1
    mean, square = 0.9 * state.mean + 0.1 * slope, 0.999 * state.square + 0.001 * slope**2
    # 1 − βⁿ by expm1, because in float32 the plain difference is wrong in the fifth digit.
    unbiased = mean / -jnp.expm1(taken * jnp.log(0.9))
    spread = jnp.sqrt(square / -jnp.expm1(taken * jnp.log(0.999))) + 1e-8
    multiplier = jnp.maximum(state.multiplier - config.hepo_rate * unbiased / spread, LEAST)
    return State(multiplier, mean, square, taken, recent)
