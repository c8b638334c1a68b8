"""Episodes of the `minigrid` package, written down so that the engine can be compared with them.

A third of the episodes act at random, a third prefer what changes something (toggle before a door, pick up before a
key), and a third follow a shortest plan, so that the ends of solved episodes are compared too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.layouts import POOL, Layouts, package_env, pool_of
from payback_lab.environments.minigrid.tasks import Task

COLOUR_NAMES = ("red", "green", "blue", "purple", "yellow", "grey")
"""In the order of MiniGrid's numbers."""
LONG = 1024
"""Actions after which an episode is left, because tasks with long limits would have few; a third are played on."""


class Log(NamedTuple):
    """Hold N rows, episode after episode: one for its start, where nothing is done, and one for each action."""

    first: np.ndarray
    """bool (N,), whether this is the start of an episode."""
    draw: np.ndarray
    """float32 (N,), the uniform number that chose the layout and a noisy TV's seed."""
    action: np.ndarray
    """int32 (N,)."""
    image: np.ndarray
    """uint8 (N, 7, 7, 3), after the action."""
    direction: np.ndarray
    """int32 (N,), the other part of MiniGrid's observation, after the action."""
    reward: np.ndarray
    """float32 (N,)."""
    terminated: np.ndarray
    truncated: np.ndarray


def record(
    task: Task, layouts: Layouts, plans: Mapping[int, Sequence[int]], actions: int, random: np.random.Generator
) -> Log:
    """Play whole episodes until at least so many actions are taken; layout n must be the package's of seed n."""
    begin, rows, planned = _starts(task), [], list(plans)
    pool = len(layouts.x)
    episodes = taken = 0
    while taken < actions:
        manner = episodes % 3
        n = planned[episodes // 3 % len(planned)] if manner == 2 else int(random.integers(pool))
        draw = np.float32((n + 0.5) / pool)
        env = begin(n)
        seen = env.gen_obs()
        rows.append((True, draw, 0, seen["image"], seen["direction"], 0.0, False, False))
        painter = np.array([draw * np.float32(rules.SEEDS)]).astype(np.uint32)
        chosen = _actions(env, iter(plans[n] if manner == 2 else ()), random, curious=manner == 1)
        for action, _ in zip(chosen, range(task.max_steps if manner == 0 else LONG), strict=False):
            seen, reward, terminated, truncated, _ = env.step(action)
            if task.noisy and action == rules.DONE:
                painter = rules.next_noise(painter)
                _paint(env, COLOUR_NAMES[int(rules.colour_of(painter)[0])])
                seen = env.gen_obs()
            rows.append((False, draw, action, seen["image"], seen["direction"], reward, terminated, truncated))
            taken += 1
            if terminated or truncated:
                break
        episodes += 1
    types = (bool, np.float32, np.int32, np.uint8, np.int32, np.float32, bool, bool)
    return Log(*(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)))


def _starts(task: Task) -> Callable[[int], Any]:
    """Return a function that starts the package's episode of a seed, from a copy of its start where drawing is slow."""
    env = package_env(task.name)
    env.max_steps = task.max_steps
    drawn: dict[int, Any] = {}

    def begin(seed: int) -> Any:
        if pool_of(task.name) == POOL:
            env.reset(seed=seed)
            return env
        if seed not in drawn:
            env.reset(seed=seed)
            drawn[seed] = deepcopy(env)
        return deepcopy(drawn[seed])

    return begin


def _paint(env: Any, colour: str) -> None:
    """Give the package's balls the colour that the engine's random numbers choose."""
    for thing in (*env.grid.grid, env.carrying):
        if thing is not None and thing.type == "ball":
            thing.color = colour


def _actions(env: Any, plan: Iterator[int], random: np.random.Generator, curious: bool) -> Iterator[int]:
    """Yield the plan's actions, then random ones."""
    yield from plan
    while True:
        weights = np.array([1.0, 1, 2, 0.5, 0.5, 0.5, 0.5])
        if curious:
            ahead = env.grid.get(*env.front_pos)
            weights[rules.AHEAD] = 4
            weights[rules.PICK_UP] += 8 * (ahead is not None and ahead.can_pickup())
            weights[rules.TOGGLE] += 8 * (ahead is not None and ahead.type in ("door", "box"))
            weights[rules.DROP] += 0.5 * (env.carrying is not None)
        yield int(random.choice(rules.ACTIONS, p=weights / weights.sum()))
