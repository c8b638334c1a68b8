"""What stands in one cell of a grid, as one 16-bit number.

The low nine bits hold MiniGrid's (object, colour, state); a shift and a mask return each of them. The high seven bits
hold (object, colour) of what a box contains, 0 for nothing: `tile >> CONTENTS` is the number of that object's tile.
"""

from typing import Any

import numpy as np

SHIFTS, MASKS = (0, 4, 7), (15, 7, 3)
"""Where a tile's number holds object, colour and state: (tile >> shift) & mask."""
CONTENTS = 9
"""Where a box's tile holds what is in the box."""
SHOWN = np.uint16(2**CONTENTS - 1)
"""The part of a tile's number that an observation shows: a box hides its contents."""

UNSEEN, EMPTY_KIND, WALL_KIND, FLOOR, DOOR, KEY, BALL, BOX, GOAL, LAVA = range(10)
"""MiniGrid's numbers of the objects."""
OPEN, CLOSED, LOCKED = range(3)
"""MiniGrid's numbers of a door's states."""
COLOURS = 6
BLUE, GREY = 2, 5


def tile(kind: int, colour: int, state: int = 0, contents: int = 0) -> np.uint16:
    """Return the number of MiniGrid's tile (object, colour, state); `contents` is the tile inside a box.

    >>> int(tile(BOX, 2, contents=tile(KEY, 4)) >> CONTENTS) == int(tile(KEY, 4))
    True
    """
    return np.uint16(kind | colour << SHIFTS[1] | state << SHIFTS[2] | int(contents) << CONTENTS)


def channels(tiles: Any) -> tuple[Any, ...]:
    """Return object, colour and state of tile numbers, three uint8 arrays of their shape, NumPy or JAX.

    >>> [int(channel) for channel in channels(tile(KEY, 4))]
    [5, 4, 0]
    """
    return tuple(part(tiles, n).astype(np.uint8) for n in range(3))


def part(tiles: Any, n: int) -> Any:
    """Return the object (0), the colour (1) or the state (2) of tile numbers, uint16."""
    return tiles >> np.uint16(SHIFTS[n]) & np.uint16(MASKS[n])


EMPTY, WALL = tile(EMPTY_KIND, 0), tile(WALL_KIND, GREY)
