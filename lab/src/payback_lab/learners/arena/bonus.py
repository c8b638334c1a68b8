"""The seam between the learner and its bonus: a pure bonus of the library, and what it looks at.

    counts       α/n of the simulator's state (x, y, carrying) in this episode: privileged, the paper's
    views        α/n of the agent's own 7×7 view, hashed, in this episode
    rnd          α times the error of random network distillation on the view, as the finished runs have it
    rnd-views    RND, divided by the visits of the view in this episode
    e3b, noveld, icm   on the view, in their authors' formulas

The bonuses of the view share one scale: a first visit pays α, and learned bonuses are divided by their
own causal spread.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback.bonuses.jax import PureBonus, e3b, episodic, episodic_count, icm, noveld, rnd
from payback_lab.environments.minigrid.rules import ACTIONS
from payback_lab.environments.minigrid.view import image
from payback_lab.learners.ppo.rollout import Environment


class Bonus(NamedTuple):
    """Say what is paid for novelty, α included."""

    pure: PureBonus
    sees: Callable[[Any], jax.Array]
    """The environments' states → what the bonus looks at, one row per environment."""


def count_bonus(environment: Environment, alpha: float) -> Bonus:
    """Pay α / n(s_{t+1}) for the n-th visit of a place in this episode (`tabular_im`)."""
    return Bonus(episodic_count(environment.cells, alpha), environment.cell)


def rnd_bonus(environment: Environment, alpha: float) -> Bonus:
    """Pay α times the error of random network distillation on the agent's view; it learns over all of training."""
    # The finished runs were made without a warm-up and without a limit.
    return Bonus(rnd(alpha, warmup=0, clip=math.inf), _numbers(environment))


def of_view(make: Callable[[], PureBonus], *, tiles: bool = False) -> Callable[[Environment, float], Bonus]:
    """Return the maker of a bonus that sees the agent's view: MiniGrid's image as numbers, or its tile numbers."""

    def bonus(environment: Environment, alpha: float) -> Bonus:
        return Bonus(scaled(make(), alpha), environment.observe if tiles else _numbers(environment))

    return bonus


def scaled(pure: PureBonus, alpha: float) -> PureBonus:
    """Multiply a bonus by α, kept in its state, so that one compiled program serves every α."""

    def init(key: jax.Array, obs: jax.Array) -> tuple[jax.Array, Any]:
        return jnp.float32(alpha), pure.init(key, obs)

    def update(state: tuple[jax.Array, Any], *transition: Any) -> tuple[tuple[jax.Array, Any], jax.Array]:
        own, F = pure.update(state[1], *transition)
        return (state[0], own), state[0] * F

    return PureBonus(init, update)


def _numbers(environment: Environment) -> Callable[[Any], jax.Array]:
    def sees(state: Any) -> jax.Array:
        seen = image(environment.observe(state))
        return seen.reshape(len(seen), -1).astype(jnp.float32)

    return sees


BONUSES: dict[str, Callable[[Environment, float], Bonus]] = {
    "counts": count_bonus,
    "rnd": rnd_bonus,
    "views": of_view(lambda: episodic_count(alpha=1.0), tiles=True),
    "rnd-views": of_view(lambda: episodic(rnd(1.0))),
    "e3b": of_view(lambda: e3b(ACTIONS, 1.0, latent=32)),  # the default of the runs that are committed or planned
    "noveld": of_view(lambda: noveld(1.0)),
    "icm": of_view(lambda: icm(ACTIONS, 1.0)),
}
"""The bonuses by name."""
