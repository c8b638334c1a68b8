"""The fewest steps on the layouts on which the agents of the arena are evaluated, by breadth-first search.

`python -m payback_lab.experiments.arena.optimum` prints the table in `fewest.py`; it takes some minutes for each task.
A relaxed plan that solves its layout in the engine is a shortest one; the other layouts are searched exactly, or keep
the lower bound of the relaxed search where the task is too large.
"""

import sys

import jax
import numpy as np

from payback_lab.environments.minigrid.layouts import Layouts, load_layouts, make_task
from payback_lab.environments.minigrid.optimum import fewest_steps, shortest_plans, solves
from payback_lab.environments.minigrid.tasks import entry_of
from payback_lab.experiments.arena.fewest import FEWEST, SAMPLED
from payback_lab.experiments.arena.training import EVALUATION, WATCHING
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.play import starts

BATCH = 40
"""Layouts that are searched side by side: more would not fit into memory where objects can be moved."""


def evaluated_layouts(task: str, pool: Layouts, episodes: int = EVALUATION) -> Layouts:
    """Return the layouts of the episodes that every final evaluation on a task plays, in their order."""
    begun = starts(minigrid_environment(make_task(task), pool), jax.random.key(WATCHING), episodes)
    return Layouts(*(np.asarray(getattr(begun, field)) for field in Layouts._fields))


def optimum(
    task: str, max_steps: int | None = None, episodes: int = EVALUATION, first: int | None = None
) -> tuple[float, int]:
    """Return the mean of the fewest steps on these layouts, and for how many of them it is a lower bound only.

    A layout that cannot be solved in time counts as the limit. `first` restricts the search to the first layouts.
    """
    described = make_task(task, max_steps=max_steps)
    layouts = Layouts(*(field[:first] for field in evaluated_layouts(task, load_layouts(task), episodes)))
    steps, bounds = [], 0
    for n in range(0, len(layouts.x), BATCH):
        batch = Layouts(*(field[n : n + BATCH] for field in layouts))
        plans = shortest_plans(described, batch, relaxed=True)
        fewest = np.array([len(plan) or described.max_steps for plan in plans])
        failed = np.flatnonzero(~solves(described, batch, plans) & np.array([len(plan) > 0 for plan in plans]))
        if entry_of(task).large:
            bounds += len(failed)
        elif len(failed):
            exact = fewest_steps(described, Layouts(*(field[failed] for field in batch)))
            fewest[failed] = np.where(exact < 0, described.max_steps, exact)
        steps.append(fewest)
    return float(np.concatenate(steps).mean()), bounds


if __name__ == "__main__":
    for name in sys.argv[1:] or FEWEST:
        mean, bounds = optimum(name, first=SAMPLED.get(name))
        print(f'    "{name}": {mean:.3f},  # limit {make_task(name).max_steps}, {bounds} bounds', flush=True)
