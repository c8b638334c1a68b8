"""MiniGrid tasks as the learner sees them."""

from functools import partial

import jax

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.layouts import Layouts
from payback_lab.environments.minigrid.tasks import Task
from payback_lab.environments.minigrid.view import observe
from payback_lab.learners.ppo.rollout import Environment


def minigrid_environment(task: Task, layouts: Layouts) -> Environment:
    """Describe a task to the learner.

    `terminated` means solved: an end in lava is reported as `truncated`, like the time limit, because the record
    counts the episodes that were not truncated as solved. The learner bootstraps over neither.
    """

    def step(state: rules.State, action: jax.Array) -> tuple[rules.State, jax.Array, jax.Array, jax.Array]:
        after, reward, terminated, truncated = rules.step(task, state, action)
        solved = reward > 0
        return after, reward, solved, truncated | (terminated & ~solved)

    return Environment(
        draws=rules.DRAWS,
        start=partial(rules.start, task, layouts),
        step=step,
        observe=partial(observe, task),
        cells=task.places,
        cell=partial(rules.place, task),
    )
