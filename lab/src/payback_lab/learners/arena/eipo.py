"""EIPO (Chen et al. 2022): a policy π for R + F that must not be worse at the task than a policy π′ for R alone.

    max_π J_{E+I}(π)  subject to  J_E(π) = max_π′ J_E(π′),      with a multiplier α of either sign

One trunk, two policies, three critics V_E^π, V_I^π, V_E^π′, and two stages:

    max stage, π′ acts:  U = R + F + α·A_E^π′;                 π on U, π′ on A_E^π′; V_E^π′ is trained
    min stage, π acts:   U = (α − 1)R − F + A_E^π + A_I^π;     π′ on U, π on A_E^π + A_I^π; V_E^π and V_I^π are trained

Each by the clipped ratio to the policy that acted. U is centred for the update; A is not, as for all other methods. The
stage ends when the mean of U, before it is centred, is not above that of the rollout before. The max stage comes first.

    α ← α − 0.005·clip(mean of the clipped surrogate of (π/π′, A_E^π′), ±0.05)

at every minibatch of the last epoch of a max stage.

Readings. The released code tests U after it has been centred, so that it changes stage at almost every rollout: here
the mean before that, as the paper says. The released code also steps α the other way, by minus the surrogate; the
multiplier of the constraint must fall while π is better at the task than π′ and rise while it is worse, so the sign is
the Lagrangian's. Both policies have the entropy bonus; the code gives it to π′ alone. All rollouts count as steps.

What came of it. The advantages are not normalised and most are near 0, so the surrogate is far below its clip of 0.05
and α moves little from its start; a stage lasts about two rollouts. A stage's first rollout is compared with the same U
of the rollout before, in which the other policy acted.
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

MIXED, TASK = range(2)
"""The policies π and π′."""
EXTRINSIC, INTRINSIC, TASK_VALUE = range(3)
"""The critics V_E^π, V_I^π and V_E^π′."""
MAX, MIN = range(2)
"""The stages."""


class State(NamedTuple):
    """Hold the multiplier and the stage."""

    multiplier: jax.Array
    """α."""
    stage: jax.Array
    """int32, MAX or MIN."""
    last: jax.Array
    """(2,), the mean of each stage's U over the rollout before; −∞ before the first."""


class Utilities(NamedTuple):
    """Hold what both stages make of one rollout, (T, B) each."""

    of_max: jax.Array
    """U of the max stage."""
    of_min: jax.Array
    """U of the min stage."""
    extrinsic: jax.Array
    """A_E^π."""
    intrinsic: jax.Array
    """A_I^π."""
    task: jax.Array
    """A_E^π′."""


def eipo_method(name: str, config: ArenaPPO) -> Method:
    """Return EIPO."""

    def init() -> State:
        return State(jnp.float32(config.eipo_multiplier), jnp.int32(MAX), jnp.full(2, -jnp.inf))

    def control(state: State, z: jax.Array) -> Control:
        acting = jnp.where(state.stage == MAX, TASK, MIXED).astype(jnp.int32)
        one = jnp.ones(())
        return Control(jnp.full(config.environments, acting), one, 0 * one)

    return Method(
        init=init,
        zeta=lambda share: jnp.zeros(()),
        control=control,
        estimates=partial(estimates, config),
        after=partial(next_stage, config),
        heads=Heads(policies=2, values=3),
        step_multiplier=partial(step_multiplier, config),
        multiplier=lambda state: state.multiplier,
    )


def utilities(config: ArenaPPO, alpha: jax.Array, collected: Collected) -> Utilities:
    """Return both stages' U, not centred, and the advantages that they are made of."""
    reward, bonus = collected.reward, collected.events.bonus
    extrinsic = estimated(config, collected, reward, EXTRINSIC)
    intrinsic = estimated(config, collected, bonus, INTRINSIC)
    task = estimated(config, collected, reward, TASK_VALUE)
    of_max = reward + bonus + alpha * task
    of_min = (alpha - 1) * reward - bonus + extrinsic + intrinsic
    return Utilities(of_max, of_min, extrinsic, intrinsic, task)


def estimates(config: ArenaPPO, state: State, z: jax.Array, collected: Collected) -> Estimates:
    """Give each policy the advantage of the stage, and train the critics of the policy that acted."""
    found, is_max = utilities(config, state.multiplier, collected), state.stage == MAX
    mixed = jnp.where(is_max, found.of_max - found.of_max.mean(), found.extrinsic + found.intrinsic)
    task = jnp.where(is_max, found.task, found.of_min - found.of_min.mean())
    value = collected.seen.value
    own = (found.extrinsic, found.intrinsic, found.task)
    acted = jnp.broadcast_to(is_max, found.task.shape).astype(value.dtype)
    return Estimates(
        advantage=(mixed, task),
        target=tuple(value[:, n] + part for n, part in enumerate(own)),
        counts=(1 - acted, 1 - acted, acted),
        paid=collected.events.bonus,
    )


def step_multiplier(config: ArenaPPO, state: State, gain: jax.Array, is_last: jax.Array) -> State:
    """Step α by `gain`, the clipped surrogate of π/π′ on A_E^π′: down while π is better at the task than π′."""
    stepped = state.multiplier - config.eipo_rate * jnp.clip(gain, -config.eipo_clip, config.eipo_clip)
    return state._replace(multiplier=jnp.where(is_last & (state.stage == MAX), stepped, state.multiplier))


def next_stage(config: ArenaPPO, before: State, state: State, collected: Collected) -> State:
    """Change the stage if the mean of its U has not risen; U is that of the update, with the α before it."""
    found = utilities(config, before.multiplier, collected)
    means = jnp.stack([found.of_max.mean(), found.of_min.mean()])
    ends = means[state.stage] <= state.last[state.stage]
    return state._replace(stage=jnp.where(ends, 1 - state.stage, state.stage), last=means)
