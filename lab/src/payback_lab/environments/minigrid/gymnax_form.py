"""MiniGrid tasks in gymnax's form, for training loops that are written for it; gymnax itself is not needed.

    env = MiniGrid("KeyCorridorS3R1")
    obs, state = env.reset(key)
    obs, state, reward, terminated, truncated, info = env.step(key, state, action)

As in gymnax 1.0, `step` returns six values and resets by itself: `obs` and `state` are then the next episode's, and
`info["final_observation"]` is what the ended one saw last. Vectorise with `jax.vmap`.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.layouts import Layouts, load_layouts, make_task, refuse_layouts
from payback_lab.environments.minigrid.tasks import Payment
from payback_lab.environments.minigrid.view import VIEW, image, observe


def image_space() -> spaces.Box:
    """Return the package's space of the 7×7 view: object, colour and state of each cell."""
    return spaces.Box(0, 255, (VIEW, VIEW, 3), np.uint8)


class MiniGrid:
    """One task; `layouts` is the pool of its starts, drawn once and kept in a cache unless one is given."""

    num_actions = rules.ACTIONS

    def __init__(
        self,
        name: str,
        payment: Payment = "minigrid",
        max_steps: int | None = None,
        layouts: Layouts | None = None,
        cache: Path | None = None,
    ) -> None:
        self.task = make_task(name, payment, max_steps)
        self.layouts = load_layouts(name, folder=cache) if layouts is None else layouts
        refuse_layouts(self.task, self.layouts)
        self.name = self.task.name

    @property
    def default_params(self) -> None:
        """Return None: a task has no parameters that change while it is trained on."""
        return None

    def observation_space(self, params: Any = None) -> spaces.Box:
        """Return the space of MiniGrid's image, as the package gives it."""
        return image_space()

    def action_space(self, params: Any = None) -> spaces.Discrete:
        """Return the seven actions."""
        return spaces.Discrete(rules.ACTIONS)

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[jax.Array, rules.State]:
        """Start an episode; the observation is MiniGrid's image, uint8 (7, 7, 3)."""
        state = rules.start(self.task, self.layouts, jax.random.uniform(key, (rules.DRAWS,)))
        return image(observe(self.task, state)), state

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: rules.State, action: jax.Array, params: Any = None) -> tuple[Any, ...]:
        """Take an action; where that ends the episode, begin the next one."""
        after, reward, terminated, truncated = rules.step(self.task, state, jnp.asarray(action))
        _, started = self.reset(key)
        state = jax.tree.map(partial(jnp.where, terminated | truncated), started, after)
        # Each is observed by itself, because a loop that does not read the final observation need not compute it.
        obs, last = (image(observe(self.task, seen)) for seen in (state, after))
        info = {"terminated": terminated, "truncated": truncated, "final_observation": last}
        return obs, state, reward, terminated, truncated, info
