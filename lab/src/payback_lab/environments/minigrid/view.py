"""The observation: MiniGrid's 7×7 egocentric view, with occlusion.

Visibility spreads row by row, from the agent's to the first. What one row lets through depends only on which of its
seven cells are seen and which are transparent: two seven-bit numbers, whose answer is looked up in a table.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.rules import NOTHING, State, ahead_of
from payback_lab.environments.minigrid.tasks import Task

VIEW = 7
"""Side of the square the agent sees; it stands in the middle of the last row, looking at the first."""


def observe(task: Task, state: State) -> jax.Array:
    """Return the view as tile numbers, uint16 (…, 49); `image` makes them MiniGrid's image[column, row]."""
    seen = _window(task, state)
    if not task.sees_through_walls:
        seen = jnp.where(_visible(seen), seen, np.uint16(tiles.UNSEEN))
    held = jnp.where(state.carrying == NOTHING, tiles.EMPTY, state.carrying)
    at_agent = jnp.arange(VIEW * VIEW) == (VIEW // 2) * VIEW + VIEW - 1
    return jnp.where(at_agent, held[..., None], seen) & tiles.SHOWN


def image(seen: jax.Array) -> jax.Array:
    """Return tile numbers (…, 49) as MiniGrid's image, uint8 (…, 7, 7, 3)."""
    parts = seen[..., None] >> np.array(tiles.SHIFTS, np.uint16) & np.array(tiles.MASKS, np.uint16)
    return parts.astype(jnp.uint8).reshape(*seen.shape[:-1], VIEW, VIEW, 3)


def _window(task: Task, state: State) -> jax.Array:
    """Return the tiles of the 49 cells before the agent, column by column; what lies outside the grid is wall."""
    column, row = (index.ravel() for index in np.indices((VIEW, VIEW)))
    ahead, right = VIEW - 1 - row, column - VIEW // 2
    dx, dy = (d[..., None] for d in ahead_of(state.direction))
    x = state.x[..., None] + dx * ahead - dy * right
    y = state.y[..., None] + dy * ahead + dx * right
    inside = (x >= 0) & (x < task.width) & (y >= 0) & (y < task.height)
    cell = jnp.where(inside, y * task.width + x, 0)
    return jnp.where(inside, jnp.take_along_axis(state.grid, cell, axis=-1), tiles.WALL)


def _visible(window: jax.Array) -> jax.Array:
    """Return which of the 49 tiles the agent sees: MiniGrid's `process_vis`."""
    kind, state = tiles.part(window, 0), tiles.part(window, 2)
    opaque = (kind == tiles.WALL_KIND) | ((kind == tiles.DOOR) & (state != tiles.OPEN))
    bits = np.int32(1) << np.arange(VIEW, dtype=np.int32)
    # (…, column, row) → one number per row whose bit c is column c
    clear = jnp.where(opaque, 0, 1).reshape(*window.shape[:-1], VIEW, VIEW)
    clear = (clear * bits[:, None]).sum(axis=-2)
    table = jnp.asarray(_spread())
    seen, rows = jnp.full(window.shape[:-1], 1 << VIEW // 2), []
    for row in range(VIEW - 1, -1, -1):
        answer = table[seen << VIEW | clear[..., row]]
        rows.append(answer & 127)
        seen = answer >> VIEW
    by_row = jnp.stack(rows[::-1], axis=-1)
    return ((by_row[..., None, :] >> np.arange(VIEW)[:, None]) & 1 == 1).reshape(window.shape)


@functools.cache
def _spread() -> np.ndarray:
    """Return, for (seen, clear) of a row as two seven-bit numbers, what is seen of it and of the row ahead, int32.

    Through a transparent cell that is seen, one sees its neighbour, the cell ahead of it and that ahead of the
    neighbour; first to the right, then to the left. The low seven bits are this row, the next seven the row ahead.
    """
    seen, clear = (part.ravel() for part in np.indices((1 << VIEW, 1 << VIEW), dtype=np.int32))
    ahead = np.zeros_like(seen)
    pairs = [(c, c + 1) for c in range(VIEW - 1)] + [(c, c - 1) for c in range(VIEW - 1, 0, -1)]
    for column, beside in pairs:
        through = seen & clear & 1 << column != 0
        seen = np.where(through, seen | 1 << beside, seen)
        ahead = np.where(through, ahead | 1 << beside | 1 << column, ahead)
    return seen | ahead << VIEW
