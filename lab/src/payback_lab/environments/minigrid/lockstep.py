"""Play the engine and the `minigrid` package side by side, and compare all that an agent can see.

    python -m payback_lab.environments.minigrid.lockstep            every task, 100,000 actions each
    python -m payback_lab.environments.minigrid.lockstep FourRooms --actions 5000

A third of the episodes act at random, a third prefer what changes something (toggle before a door, pick up before a
key), and a third follow a shortest plan, so that the ends of solved episodes are compared too.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.layouts import draw_layouts, make_task, package_env
from payback_lab.environments.minigrid.optimum import shortest_plan
from payback_lab.environments.minigrid.tasks import TASKS, Task
from payback_lab.environments.minigrid.view import image, observe

COLOUR_NAMES = ("red", "green", "blue", "purple", "yellow", "grey")
"""In the order of MiniGrid's numbers."""
PLANS = 12
"""How many layouts are solved by a plan; the plans are followed in turn."""
LONG = 1024
"""Actions after which an episode is left, because tasks with long limits would have few; a third are played on."""


class Played(NamedTuple):
    """Count what was compared."""

    actions: int
    episodes: int
    solved: int
    truncated: int


class Episode(NamedTuple):
    """Hold all that an agent saw in one episode of T actions."""

    actions: np.ndarray
    """(T,)."""
    images: np.ndarray
    """(T + 1, 7, 7, 3), the first before the first action."""
    rewards: np.ndarray
    """float32 (T,)."""
    terminated: np.ndarray
    truncated: np.ndarray


def record(env: Any, task: Task, seed: int, noise: np.uint32, choose: Callable[[], int], most: int) -> Episode:
    """Play an episode of the package, at most so many actions long."""
    images, rows = [env.reset(seed=seed)[0]["image"]], []
    painter = np.array([noise])
    for _ in range(min(most, task.max_steps)):
        action = choose()
        seen, reward, terminated, truncated, _ = env.step(action)
        if task.noisy and action == rules.DONE:
            painter = rules.next_noise(painter)
            _paint(env, COLOUR_NAMES[int(rules.colour_of(painter)[0])])
            seen = env.gen_obs()
        images.append(seen["image"])
        rows.append((action, reward, terminated, truncated))
        if terminated or truncated:
            break
    actions, rewards, *flags = (np.array(column) for column in zip(*rows, strict=True))
    return Episode(actions, np.array(images), rewards.astype(np.float32), *flags)


def _paint(env: Any, colour: str) -> None:
    """Give the package's balls the colour that the engine's random numbers choose."""
    for thing in (*env.grid.grid, env.carrying):
        if thing is not None and thing.type == "ball":
            thing.color = colour


@functools.partial(jax.jit, static_argnums=0)
def replay(task: Task, state: rules.State, actions: jax.Array) -> tuple[jax.Array, ...]:
    """Play the same actions in the engine; return images, rewards, terminated, truncated."""

    def step(state: rules.State, action: jax.Array) -> tuple[rules.State, tuple]:
        after, *paid = rules.step(task, state, action)
        return after, (image(observe(task, after)), *paid)

    _, (images, *paid) = lax.scan(step, state, actions)
    return jnp.concatenate([image(observe(task, state))[None], images]), *paid


def compare(task: Task, state: rules.State, theirs: Episode) -> None:
    """Raise an AssertionError at the first difference between the engine and an episode of the package."""
    T = len(theirs.actions)
    padded = np.zeros(LONG if T <= LONG else task.max_steps, np.int32)  # two lengths, because each is compiled
    padded[:T] = theirs.actions
    images, *paid = (np.asarray(answer) for answer in replay(task, state, jnp.asarray(padded)))
    ours = {"observation": images[: T + 1], **dict(zip(("reward", "terminated", "truncated"), paid, strict=True))}
    for (what, mine), other in zip(ours.items(), theirs[1:], strict=True):
        differs = (mine[: len(other)] != other).reshape(len(other), -1).any(axis=1)
        if differs.any():
            t = int(np.flatnonzero(differs)[0])
            raise AssertionError(
                f"{task.name}: {what} {t} of an episode differs after the actions {theirs.actions[: t + 1].tolist()}: "
                f"{mine[t].tolist()}, the package has {other[t].tolist()}"
            )


def play(name: str, actions: int, plans: int = PLANS, seed: int = 0) -> Played:
    """Compare at least so many actions of a task; the first difference raises an AssertionError that says where."""
    task, random = make_task(name, "minigrid"), np.random.default_rng(seed)
    env, layouts = package_env(name), draw_layouts(name, max(plans, actions // 100))
    solutions = [shortest_plan(task, layouts, n) for n in range(plans)]
    taken = episodes = solved = cut = 0
    while taken < actions:
        manner = episodes % 3
        n = episodes // 3 % plans if manner == 2 else int(random.integers(len(layouts.x)))
        plan = iter(solutions[n] if manner == 2 else ())
        draw = (n + 0.5) / len(layouts.x)
        state = rules.start(task, layouts, jnp.array([draw, draw]))

        choose = functools.partial(_follow, plan, env, random, manner == 1)
        episode = record(env, task, n, np.uint32(state.noise), choose, most=task.max_steps if manner == 0 else LONG)
        compare(task, state, episode)
        taken, episodes = taken + len(episode.actions), episodes + 1
        solved, cut = solved + int(episode.rewards[-1] > 0), cut + int(episode.truncated[-1])
    return Played(taken, episodes, solved, cut)


def _follow(plan: Iterator[int], env: Any, random: np.random.Generator, curious: bool) -> int:
    action = next(plan, None)
    return _choose(env, random, curious) if action is None else action


def _choose(env: Any, random: np.random.Generator, curious: bool) -> int:
    weights = np.array([1.0, 1, 2, 0.5, 0.5, 0.5, 0.5])
    ahead = env.grid.get(*env.front_pos)
    if curious:
        weights[rules.AHEAD] = 4
        weights[rules.PICK_UP] += 8 * (ahead is not None and ahead.can_pickup())
        weights[rules.TOGGLE] += 8 * (ahead is not None and ahead.type in ("door", "box"))
        weights[rules.DROP] += 0.5 * (env.carrying is not None)
    return int(random.choice(rules.ACTIONS, p=weights / weights.sum()))


def main(arguments: list[str] | None = None) -> int:
    """Compare the named tasks, or all."""
    parser = argparse.ArgumentParser(prog="lockstep", description="Compare the engine with the minigrid package.")
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help="names of tasks; all if none is named")
    parser.add_argument("--actions", type=int, default=100_000, help="how many actions of each (default: 100000)")
    asked = parser.parse_args(arguments)
    for name in asked.tasks:
        try:
            played = play(name, asked.actions)
        except ValueError as error:
            parser.error(str(error))
        print(
            f"{name}: {played.actions:,} actions in {played.episodes:,} episodes equal, {played.solved:,} solved, "
            f"{played.truncated:,} truncated",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
