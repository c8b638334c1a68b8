"""The fewest steps on the layouts on which the agents of the arena are evaluated, by breadth-first search.

`python -m payback_lab.experiments.arena.optimum` prints the table in `fewest.py`; it takes some minutes.
"""

import sys

import jax
import numpy as np

from payback_lab.environments.minigrid.layouts import POOL, Layouts, load_layouts, make_task
from payback_lab.environments.minigrid.optimum import fewest_steps
from payback_lab.experiments.arena.fewest import FEWEST
from payback_lab.experiments.arena.training import EVALUATION, WATCHING
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.play import starts

BATCH = 40
"""Layouts that are searched side by side: more would not fit into memory where objects can be moved."""


def evaluated_layouts(task: str, pool: Layouts, episodes: int = EVALUATION) -> Layouts:
    """Return the layouts of the episodes that every final evaluation on a task plays, in their order."""
    begun = starts(minigrid_environment(make_task(task), pool), jax.random.key(WATCHING), episodes)
    return Layouts(*(np.asarray(getattr(begun, field)) for field in Layouts._fields))


def optimum(task: str, max_steps: int | None = None, episodes: int = EVALUATION) -> float:
    """Return the mean of the fewest steps on these layouts, one that cannot be solved in time counting as the limit."""
    described = make_task(task, max_steps=max_steps)
    layouts = evaluated_layouts(task, load_layouts(task, POOL), episodes)
    batches = (Layouts(*(field[n : n + BATCH] for field in layouts)) for n in range(0, episodes, BATCH))
    fewest = np.concatenate([fewest_steps(described, batch) for batch in batches])
    return float(np.where(fewest < 0, described.max_steps, fewest).mean())


if __name__ == "__main__":
    for name in sys.argv[1:] or FEWEST:
        print(f'    "{name}": {optimum(name):.3f},  # limit {make_task(name).max_steps}', flush=True)
