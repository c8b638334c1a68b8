"""The greedy policy that most seeds of a scheme have learned on the cliff: the paper's maps of arrows (`Q_values`).

The grid is that of `fig:cw`: start bottom left, goal bottom right, the cliff between them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

ACTIONS = ("up", "right", "down", "left")
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
NONE = -1


@dataclass(frozen=True)
class Policy:
    """Hold the most common greedy action of each cell; all arrays are (rows, columns)."""

    action: np.ndarray
    """Index into ACTIONS; NONE where no seed prefers any action."""
    share: np.ndarray
    """The share of seeds that take it."""
    value: np.ndarray
    """The mean over seeds of its Q."""


def majority(q: np.ndarray) -> Policy:
    """Find the most common greedy action of each cell; q is (seeds, rows, columns, actions).

    A seed counts only where one action is best, because in a state it never left all are equal. Of two actions that are
    equally common, the one with the higher mean Q is taken.

    >>> q = np.zeros((3, 1, 2, 4)); q[:2, 0, 0, 1] = 5.0; q[2, 0, 0, 3] = 1.0
    >>> p = majority(q)
    >>> p.action.tolist(), p.share.round(2).tolist(), p.value.round(2).tolist()
    ([[1, -1]], [[0.67, 0.0]], [[3.33, 0.0]])
    """
    best = q == q.max(axis=-1, keepdims=True)
    votes = (best & (best.sum(axis=-1, keepdims=True) == 1)).sum(axis=0)
    mean = q.mean(axis=0)
    tied = votes == votes.max(axis=-1, keepdims=True)
    action = np.where(tied, mean, -np.inf).argmax(axis=-1)
    chosen = action[..., None]
    count = np.take_along_axis(votes, chosen, axis=-1)[..., 0]
    value = np.take_along_axis(mean, chosen, axis=-1)[..., 0]
    return Policy(np.where(count > 0, action, NONE), count / len(q), value)


def walk(action: np.ndarray) -> list[tuple[int, int]]:
    """Return the cells on the way from the start to the goal, the cliff, or a cell that was passed before.

    >>> arrows = np.array([[1, 1, 2], [0, -1, -1]])
    >>> walk(arrows)
    [(1, 0), (0, 0), (0, 1), (0, 2), (1, 2)]
    """
    rows, columns = action.shape
    cells = [(rows - 1, 0)]
    while kind(*cells[-1], rows, columns) in ("start", "floor") and action[cells[-1]] != NONE:
        step = np.array(cells[-1]) + MOVES[action[cells[-1]]]
        row, column = np.clip(step, 0, (rows - 1, columns - 1)).tolist()
        if (row, column) in cells:
            return [*cells, (row, column)]
        cells.append((row, column))
    return cells


def kind(row: int, column: int, rows: int, columns: int) -> str:
    """Return what a cell is: "start", "goal", "cliff" or "floor"."""
    if row < rows - 1:
        return "floor"
    return "start" if column == 0 else "goal" if column == columns - 1 else "cliff"


def ground(rows: int, columns: int) -> list[dict[str, Any]]:
    """List the cells of the grid as a chart draws them; the cliff is one wide cell."""
    cells = [{"row": r, "column": c, "kind": kind(r, c, rows, columns)} for r in range(rows) for c in range(columns)]
    cliff = {"row": rows - 1, "column": (columns - 1) / 2, "kind": "cliff", "span": columns - 2}
    return [*(cell for cell in cells if cell["kind"] != "cliff"), cliff]


def outcome(action: np.ndarray) -> str:
    """Describe where the arrows lead.

    >>> outcome(np.array([[1, 1, 2], [0, -1, -1]]))
    'reaches the goal in 4 moves'
    """
    cells = walk(action)
    end, count = kind(*cells[-1], *action.shape), len(cells) - 1
    moves = f"{count} move{'s' if count > 1 else ''}"
    if end == "goal":
        return f"reaches the goal in {moves}"
    if end == "cliff":
        return f"falls off the cliff after {moves}"
    return "goes round in circles" if cells[-1] in cells[:-1] else "stops where no seed has a preference"
