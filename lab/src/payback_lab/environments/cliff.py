"""Cliff walking (`sec:cw`, `sec:lw`): reach the goal along a cliff in few moves; moves never slip.

    . . . . . . . . . . . .
    . . . . . . . . . . . .
    . . . . . . . . . . . .
    S # # # # # # # # # # G        # cliff: −100 and the end; G: +100 and the end; every other move: −1

It differs from Gymnasium's CliffWalking as the paper's does: there the cliff sends the agent back to S, the goal pays
−1, and there is no time limit.

The rules are a NumPy table in which `step` looks a move up; with the table as JAX arrays it works under `jit`.
"""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

UP, RIGHT, DOWN, LEFT = range(4)
ACTIONS = 4
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""(row, column) of up, right, down, left: Gymnasium's order."""
ON_THE_WAY, AT_THE_GOAL, IN_THE_CLIFF = -1.0, 100.0, -100.0


class Cliff(NamedTuple):
    """Describe one grid; cells are numbered row by row from the top left."""

    columns: int = 12
    """Width: 12 (`sec:cw`) or 50 (`sec:lw`)."""
    limit: int = 50
    """Moves after which an episode is truncated: 50 or 100."""
    rows: int = 4
    """Height; the bottom row is the start, the cliff, and the goal."""

    @property
    def cells(self) -> int:
        """Return the number of cells, cliff and goal included."""
        return self.rows * self.columns

    @property
    def start(self) -> int:
        """Return the cell at the bottom left."""
        return self.cells - self.columns

    @property
    def goal(self) -> int:
        """Return the cell at the bottom right."""
        return self.cells - 1


class Moves(NamedTuple):
    """Hold the outcome of every move: three arrays (cells, actions)."""

    cell: Any
    """The next cell; a move against the edge stays."""
    reward: Any
    """The extrinsic reward."""
    terminal: Any
    """Whether the move ends the episode, in the cliff or at the goal."""


def moves(cliff: Cliff) -> Moves:
    """Tabulate every move of the grid.

    >>> moves(Cliff()).reward[Cliff().start]
    array([  -1., -100.,   -1.,   -1.], dtype=float32)
    """
    if cliff.rows < 2 or cliff.columns < 2 or cliff.limit < 1:
        raise ValueError(f"A cliff needs at least 2 rows, 2 columns and 1 move, got {cliff}.")
    row, column = np.divmod(np.arange(cliff.cells)[:, None], cliff.columns)
    down, right = np.array(MOVES).T
    row = np.clip(row + down, 0, cliff.rows - 1)
    column = np.clip(column + right, 0, cliff.columns - 1)
    cell = row * cliff.columns + column
    goal, fall = cell == cliff.goal, (cell > cliff.start) & (cell < cliff.goal)
    reward = np.where(goal, AT_THE_GOAL, np.where(fall, IN_THE_CLIFF, ON_THE_WAY))
    return Moves(cell.astype(np.int32), reward.astype(np.float32), goal | fall)


def step(table: Moves, limit: int, cell: Any, time: Any, action: Any) -> tuple[Any, Any, Any, Any]:
    """Take one move at `time` (0 for the first of an episode); return next cell, reward, terminated, truncated.

    Arguments may be single numbers or arrays of one shape, NumPy or JAX (then `table` too).

    >>> cliff = Cliff()
    >>> cell, reward, terminated, truncated = step(moves(cliff), cliff.limit, cliff.start, 0, UP)
    >>> int(cell), float(reward), bool(terminated), bool(truncated)
    (24, -1.0, False, False)
    """
    terminated = table.terminal[cell, action]
    truncated = (time + 1 >= limit) & ~terminated
    return table.cell[cell, action], table.reward[cell, action], terminated, truncated


def shortest_path(cliff: Cliff) -> list[int]:
    """Find the cells of a shortest path from start to goal, both included, by breadth-first search.

    It runs along the cliff: 13 moves on the 4×12 grid, 51 on the 4×50 one.

    >>> len(shortest_path(Cliff())) - 1, len(shortest_path(Cliff(columns=50, limit=100))) - 1
    (13, 51)
    """
    table = moves(cliff)
    came_from: dict[int, int] = {cliff.start: cliff.start}
    frontier = deque([cliff.start])
    while frontier:
        cell = frontier.popleft()
        for action in range(ACTIONS):
            reached = int(table.cell[cell, action])
            fell = table.terminal[cell, action] and reached != cliff.goal
            if reached not in came_from and not fell:
                came_from[reached] = cell
                frontier.append(reached)
    path = [cliff.goal]
    while path[-1] != cliff.start:
        path.append(came_from[path[-1]])
    return path[::-1]


def cautious_path(cliff: Cliff) -> list[int]:
    """List the cells of the safe path along the top row, the blue arrow of `fig:cw`.

    >>> len(cautious_path(Cliff())) - 1
    17
    """
    up = [cliff.start - cliff.columns * k for k in range(cliff.rows)]
    along = [up[-1] + k for k in range(1, cliff.columns)]
    down = [along[-1] + cliff.columns * k for k in range(1, cliff.rows)]
    return up + along + down


def path_return(cliff: Cliff, path: list[int]) -> float:
    """Add up the extrinsic reward of a path from start to goal, undiscounted.

    >>> path_return(Cliff(), shortest_path(Cliff())), path_return(Cliff(), cautious_path(Cliff()))
    (88.0, 84.0)
    """
    return AT_THE_GOAL + ON_THE_WAY * (len(path) - 2)
