"""The observation of DoorKey: MiniGrid's 7×7 egocentric view, with occlusion, as a table.

Without the key the view depends only on (wall, door row, door state, x, y, direction). The key is drawn over the
looked-up view, because it hides nothing behind it. Cells are tile numbers, as in `environments/minigrid/tiles.py`.
"""

import functools

import numpy as np

from payback_lab.environments.minigrid.tiles import channels, tile

__all__ = ["DOORS", "EMPTY", "FORWARD", "GOAL", "KEY", "UNSEEN", "VIEW", "WALL", "channels", "view_table", "visible"]

VIEW = 7
"""Side of the square the agent sees; it stands in the middle of the last row, looking at the first."""
UNSEEN, EMPTY, WALL, GOAL, KEY = tile(0, 0, 0), tile(1, 0, 0), tile(2, 5, 0), tile(8, 1, 0), tile(5, 4, 0)
DOORS = np.array([tile(4, 4, state) for state in range(3)])
"""The door that is open, closed, locked."""
FORWARD = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.int32)
"""The step (dx, dy) of each direction: right, down, left, up."""


@functools.cache
def view_table(size: int) -> np.ndarray:
    """Return the view without the key, uint16 (walls, doors, 3, size−2, size−2, 4, 49).

    Axes: wall column − 2, door row − 1, door state (0 open, 1 closed, 2 locked), x − 1, y − 1, direction;
    the last runs over the view's cells, column by column as in MiniGrid's image[column, row].

    >>> view_table(8).shape
    (4, 5, 3, 6, 6, 4, 49)
    """
    axes = (size - 4, size - 3, 3, size - 2, size - 2, 4)
    # Wall by wall, because building the table of the 16×16 grid at once would take several times its own memory.
    parts = [_views_of_wall(size, wall, axes[1:]) for wall in range(2, size - 2)]
    table = np.stack(parts)
    table.setflags(write=False)
    return table


def _views_of_wall(size: int, wall: int, axes: tuple[int, ...]) -> np.ndarray:
    index = np.indices(axes).reshape(len(axes), -1)
    door_row, door, x, y, direction = index + np.array([1, 0, 1, 1, 0])[:, None]
    x_seen, y_seen = cells_in_view(x, y, direction)
    tiles = np.full(x_seen.shape, EMPTY)
    tiles[(x_seen == size - 2) & (y_seen == size - 2)] = GOAL
    outside = (np.minimum(x_seen, y_seen) <= 0) | (np.maximum(x_seen, y_seen) >= size - 1)
    tiles[outside | (x_seen == wall)] = WALL
    at_door = (x_seen == wall) & (y_seen == door_row[:, None, None])
    tiles = np.where(at_door, DOORS[door][:, None, None], tiles)
    tiles[~visible(tiles)] = UNSEEN
    tiles[:, VIEW // 2, VIEW - 1] = EMPTY  # MiniGrid shows what the agent carries in place of its own cell
    return tiles.reshape(*axes, VIEW * VIEW)


def cells_in_view(x: np.ndarray, y: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid coordinates of each cell of the view, two (n, 7, 7) arrays indexed [column, row]."""
    dx, dy = FORWARD[direction].T[:, :, None, None]
    column, row = np.indices((VIEW, VIEW))
    ahead, right = VIEW - 1 - row, column - VIEW // 2
    return x[:, None, None] + dx * ahead - dy * right, y[:, None, None] + dy * ahead + dx * right


def visible(tiles: np.ndarray) -> np.ndarray:
    """Return which cells of (n, 7, 7) views the agent sees: MiniGrid's `process_vis`, for n views at once.

    Row by row, from the agent's to the first, visibility spreads sideways through transparent cells, first to the
    right, then to the left, and from every transparent cell to the two or three cells ahead of it.
    """
    clear = (tiles != WALL) & (tiles != DOORS[1]) & (tiles != DOORS[2])
    seen = np.zeros(tiles.shape, dtype=bool)
    seen[:, VIEW // 2, VIEW - 1] = True
    rightwards = [(column, column + 1) for column in range(VIEW - 1)]
    leftwards = [(column, column - 1) for column in range(VIEW - 1, 0, -1)]
    for row in range(VIEW - 1, -1, -1):
        for column, beside in rightwards + leftwards:
            through = seen[:, column, row] & clear[:, column, row]
            seen[:, beside, row] |= through
            if row > 0:
                seen[:, beside, row - 1] |= through
                seen[:, column, row - 1] |= through
    return seen
