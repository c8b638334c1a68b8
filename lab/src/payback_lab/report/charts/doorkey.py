"""Pictures of DoorKey as SVG: the environment (`doorkey`), strips of frames of trained agents, and agents that move."""

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
SPEED = 12
"""Steps per second of an animation."""
DENSEST = 50
"""Steps spent in a cell from which on its blue grows no darker."""


def room(film: Film, frame: int, size: int = 8) -> str:
    """Draw one frame: the grid, the time spent in each cell so far (blue), door, key and agent."""
    now = {name: int(part[frame]) for name, part in film.items()}
    spent: dict[tuple[int, int], int] = {}
    for x, y in zip(film["x"][: frame + 1].tolist(), film["y"][: frame + 1].tolist(), strict=True):
        spent[x, y] = spent.get((x, y), 0) + 1
    parts = [_ground(now["wall"], size)]
    parts += [_box(x, y, VISITED, opacity=_blue(n)) for (x, y), n in spent.items()]
    parts.append(_door(now))
    if now["key_x"] >= 0:
        parts.append(_key(now["key_x"], now["key_y"]))
    parts.append(_agent(now))
    return "".join(parts)


def _ground(wall: int, size: int) -> str:
    """Draw what never changes: floor, walls and goal."""
    side, inner = size * CELL, (size - 2) * CELL
    return (
        f'<rect width="{side}" height="{side}" fill="{WALL}"/>'
        f'<rect x="{CELL}" y="{CELL}" width="{inner}" height="{inner}" fill="{FLOOR}"/>'
        f"{_box(wall, 1, WALL, height=size - 2)}{_box(size - 2, size - 2, GOAL)}"
    )


def _blue(steps: int) -> float:
    """Return the opacity of a cell, which grows with the logarithm of the steps spent there."""
    return min(0.85, 0.12 + 0.73 * log(steps) / log(DENSEST))


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
    y = top + len(films) * (side + 26)
    rows.append(_legend(left, y))
    width, height = left + frames * (side + gap), y + CELL + 6
    return _svg(width, height, "".join(rows), "Frames of trained agents, one row per scheme")


def _legend(x: float, y: float) -> str:
    """Explain the blue, and the rim of an agent with the key."""
    parts = []
    for column, steps in enumerate((1, 5, DENSEST)):
        at = x + 70 * column
        parts.append(
            f'<g transform="translate({at} {y})">{_box(0, 0, FLOOR)}{_box(0, 0, VISITED, opacity=_blue(steps))}</g>'
        )
        parts.append(_text(at + CELL + 5, y + 13, f"{steps}{'+' * (steps == DENSEST)}"))
    parts.append(_text(x + 3 * 70, y + 13, "steps spent in a cell; golden rim: the agent has the key"))
    return "".join(parts)


def animation(films: Mapping[str, Film], size: int = 8, steps: int = 240) -> str:
    """Draw agents that move side by side, over and over, for at most so many steps; `films` goes by title.

    Plain SVG animation, which browsers and Markdown viewers play without a script.
    """
    shown = {title: {name: part[:steps] for name, part in film.items()} for title, film in films.items()}
    longest = max(len(film["time"]) for film in shown.values())
    side, gap = size * CELL, 16
    parts = []
    for column, (title, film) in enumerate(shown.items()):
        parts.append(_text(column * (side + gap), 14, str(escape(title)), bold=True))
        moving = _moving(film, size, longest)
        parts.append(f'<g transform="translate({column * (side + gap)} 22)">{moving}</g>')
    width = len(shown) * (side + gap) - gap
    return _svg(width, side + 22, "".join(parts), "Trained agents, side by side")


def _moving(film: Film, size: int, length: int) -> str:
    """Draw one agent's episode; it stands still after its last step."""

    def held(values: Sequence[str]) -> str:
        lasting = [*values, *[values[-1]] * (length - len(values))]
        return f'calcMode="discrete" dur="{length / SPEED:.2f}s" repeatCount="indefinite" values="{";".join(lasting)}"'

    def visible(shown: np.ndarray) -> str:
        return f'<animate attributeName="visibility" {held(np.where(shown, "visible", "hidden").tolist())}/>'

    first = {name: int(part[0]) for name, part in film.items()}
    opened, carried = film["door"] == OPEN, film["key_x"] < 0
    middle = [(x * CELL + CELL / 2, y * CELL + CELL / 2) for x, y in zip(film["x"], film["y"], strict=True)]
    trail = " ".join(f"{x:g},{y:g}" for x, y in middle)
    places = held([f"{x:g} {y:g}" for x, y in middle])
    turns = held([f"{90 * int(way)}" for way in film["direction"]])
    agent = f'<path d="M7 0 L-5 -6 L-5 6 Z" fill="{AGENT}" stroke="#ffffff"/>'
    return "".join(
        (
            _ground(first["wall"], size),
            f'<polyline points="{trail}" fill="none" stroke="{VISITED}" stroke-width="3" stroke-opacity="0.35"/>',
            f"<g>{visible(~opened)}{_door(first)}</g>",
            f"<g>{visible(opened)}{_door({**first, 'door': OPEN})}</g>",
            f"<g>{visible(~carried)}{_key(first['key_x'], first['key_y'])}</g>",
            f'<g><animateTransform attributeName="transform" type="translate" {places}/>'
            f'<g><animateTransform attributeName="transform" type="rotate" {turns}/>{agent}</g></g>',
        )
    )


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
