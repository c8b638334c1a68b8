"""MiniGrid tasks as a Gymnasium vector environment: one jitted step for all environments, reset on the device.

    envs = make_vec("MiniGrid-DoorKey-8x8-v0", 16)
    obs, info = envs.reset(seed=0)
    obs, reward, terminated, truncated, info = envs.step(actions)

Observations are the package's image, as with its ImgObsWrapper; rewards are the package's, rounded to float32. Where
an episode ends, the next one starts in the same step (`AutoresetMode.SAME_STEP`), and `info["final_obs"]` has the last
observation of the ended one. `sb3_form.make_sb3_vec` returns the same as a VecEnv of Stable-Baselines3.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jax import lax

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.gymnax_form import image_space
from payback_lab.environments.minigrid.layouts import Layouts, load_layouts, make_task, refuse_layouts
from payback_lab.environments.minigrid.tasks import Payment, Task
from payback_lab.environments.minigrid.view import image, observe


class Stepped(NamedTuple):
    """What B environments show after a step, as NumPy arrays."""

    obs: np.ndarray
    """uint8 (B, …); where an episode ended, the first observation of the next one."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    last: np.ndarray
    """The observation before any reset."""


class Lanes:
    """B environments of one task, stepped together on the device; the forms below and in `sb3_form` read them.

    `flat` returns each image as one vector of 147 numbers, as Gymnasium's FlattenObservation does.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        *,
        payment: Payment = "minigrid",
        max_steps: int | None = None,
        layouts: Layouts | None = None,
        cache: Path | None = None,
        flat: bool = False,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self.task, self.num_envs = make_task(name, payment, max_steps), num_envs
        pool = load_layouts(name, folder=cache) if layouts is None else layouts
        refuse_layouts(self.task, pool)
        self._layouts = Layouts(*map(jnp.asarray, pool))  # type: ignore[arg-type]
        space = image_space()
        self.shape = (math.prod(space.shape),) if flat else space.shape
        self.observation_space = gym.spaces.Box(0, 255, self.shape, np.uint8)
        self.action_space = gym.spaces.Discrete(rules.ACTIONS)
        self.state: rules.State | None = None
        """The states of all environments, None before the first reset."""

    def reset(self, seed: int | Sequence[int] | None = None) -> np.ndarray:
        """Start an episode in every environment; the same seed starts on the same layouts, None on any."""
        if seed is not None or self.state is None:
            self._key = jax.random.key(np.random.SeedSequence(seed).generate_state(1)[0])
        self._key, self.state, obs = _begin(self.task, self.num_envs, self._layouts, self._key)
        return self._rows(np.array(obs))

    def step(self, actions: Any) -> Stepped:
        """Take one action in each environment."""
        if self.state is None:
            raise RuntimeError("call reset before the first step")
        taken = np.asarray(actions)
        if taken.shape != (self.num_envs,) or taken.dtype.kind not in "iu" or (taken < 0).any() or (taken > 6).any():
            raise ValueError(f"actions must be {self.num_envs} whole numbers from 0 to 6, got {taken.tolist()}")
        self._key, self.state, shown = _step(self.task, self._layouts, self._key, self.state, taken.astype(np.int32))
        # Copies, because learners write into what they get.
        obs, reward, terminated, truncated, last = (np.array(part) for part in shown)
        return Stepped(self._rows(obs), reward, terminated, truncated, self._rows(last))

    def _rows(self, images: np.ndarray) -> np.ndarray:
        return images.reshape(self.num_envs, *self.shape)


@partial(jax.jit, static_argnums=(0, 1))
def _begin(task: Task, num_envs: int, layouts: Layouts, key: jax.Array) -> tuple[jax.Array, rules.State, jax.Array]:
    key, draw = jax.random.split(key)
    state = rules.start(task, layouts, jax.random.uniform(draw, (rules.DRAWS, num_envs)))
    return key, state, image(observe(task, state))


@partial(jax.jit, static_argnums=0)
def _step(
    task: Task, layouts: Layouts, key: jax.Array, state: rules.State, action: jax.Array
) -> tuple[jax.Array, rules.State, tuple[jax.Array, ...]]:
    key, draw = jax.random.split(key)
    after, reward, terminated, truncated = rules.step(task, state, action)
    last, done = image(observe(task, after)), terminated | truncated

    def restart() -> tuple[rules.State, jax.Array]:
        started = rules.start(task, layouts, jax.random.uniform(draw, (rules.DRAWS, len(action))))
        at_ends = lambda new, old: jnp.where(done.reshape(-1, *[1] * (old.ndim - 1)), new, old)  # noqa: E731
        fresh = jax.tree.map(at_ends, started, after)
        return fresh, image(observe(task, fresh))

    state, obs = lax.cond(done.any(), restart, lambda: (after, last))  # most steps end no episode
    return key, state, (obs, reward, terminated, truncated, last)


class MiniGridVectorEnv(VectorEnv):
    """The lanes as Gymnasium's vector environment; `make_vec` makes it."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  as Gymnasium declares it

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.num_envs = lanes, lanes.num_envs
        self.single_observation_space, self.single_action_space = lanes.observation_space, lanes.action_space
        self.observation_space = batch_space(lanes.observation_space, lanes.num_envs)
        self.action_space = batch_space(lanes.action_space, lanes.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every environment."""
        return self.lanes.reset(seed), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action in each environment."""
        obs, reward, terminated, truncated, last = self.lanes.step(actions)
        info: dict[str, Any] = {}
        if (done := terminated | truncated).any():
            final = np.full(self.num_envs, None, dtype=object)
            for k in np.flatnonzero(done):
                final[k] = last[k]
            info = {"final_obs": final, "_final_obs": done, "final_info": {}, "_final_info": done.copy()}
        return obs, reward, terminated, truncated, info


def make_vec(name: str, num_envs: int, **options: Any) -> MiniGridVectorEnv:
    """Return a task, under its name here or the package's, as a Gymnasium vector environment; `options` are `Lanes`'.

    >>> from payback_lab.environments.minigrid.layouts import draw_layouts
    >>> envs = make_vec("MiniGrid-Empty-5x5-v0", 4, layouts=draw_layouts("Empty-5x5", 1))
    >>> envs.reset(seed=0)[0].shape, envs.single_action_space
    ((4, 7, 7, 3), Discrete(7))
    """
    return MiniGridVectorEnv(Lanes(name, num_envs, **options))
