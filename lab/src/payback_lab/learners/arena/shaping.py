"""The methods with one policy and one critic: they differ in what the learner is paid for novelty.

    none     F' = 0
    im       F' = F, the raw bonus
    pies     F' = (1 − ζ)·F
    phased   F' = (1 − ζ)·F + ζ·GRM(F), GRM with D = 30
    others   F' = what the library makes of F: pbim, grm-D, …

The critic learns the value of R + F', as in the paper. A truncated episode counts as ended, so that loans are settled
there and nothing is bootstrapped.

Readings. PIES (Behboudian 2022) biases the choice of actions by a potential whose weight falls; here, as the arena
compares bonuses, the weight of the bonus falls. Phased-in repayment is ours: GRM is the scheme `grm-30`, so F − F̄ is
what is lent; from the first episode that begins at ζ = 1 loans cancel, and the bonus stays. Unless told otherwise ζ
rises from a quarter to five eighths of training, where it is 1; it is constant within a rollout.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import Estimates, estimated
from payback_lab.learners.arena.method import Method, first_policy, no_state, unchanged
from payback_lab.learners.arena.rollout import Collected, Control
from payback_lab.learners.arena.schedule import zeta
from payback_lab.methods import PHASED, transform_of

Weights = Callable[[jax.Array], tuple[jax.Array | float, jax.Array | float]]
"""ζ → the weights of F and of the transform of F."""

PAID: dict[str, tuple[Weights, str | None]] = {
    "none": (lambda z: (0.0, 0.0), None),
    "im": (lambda z: (1.0, 0.0), None),
    "pies": (lambda z: (1 - z, 0.0), None),
    "phased": (lambda z: (1 - z, z), PHASED),
}
"""Method → weights, and the scheme of the transform."""


def shaping_method(name: str, config: ArenaPPO) -> Method:
    """Return a method that pays R + F' to one policy and one critic."""
    weights, scheme = PAID.get(name, (lambda z: (0.0, 1.0), name))
    fades = name in ("pies", "phased")

    def control(state: tuple[()], z: jax.Array) -> Control:
        return first_policy(config.environments, *weights(z))

    return Method(
        init=no_state,
        zeta=partial(zeta, start=config.fade_start, end=config.fade_end) if fades else lambda share: jnp.zeros(()),
        control=control,
        estimates=partial(one_critic, config),
        after=unchanged,
        transform=None if scheme is None else transform_of(scheme, config.gamma),
    )


def one_critic(config: ArenaPPO, state: tuple[()], z: jax.Array, collected: Collected) -> Estimates:
    """Estimate the advantages of R + F' as it was paid."""
    advantage = estimated(config, collected, collected.seen.reward, critic=0)
    target = collected.seen.value[:, 0] + advantage
    return Estimates((advantage,), (target,), None, collected.events.shaped)
