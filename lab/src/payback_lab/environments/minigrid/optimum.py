"""The fewest steps that solve a layout, by breadth-first search with the engine's own step.

Two layouts differ in everything, so each is searched by itself, but all of them side by side: one frontier holds the
states of every layout that is not yet solved. States are distinguished by a 64-bit hash of all that they hold.

An open door is never closed in the search, because whatever can be done with a closed door can be done with it open: a
door's cell takes no object, and nothing is paid for a state of a door.

A task in which things can be put down in many places has too many states. The relaxed search returns a lower bound: a
thing vanishes as soon as the agent turns away from it, unless something lay in its cell at the start, and a key that
was picked up once can be picked up again anywhere. Every plan of the task becomes a relaxed plan of at most its length:
leave out each action on a thing that has vanished, pick up vanished keys where the plan does, and where the plan moves
a box before opening it, open the box and take the key. A relaxed plan that solves its layout in the engine is therefore
a shortest plan.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.layouts import Layouts
from payback_lab.environments.minigrid.rules import (
    DONE,
    DRAWS,
    LEFT,
    NOTHING,
    PICK_UP,
    RIGHT,
    TOGGLE,
    State,
    ahead_of,
    is_portable,
    start,
    step,
)
from payback_lab.environments.minigrid.tasks import Task

UNSOLVED = -1
"""Stands for the fewest steps of a layout that cannot be solved within the time limit."""
ROOM = 1024
"""Number of states that one call expands; one size, because each size is compiled."""
SEARCHED = 6
"""Number of actions that are searched: all but DONE, which does nothing."""
READY = 3
"""State of a locked door, in the relaxed search, after its key was picked up once."""
SOME_KEY, OTHER = tiles.tile(tiles.KEY, 7), tiles.tile(tiles.KEY, 6)
"""What the agent carries in the relaxed search: a key, or another thing; keys, because no target is one."""


class _Frontier(NamedTuple):
    """Hold the states that were first reached at this depth."""

    grid: np.ndarray
    """uint16 (N, cells)."""
    rest: np.ndarray
    """int32 (N, 4): x, y, direction, carrying."""
    layout: np.ndarray
    """int64 (N,), the layout each belongs to."""


def fewest_steps(task: Task, layouts: Layouts, relaxed: bool = False) -> np.ndarray:
    """Return the fewest steps that solve each layout, int64 (P,), or a lower bound of them if `relaxed`.

    `UNSOLVED` marks the layouts for which the time limit does not suffice.
    """
    return np.array([len(plan) or UNSOLVED for plan in shortest_plans(task, layouts, relaxed)])


def shortest_plan(task: Task, layouts: Layouts, n: int, relaxed: bool = False) -> list[int]:
    """Return actions that solve layout n in the fewest steps, [] if none do; a relaxed plan may fail in the engine."""
    return shortest_plans(task, Layouts(*(field[n : n + 1] for field in layouts)), relaxed)[0]


def shortest_plans(task: Task, layouts: Layouts, relaxed: bool = False) -> list[list[int]]:
    """Return a shortest plan of every layout; see `shortest_plan`."""
    count = len(layouts.x)
    rest = np.stack((layouts.x, layouts.y, layouts.direction, np.zeros_like(layouts.x)), axis=1).astype(np.int32)
    frontier = _Frontier(layouts.grid, rest, np.arange(count))
    visited = np.sort(_keys(np.asarray(_hashes(jnp.asarray(layouts.grid), jnp.asarray(rest))), frontier.layout))
    plans: list[list[int]] = [[] for _ in range(count)]
    unsolved = np.ones(count, bool)
    trail: list[tuple[np.ndarray, np.ndarray]] = []  # for each depth, the parent and the action of every state
    for _ in range(task.max_steps):
        if not len(frontier.layout):
            break
        after, hashes, solved, lost = _expand(task, frontier, layouts.grid if relaxed else None)
        found, first = np.unique(after.layout[solved], return_index=True)
        for n, last in zip(found, np.flatnonzero(solved)[first], strict=True):
            plans[n] = [*_actions_to(last // SEARCHED, trail), int(last % SEARCHED)]
        unsolved[found] = False
        followed = np.flatnonzero(~lost & unsolved[after.layout])
        keys, first = np.unique(_keys(hashes, after.layout)[followed], return_index=True)
        unseen = ~_among(keys, visited)
        new = np.sort(followed[first[unseen]])
        frontier = _Frontier(*(field[new] for field in after))
        trail.append((new // SEARCHED, new % SEARCHED))
        visited = np.sort(np.concatenate((visited, keys[unseen])), kind="stable")
    return plans


def _actions_to(state: int, trail: list[tuple[np.ndarray, np.ndarray]]) -> list[int]:
    """Return the actions that lead to a state of the last depth."""
    plan = []
    for parents, actions in trail[::-1]:
        plan.append(int(actions[state]))
        state = parents[state]
    return plan[::-1]


def solves(task: Task, layouts: Layouts, plans: Sequence[Sequence[int]]) -> np.ndarray:
    """Return whether each plan solves its layout in the engine, bool (P,)."""
    actions = np.full((max(map(len, plans)), len(plans)), DONE)
    for n, plan in enumerate(plans):
        actions[: len(plan), n] = plan
    rules = task._replace(name="", payment="one")
    state = start(rules, layouts, jnp.stack([(jnp.arange(len(plans)) + 0.5) / len(plans)] * DRAWS))

    def one(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        state, reward, *_ = step(rules, state, action)
        return state, reward > 0

    return np.asarray(jax.lax.scan(one, state, jnp.asarray(actions))[1].any(axis=0))


def _expand(
    task: Task, frontier: _Frontier, starts: np.ndarray | None
) -> tuple[_Frontier, np.ndarray, np.ndarray, np.ndarray]:
    """Return the states after every action of every state, their hashes, which solve, and which are not followed.

    `starts`, the grids of the layouts, makes the search a relaxed one.
    """
    count = len(frontier.layout)
    # Only the fields that a search needs, to compile less often.
    rules = task._replace(name="", max_steps=1, noisy=False, payment="one")
    found: list[list[np.ndarray]] = []
    for begin in range(0, count, ROOM):
        grid, rest = frontier.grid[begin : begin + ROOM], frontier.rest[begin : begin + ROOM]
        empty = ((0, ROOM - len(grid)), (0, 0))
        grids, rests = jnp.asarray(np.pad(grid, empty)), jnp.asarray(np.pad(rest, empty, constant_values=1))
        begun = None if starts is None else np.pad(starts[frontier.layout[begin : begin + ROOM]], empty)
        answers = _successors(rules, grids, rests, begun)
        found.append([np.asarray(answer)[: len(grid)] for answer in answers])
    grids, rests, hashes, solved, lost = (
        np.concatenate(parts).reshape(count * SEARCHED, -1) for parts in zip(*found, strict=True)
    )
    return _Frontier(grids, rests, np.repeat(frontier.layout, SEARCHED)), hashes, solved[:, 0], lost[:, 0]


@functools.partial(jax.jit, static_argnums=0)
def _successors(task: Task, grid: jax.Array, rest: jax.Array, starts: jax.Array | None) -> tuple[jax.Array, ...]:
    def after(action: jax.Array) -> tuple[jax.Array, ...]:
        x, y, direction, carrying = rest.T
        zero = jnp.zeros_like(x)
        state = State(grid, x, y, direction, carrying.astype(jnp.uint16), zero, zero.astype(jnp.uint32))
        then, reward, terminated, _ = step(task, state, jnp.full_like(x, action))
        dx, dy = ahead_of(direction)
        cell = (y + dy) * task.width + x + dx
        ahead = jnp.take_along_axis(grid, cell[:, None], axis=1)[:, 0]
        opened = (tiles.part(ahead, 0) == tiles.DOOR) & (tiles.part(ahead, 2) == tiles.OPEN)
        solved = reward > 0
        lost = (terminated & ~solved) | ((action == TOGGLE) & opened)
        if starts is not None:
            ready = (tiles.part(ahead, 0) == tiles.DOOR) & (tiles.part(ahead, 2) == READY)
            lost |= (action == TOGGLE) & ready & (state.carrying != SOME_KEY)
            again = (action == PICK_UP) & (state.carrying == NOTHING) & (ahead == tiles.EMPTY)
            then = _relaxed(then, starts, cell, (action == LEFT) | (action == RIGHT), again)
        rests = jnp.stack((then.x, then.y, then.direction, then.carrying.astype(jnp.int32)), axis=1)
        return then.grid, rests, _hashes(then.grid, rests), solved, lost

    return jax.vmap(after, out_axes=1)(jnp.arange(SEARCHED))


def _relaxed(state: State, starts: jax.Array, cell: jax.Array, turned: jax.Array, again: jax.Array) -> State:
    """Return the relaxed state after an action in front of `cell`; `again` is picking up what lies elsewhere."""
    held = tiles.part(state.carrying, 0)
    door, lock = tiles.part(state.grid, 0) == tiles.DOOR, tiles.part(state.grid, 2)
    fits = (held == tiles.KEY)[:, None] & (tiles.part(state.grid, 1) == tiles.part(state.carrying, 1)[:, None])
    ready = np.uint16((READY - tiles.LOCKED) << tiles.SHIFTS[2])
    grid = state.grid + jnp.where(door & (lock == tiles.LOCKED) & fits, ready, np.uint16(0))
    left = (jnp.arange(grid.shape[1]) == cell[:, None]) & turned
    vanishes = left & is_portable(tiles.part(grid, 0)) & ~is_portable(tiles.part(starts, 0))
    other = (held != tiles.KEY) | (state.carrying == OTHER)
    carrying = jnp.where(state.carrying == NOTHING, NOTHING, jnp.where(other, OTHER, SOME_KEY))
    some_ready = (door & (lock == READY)).any(axis=1)
    return state._replace(
        grid=jnp.where(vanishes, tiles.EMPTY, grid), carrying=jnp.where(again & some_ready, SOME_KEY, carrying)
    )


def _hashes(grid: jax.Array, rest: jax.Array) -> jax.Array:
    """Return two 32-bit hashes of each state, uint32 (N, 2)."""
    values = jnp.concatenate((grid.astype(jnp.uint32), rest.astype(jnp.uint32)), axis=1) * np.uint32(0x9E3779B1)
    values ^= values >> 15  # otherwise tiles that differ in high bits alone would change few bits of the hash
    weights = np.random.default_rng(0).integers(0, 2**32, (2, values.shape[1]), dtype=np.uint32) | np.uint32(1)
    return jnp.stack([(values * weight).sum(axis=1, dtype=jnp.uint32) for weight in weights], axis=1)


def _keys(hashes: np.ndarray, layout: np.ndarray) -> np.ndarray:
    """Return the 64-bit numbers by which states are distinguished, their layouts included."""
    high, low = hashes.T.astype(np.uint64)
    return (high << np.uint64(32) | low) + layout.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _among(keys: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    found = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return ordered[found] == keys
