"""The fewest steps that solve a layout, by breadth-first search with the engine's own step.

Two layouts differ in everything, so each is searched by itself, but all of them side by side: one frontier holds the
states of every layout that is not yet solved. States are told apart by a 64-bit hash of all that they hold.

An open door is never closed in the search, because whatever can be done with a closed door can be done with it open: a
door's cell takes no object, and nothing is paid for a state of a door.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.layouts import Layouts
from payback_lab.environments.minigrid.rules import ACTIONS, TOGGLE, State, ahead_of, step
from payback_lab.environments.minigrid.tasks import Task

UNSOLVED = -1
"""Stands for the fewest steps of a layout that cannot be solved within the time limit."""


ROOM = 1024
"""How many states are expanded by one call; one size, because each is compiled."""


class _Frontier(NamedTuple):
    """Hold the states that were first reached at this depth."""

    grid: np.ndarray
    """uint16 (N, cells)."""
    rest: np.ndarray
    """int32 (N, 4): x, y, direction, carrying."""
    layout: np.ndarray
    """int64 (N,), the layout each belongs to."""


def fewest_steps(task: Task, layouts: Layouts) -> np.ndarray:
    """Return the fewest steps that solve each layout, int64 (P,); `UNSOLVED` where the time limit does not suffice."""
    return _search(task, layouts)[0]


def shortest_plan(task: Task, layouts: Layouts, n: int) -> list[int]:
    """Return actions that solve layout n in the fewest steps; none if it cannot be solved."""
    one = Layouts(*(field[n : n + 1] for field in layouts))
    (steps,), trail, last = _search(task, one)
    if steps == UNSOLVED:
        return []
    plan = []
    for parents, actions in trail[::-1]:
        plan.append(int(actions[last]))
        last = parents[last]
    return plan[::-1]


def _search(task: Task, layouts: Layouts) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]], int]:
    """Return the fewest steps, for each depth the parent and the action of every state, and the last state found."""
    count = len(layouts.x)
    fewest = np.full(count, UNSOLVED, np.int64)
    rest = np.stack((layouts.x, layouts.y, layouts.direction, np.zeros_like(layouts.x)), axis=1)
    frontier = _Frontier(layouts.grid, rest.astype(np.int32), np.arange(count))
    visited = np.sort(_hashes(frontier))
    trail: list[tuple[np.ndarray, np.ndarray]] = []
    last = 0
    for depth in range(1, task.max_steps + 1):
        if not len(frontier.layout):
            break
        after, solved, lost = _expand(task, frontier)
        parents = np.repeat(np.arange(len(frontier.layout)), ACTIONS)
        actions = np.tile(np.arange(ACTIONS), len(frontier.layout))
        fewest[after.layout[solved]] = depth
        if solved.any():
            last = int(np.flatnonzero(solved)[0])
            if count == 1:
                trail.append((parents, actions))
                break
        keys = _hashes(after)
        first = np.zeros(len(keys), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        new = first & ~lost & (fewest[after.layout] == UNSOLVED) & ~_among(keys, visited)
        frontier = _Frontier(*(field[new] for field in after))
        trail.append((parents[new], actions[new]))
        visited = np.sort(np.concatenate((visited, keys[new])))
    return fewest, trail, last


def _expand(task: Task, frontier: _Frontier) -> tuple[_Frontier, np.ndarray, np.ndarray]:
    """Return the states after every action of every state, which of them solve, and which need not be followed."""
    count = len(frontier.layout)
    rules = task._replace(
        name="", max_steps=1, noisy=False, payment="one"
    )  # what a search needs, to compile less often
    found: list[list[np.ndarray]] = []
    for begin in range(0, count, ROOM):
        grid, rest = frontier.grid[begin : begin + ROOM], frontier.rest[begin : begin + ROOM]
        empty = ((0, ROOM - len(grid)), (0, 0))
        grids, rests = jnp.asarray(np.pad(grid, empty)), jnp.asarray(np.pad(rest, empty, constant_values=1))
        answers = _successors(rules, grids, rests)
        found.append([np.asarray(answer)[: len(grid)] for answer in answers])
    grids, rests, solved, lost = (
        np.concatenate(parts).reshape(count * ACTIONS, -1) for parts in zip(*found, strict=True)
    )
    return _Frontier(grids, rests, np.repeat(frontier.layout, ACTIONS)), solved[:, 0], lost[:, 0]


@functools.partial(jax.jit, static_argnums=0)
def _successors(task: Task, grid: jax.Array, rest: jax.Array) -> tuple[jax.Array, ...]:
    def after(action: jax.Array) -> tuple[jax.Array, ...]:
        x, y, direction, carrying = rest.T
        zero = jnp.zeros_like(x)
        state = State(grid, x, y, direction, carrying.astype(jnp.uint16), zero, zero.astype(jnp.uint32))
        then, reward, terminated, _ = step(task, state, jnp.full_like(x, action))
        dx, dy = ahead_of(direction)
        ahead = jnp.take_along_axis(grid, ((y + dy) * task.width + x + dx)[:, None], axis=1)[:, 0]
        opened = (tiles.part(ahead, 0) == tiles.DOOR) & (tiles.part(ahead, 2) == tiles.OPEN)
        solved = reward > 0
        lost = (terminated & ~solved) | ((action == TOGGLE) & opened)
        rests = jnp.stack((then.x, then.y, then.direction, then.carrying.astype(jnp.int32)), axis=1)
        return then.grid, rests, solved, lost

    return jax.vmap(after, out_axes=1)(jnp.arange(ACTIONS))


def _hashes(states: _Frontier) -> np.ndarray:
    """Return a 64-bit hash of each state, its layout included."""
    random = np.random.default_rng(0)
    width = states.grid.shape[1]
    weights = random.integers(0, 2**64, width + 5, dtype=np.uint64) | np.uint64(1)
    hashes = states.layout.astype(np.uint64) * weights[-1]
    for cell in range(width):
        hashes += states.grid[:, cell].astype(np.uint64) * weights[cell]
    for n in range(4):
        hashes += states.rest[:, n].astype(np.uint64) * weights[width + n]
    return hashes


def _among(keys: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    found = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return ordered[found] == keys
