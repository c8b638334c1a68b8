"""The bonus as a second advantage: GRM's signal without its noise (`grm-adv`), and a raw bonus with its own critic.

    Â_t = Â^E_t + w·A^I_t

Â^E is GAE(λ) of the task's reward alone, with its own critic. A^I is made of a bonus stream f and the discount γλ_I:

    grm-adv-D-L        f_t = (1 − λ_I^{K_t})·(F_t − F̄_t),   K_t = min(D, steps to the episode's last step)
    …-flat             f_t = (1 − λ_I^D)·(F_t − F̄_t): no fading near the end of an episode
    two-critics-L      f_t = F_t, the raw bonus
    …-centred          f_t = F_t − F̄_t
    …-lone             no second critic: A^I_t = f_t + γλ_I·A^I_{t+1}, 0 at an end and at the rollout's border
    …-back             taken back: w shrinks to 0 and stays there; w = 1 otherwise

With a second critic V_I, which learns the return of f at discount γλ_I, A^I is GAE(λ) of f. K_t is D where the rollout
shows no end. An episode's end, terminated or truncated, ends both streams.

What is guaranteed. Nothing while w > 0: by policy invariance the exact advantage of the GRM objective is A^E, so
E[A^I] is bias, |E A^I| ≤ (1 − λ_I^D)·max|F − F̄| / (1 − γλ_I) for `grm-adv`. From the update on at which w = 0 the
policy is trained on the task's advantage alone.

Readings. `-back` keeps w = 1 for five eighths of training, then shrinks it geometrically to 0.001 at seven eighths,
where it becomes 0. V_I is regressed on the unscaled return of f; its output enters A^I and is scaled by w with it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import payback
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import Estimates, alive_after, estimated
from payback_lab.learners.arena.heads import Heads
from payback_lab.learners.arena.method import Method, first_policy, no_state, unchanged
from payback_lab.learners.arena.rollout import Collected, Control
from payback_lab.learners.arena.schedule import shrink
from payback_lab.learners.ppo.update import advantages
from payback_lab.methods import AdvantageSide, parse_advantage_side

EXTRINSIC, INTRINSIC = range(2)
"""The critics."""
BACK_START, BACK_END, BACK_LEAST = 5 / 8, 7 / 8, 1e-3
"""`-back`: the shares of training at which w leaves 1 and becomes 0, and its value just before."""


class Discounts(NamedTuple):
    """Hold the two factors of an advantage estimate."""

    gamma: float
    gae_lambda: float


def advantage_side_method(name: str, config: ArenaPPO) -> Method:
    """Return a method of this module by its id; γλ_I = 1 with a second critic raises a ValueError."""
    form = parse_advantage_side(name)
    if form.critic and config.gamma * form.lam >= 1:
        raise ValueError(
            f"{name} has a second critic with discount γλ_I = 1, whose values have no bound; "
            "take λ_I below 1, a γ below 1, or -lone"
        )

    def control(state: tuple[()], z: jax.Array) -> Control:
        return first_policy(config.environments, 1.0 - form.centred, 1.0 * form.centred)

    def zeta(share: jax.Array) -> jax.Array:
        return 1 - shrink(share, BACK_START, BACK_END, BACK_LEAST) if form.taken_back else jnp.zeros(())

    return Method(
        init=no_state,
        zeta=zeta,
        control=control,
        estimates=partial(estimates, config, form),
        after=unchanged,
        heads=Heads(policies=1, values=2 if form.critic else 1),
        transform=payback.center() if form.centred else None,
    )


def estimates(config: ArenaPPO, form: AdvantageSide, state: tuple[()], z: jax.Array, collected: Collected) -> Estimates:
    """Add (1 − ζ)·A^I to the task's advantage; each critic is regressed on its own return."""
    extrinsic = estimated(config, collected, collected.reward, EXTRINSIC)
    value, f = collected.seen.value, signal(form, collected.events.shaped, collected.events.done)
    targets = (value[:, EXTRINSIC] + extrinsic,)
    if form.critic:
        discounts = Discounts(config.gamma * form.lam, config.gae_lambda)
        intrinsic = estimated(discounts, collected, f, INTRINSIC)
        targets = (*targets, value[:, INTRINSIC] + intrinsic)
    else:
        alive = alive_after(collected, first=True)
        intrinsic = advantages(Discounts(config.gamma * form.lam, 1.0), f, jnp.zeros_like(alive), alive)
    return Estimates((extrinsic + (1 - z) * intrinsic,), targets, None, f)


def signal(form: AdvantageSide, bonus: jax.Array, done: jax.Array) -> jax.Array:
    """Return f_t, (T, B), from F_t, or F_t − F̄_t where the method is centred."""
    if form.delay is None:
        return bonus
    age = ages(done, form.delay) if form.fades else form.delay
    return (1 - jnp.asarray(form.lam, bonus.dtype) ** age) * bonus


def ages(done: jax.Array, delay: int) -> jax.Array:
    """Return K_t = min(D, steps to the episode's last step), (T, B); D where the rollout shows no end.

    >>> ages(jnp.array([[False], [False], [True], [False]]), delay=30).ravel().tolist()
    [2, 1, 0, 30]
    """

    def back(later: jax.Array, ends: jax.Array) -> tuple[jax.Array, jax.Array]:
        now = jnp.where(ends, 0, jnp.minimum(later + 1, delay))
        return now, now

    return lax.scan(back, jnp.full(done.shape[1:], delay, jnp.int32), done.astype(bool), reverse=True)[1]
