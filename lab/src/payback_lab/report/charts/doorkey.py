"""Pictures of DoorKey as SVG: the environment (`doorkey`), and strips of frames of trained agents."""

from collections.abc import Mapping, Sequence
from math import log

import numpy as np
from markupsafe import escape

Film = Mapping[str, np.ndarray]
"""The states of one episode, (steps,) per field of `environments.doorkey.State`."""

CELL = 18
FRAMES = 6
FLOOR, WALL, GOAL, DOOR, KEY, AGENT, VISITED = (
    "#f3f1ea",
    "#6b6b66",
    "#9ccf8a",
    "#9a5b13",
    "#d9a400",
    "#c8102e",
    "#0b5cad",
)
OPEN, LOCKED = 0, 2


def room(film: Film, frame: int, size: int = 8) -> str:
    """Draw one frame: the grid, the time spent in each cell so far (blue), door, key and agent."""
    now = {name: int(part[frame]) for name, part in film.items()}
    spent: dict[tuple[int, int], int] = {}
    for x, y in zip(film["x"][: frame + 1].tolist(), film["y"][: frame + 1].tolist(), strict=True):
        spent[x, y] = spent.get((x, y), 0) + 1
    side = size * CELL
    inner = side - 2 * CELL
    parts = [
        f'<rect width="{side}" height="{side}" fill="{WALL}"/>',
        f'<rect x="{CELL}" y="{CELL}" width="{inner}" height="{inner}" fill="{FLOOR}"/>',
        _box(now["wall"], 1, WALL, height=size - 2),
        _box(size - 2, size - 2, GOAL),
    ]
    # The colour of a cell grows with the logarithm of the steps spent there, up to 50.
    parts += [_box(x, y, VISITED, opacity=min(0.85, 0.12 + 0.73 * log(n) / log(50))) for (x, y), n in spent.items()]
    parts.append(_door(now))
    if now["key_x"] >= 0:
        parts.append(_key(now["key_x"], now["key_y"]))
    parts.append(_agent(now))
    return "".join(parts)


def picture(film: Film, size: int = 8) -> str:
    """Draw the environment alone, at the start of an episode."""
    side = size * CELL
    return _svg(side, side, room(film, 0, size), "A DoorKey grid at the start of an episode")


def strips(films: Mapping[str, Film], size: int = 8, frames: int = FRAMES) -> str:
    """Draw a row of frames per agent, evenly spaced over its episode; `films` goes by title."""
    left, top, gap = 190, 4, 8
    side = size * CELL
    rows = []
    for row, (title, film) in enumerate(films.items()):
        y = top + row * (side + 26)
        length = len(film["time"])
        steps = "step" if length == 1 else "steps"
        rows.append(_text(0, y + 24, str(escape(title)), bold=True) + _text(0, y + 42, f"{length} {steps}"))
        for column, frame in enumerate(spaced(length, frames)):
            x = left + column * (side + gap)
            rows.append(f'<g transform="translate({x} {y})">{room(film, frame, size)}</g>')
            rows.append(_text(x, y + side + 13, f"step {frame}"))
    width, height = left + frames * (side + gap), top + len(films) * (side + 26)
    return _svg(width, height, "".join(rows), "Frames of trained agents, one row per scheme")


def spaced(length: int, frames: int) -> Sequence[int]:
    """Choose frames evenly from first to last, no more than there are.

    >>> spaced(101, 5), spaced(2, 5)
    ([0, 25, 50, 75, 100], [0, 1])
    """
    return np.unique(np.linspace(0, length - 1, frames).round().astype(int)).tolist()


def _box(x: int, y: int, fill: str, *, height: int = 1, opacity: float = 1.0) -> str:
    shade = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    return f'<rect x="{x * CELL}" y="{y * CELL}" width="{CELL}" height="{height * CELL}" fill="{fill}"{shade}/>'


def _door(now: Mapping[str, int]) -> str:
    x, y, half = now["wall"] * CELL, now["door_row"] * CELL, CELL / 2
    if now["door"] == OPEN:
        frame = f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{FLOOR}"/>'
        return frame + f'<rect x="{x}" y="{y}" width="{CELL}" height="3" fill="{DOOR}"/>'
    shut = f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{DOOR}"/>'
    lock = f'<circle cx="{x + half}" cy="{y + half}" r="2.5" fill="{KEY}"/>' if now["door"] == LOCKED else ""
    return shut + lock


def _key(column: float, row: float) -> str:
    x, y = column * CELL + CELL / 2, row * CELL + CELL / 2
    bow = f'<circle cx="{x}" cy="{y - 3}" r="3" fill="none" stroke="{KEY}" stroke-width="2"/>'
    return bow + f'<path d="M{x} {y} v7 m0 -1 h3 m-3 -3 h2" stroke="{KEY}" stroke-width="2" fill="none"/>'


def _agent(now: Mapping[str, int]) -> str:
    """Draw the agent as a triangle that points where it looks, with a golden rim while it carries the key."""
    x, y = now["x"] * CELL + CELL / 2, now["y"] * CELL + CELL / 2
    rim = f' stroke="{KEY}" stroke-width="2.5"' if now["key_x"] < 0 else ' stroke="#ffffff" stroke-width="1"'
    turn = f'transform="translate({x} {y}) rotate({90 * now["direction"]})"'
    return f'<path d="M7 0 L-5 -6 L-5 6 Z" fill="{AGENT}"{rim} {turn}/>'


def _text(x: float, y: float, words: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="12" font-family="sans-serif" fill="#33332f"{weight}>{words}</text>'


def _svg(width: float, height: float, content: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="max-width: 100%; height: auto" role="img" aria-label="{escape(label)}">{content}</svg>'
    )
