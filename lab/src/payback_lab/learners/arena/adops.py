"""ADOPS and ADOPES (Forbes et al. 2025): change the bonus only where it would change which action is preferred.

    Ω = V_E − Q_E + V_I − γV_I(s') − F,   Q_E = R + γV_E(s')
    F₂ = min(0, Ω − ε) where Q_E < V_E, else max(0, Ω);   F' = F + ζF₂

ADOPS has ζ = 1 from the start, ADOPES lets it rise from 0 to 1. So an action that is worse for the task than the policy
is at least ε worse in all, and one that is not is not worse in all.

Readings. There is no official code; the formula is from public notes and a co-author's code. Two critics, V_E of R and
V_I of F', with one γ; both are read as they were when the rollout was collected. The policy's advantage is GAE of R
plus GAE of F'; V_I is regressed on returns that include F₂. The co-author's code takes V_I of the next episode at an
episode's last step: here both V_E(s') and V_I(s') count as 0 there. With the notes' ε = 1e-7, which the arena has, an
action that is worse for the task is worth all but the same, so that the entropy bonus may decide between the two: on
the tests' small problem ADOPS takes the optimal action about half of the time, and nearly always with ε = 0.02.
"""

from functools import partial

import jax
import jax.numpy as jnp

from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import Estimates, alive_after, estimated, value_after
from payback_lab.learners.arena.heads import Heads
from payback_lab.learners.arena.method import Method, first_policy, no_state, unchanged
from payback_lab.learners.arena.preference import approach_preference, keep_preference
from payback_lab.learners.arena.rollout import Collected, Control
from payback_lab.learners.arena.schedule import zeta

EXTRINSIC, INTRINSIC = range(2)
"""The critics."""


def adops_method(name: str, config: ArenaPPO) -> Method:
    """Return ADOPS, or ADOPES, whose ζ rises."""

    def control(state: tuple[()], z: jax.Array) -> Control:
        return first_policy(config.environments, of_bonus=1.0)

    rises = partial(zeta, start=config.adopes_start, end=config.adopes_end)
    return Method(
        init=no_state,
        zeta=rises if name == "adopes" else lambda share: jnp.ones(()),
        control=control,
        estimates=partial(two_critics, config),
        after=unchanged,
        heads=Heads(policies=1, values=2),
    )


def two_critics(config: ArenaPPO, state: tuple[()], z: jax.Array, collected: Collected) -> Estimates:
    """Estimate the advantages of R and of F' = F + ζF₂ by a critic each."""
    paid = adjusted(config, z, collected)
    extrinsic = estimated(config, collected, collected.reward, EXTRINSIC)
    intrinsic = estimated(config, collected, paid, INTRINSIC)
    value = collected.seen.value
    targets = (value[:, EXTRINSIC] + extrinsic, value[:, INTRINSIC] + intrinsic)
    return Estimates((extrinsic + intrinsic,), targets, None, paid)


def adjusted(config: ArenaPPO, z: jax.Array, collected: Collected) -> jax.Array:
    """Return F' = F + ζF₂ of every step, (T, B)."""
    alive, value, bonus = alive_after(collected), collected.seen.value, collected.events.bonus
    q = collected.reward + config.gamma * value_after(collected, EXTRINSIC) * alive
    kept = keep_preference(
        bonus,
        q,
        value[:, EXTRINSIC],
        value[:, INTRINSIC],
        value_after(collected, INTRINSIC),
        alive == 0,
        config.gamma,
        config.adops_epsilon,
    )
    return approach_preference(bonus, kept, z)
