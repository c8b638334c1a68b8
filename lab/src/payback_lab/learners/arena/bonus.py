"""The seam between the learner and its bonus: a pure bonus of the library, and what it looks at."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from payback.bonuses.jax import PureBonus, episodic_count, rnd
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

    def sees(state: Any) -> jax.Array:
        seen = image(environment.observe(state))
        return seen.reshape(len(seen), -1).astype(jnp.float32)

    return Bonus(rnd(alpha), sees)


BONUSES: dict[str, Callable[[Environment, float], Bonus]] = {"counts": count_bonus, "rnd": rnd_bonus}
"""The bonuses by name."""
