"""MiniGrid's rules in JAX: seven actions among walls, doors, keys, balls, boxes, lava and goals.

What a step does equals the `minigrid` package. The functions are pure and take states of any batch shape.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.layouts import Layouts
from payback_lab.environments.minigrid.tasks import Task

LEFT, RIGHT, AHEAD, PICK_UP, DROP, TOGGLE, DONE = range(7)
ACTIONS = 7
DRAWS = 2
"""How many uniform random numbers the start of an episode takes: the layout, and the seed of a noisy TV."""
SEEDS = 2**24
"""How many seeds a noisy TV has: as many as uniform numbers of float32."""
NOTHING = np.uint16(0)
"""What an agent with empty hands carries."""


class State(NamedTuple):
    """Hold the states of many grids; all but `grid` are arrays of one shape."""

    grid: jax.Array
    """uint16 (…, height·width), the tile of each cell, row by row."""
    x: jax.Array
    y: jax.Array
    direction: jax.Array
    """Where the agent looks: 0 right, 1 down, 2 left, 3 up."""
    carrying: jax.Array
    """uint16, the tile of what the agent carries, 0 for nothing."""
    time: jax.Array
    """Steps taken in this episode."""
    noise: jax.Array
    """uint32, from which a noisy TV takes its next colour."""


def start(task: Task, layouts: Layouts, uniform: jax.Array) -> State:
    """Start episodes on layouts of the pool, chosen by uniform numbers in [0, 1), (2, …)."""
    pool = len(layouts.x)
    n = jnp.minimum(jnp.floor(uniform[0] * pool).astype(jnp.int32), pool - 1)
    return State(
        grid=jnp.asarray(layouts.grid)[n],
        x=jnp.asarray(layouts.x)[n],
        y=jnp.asarray(layouts.y)[n],
        direction=jnp.asarray(layouts.direction)[n],
        carrying=jnp.zeros(n.shape, jnp.uint16),
        time=jnp.zeros(n.shape, jnp.int32),
        noise=(uniform[1] * SEEDS).astype(jnp.uint32),
    )


def step(task: Task, state: State, action: jax.Array) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """Take one action; return the next state, the reward, whether it terminated, whether it was truncated."""
    dx, dy = ahead_of(state.direction)
    x, y = state.x + dx, state.y + dy
    cell = y * task.width + x
    before = jnp.take_along_axis(state.grid, cell[..., None], axis=-1)[..., 0]
    kind = tiles.part(before, 0)
    is_open = (kind == tiles.DOOR) & (tiles.part(before, 2) == tiles.OPEN)
    passable = (before == tiles.EMPTY) | (kind == tiles.FLOOR) | (kind == tiles.GOAL) | (kind == tiles.LAVA) | is_open

    moves = (action == AHEAD) & passable
    holds = state.carrying != NOTHING
    picks = (action == PICK_UP) & ~holds & is_portable(kind)
    drops = (action == DROP) & holds & (before == tiles.EMPTY)
    after = jnp.where(picks, tiles.EMPTY, jnp.where(drops, state.carrying, before))
    after = jnp.where(action == TOGGLE, _toggled(before, state.carrying), after)
    turn = jnp.where(action == RIGHT, 1, 0) - jnp.where(action == LEFT, 1, 0)
    time = state.time + 1
    moved = state._replace(
        grid=_put(state.grid, cell, after, after != before),
        x=jnp.where(moves, x, state.x),
        y=jnp.where(moves, y, state.y),
        direction=(state.direction + turn) & 3,
        carrying=jnp.where(picks, before, jnp.where(drops, NOTHING, state.carrying)),
        time=time,
    )
    if task.noisy:
        moved = _repaint(moved, action == DONE)
    solved = (picks & _is_target(task, before)) | (moves & (kind == tiles.GOAL))
    terminated = solved | (moves & (kind == tiles.LAVA))
    return moved, jnp.where(solved, _payment(task, time), 0.0), terminated, time >= task.max_steps


def ahead_of(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the step (dx, dy) in each direction, without a table look-up."""
    dx = jnp.where(direction == 0, 1, jnp.where(direction == 2, -1, 0))
    dy = jnp.where(direction == 1, 1, jnp.where(direction == 3, -1, 0))
    return dx, dy


def is_portable(kind: jax.Array) -> jax.Array:
    """Return whether objects of these kinds can be picked up."""
    return (kind == tiles.KEY) | (kind == tiles.BALL) | (kind == tiles.BOX)


def _is_target(task: Task, tile: jax.Array) -> jax.Array:
    wanted = tiles.part(tile, 0) == task.target
    return wanted if task.target_colour is None else wanted & (tiles.part(tile, 1) == task.target_colour)


def _toggled(before: jax.Array, carrying: jax.Array) -> jax.Array:
    """Return a cell after TOGGLE: a door changes its state, a box is replaced by what it contains."""
    state = tiles.part(before, 2)
    fits = (tiles.part(carrying, 0) == tiles.KEY) & (tiles.part(carrying, 1) == tiles.part(before, 1))
    shut = jnp.where(state == tiles.OPEN, tiles.CLOSED, tiles.OPEN)
    turned = jnp.where((state == tiles.LOCKED) & ~fits, tiles.LOCKED, shut).astype(jnp.uint16)
    door = before & np.uint16(~(3 << tiles.SHIFTS[2]) & 0xFFFF) | turned << np.uint16(tiles.SHIFTS[2])
    inside = before >> np.uint16(tiles.CONTENTS)
    kind = tiles.part(before, 0)
    opened = jnp.where(inside == 0, tiles.EMPTY, inside)
    return jnp.where(kind == tiles.DOOR, door, jnp.where(kind == tiles.BOX, opened, before))


def _put(grid: jax.Array, cell: jax.Array, tile: jax.Array, where: jax.Array) -> jax.Array:
    # A comparison with all cells, because on a CPU it is much faster than scattering a few indices.
    here = (jnp.arange(grid.shape[-1]) == cell[..., None]) & where[..., None]
    return jnp.where(here, tile[..., None], grid)


def _repaint(state: State, where: jax.Array) -> State:
    """Give every ball, also a carried one, the next random colour."""
    noise = jnp.where(where, next_noise(state.noise), state.noise)
    colour = (colour_of(noise) << np.uint16(tiles.SHIFTS[1])).astype(jnp.uint16)
    bare = np.uint16(~(tiles.MASKS[1] << tiles.SHIFTS[1]) & 0xFFFF)

    def painted(tile: jax.Array, colour: jax.Array, where: jax.Array) -> jax.Array:
        return jnp.where(where & (tiles.part(tile, 0) == tiles.BALL), tile & bare | colour, tile)

    return state._replace(
        grid=painted(state.grid, colour[..., None], where[..., None]),
        carrying=painted(state.carrying, colour, where),
        noise=noise,
    )


def next_noise(noise: Any) -> Any:
    """Return the next number of a linear congruential generator (the constants of Numerical Recipes)."""
    return noise * np.uint32(1664525) + np.uint32(1013904223)


def colour_of(noise: Any) -> Any:
    """Return the colour that a number stands for; its high bits, because the low ones repeat soon."""
    return (noise >> np.uint32(16)) % np.uint32(tiles.COLOURS)


def _payment(task: Task, time: jax.Array) -> jax.Array:
    if task.payment == "one":
        return jnp.ones(time.shape, jnp.float32)
    # Rounded once from float64, because the reward is then MiniGrid's to the last bit of float32.
    by_time = 1 - 0.9 * (np.arange(task.max_steps + 1) / task.max_steps)
    return jnp.asarray(by_time.astype(np.float32))[time]


def place(task: Task, state: State) -> jax.Array:
    """Return the number of what a count bonus counts: (x, y, carrying something), and the colour that a noisy TV shows.

    Without the colour a count would not notice the TV, and the task would be the one without it.
    """
    here = (state.y * task.width + state.x) * 2 + (state.carrying != NOTHING)
    return here * tiles.COLOURS + _shown(state) if task.noisy else here


def _shown(state: State) -> jax.Array:
    """Return the colour of the only ball, in the grid or carried."""
    everything = jnp.concatenate([state.grid, jnp.asarray(state.carrying)[..., None]], axis=-1)
    colour = jnp.where(tiles.part(everything, 0) == tiles.BALL, tiles.part(everything, 1), 0)
    return colour.max(axis=-1).astype(jnp.int32)
