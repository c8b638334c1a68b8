"""Layouts: the grids on which episodes start, drawn by the `minigrid` package's own generator.

A pool of layouts is drawn once and kept in a file; an episode starts on one of them at random. The file says which
version of the package drew it, because another version may draw other layouts.
"""

import io
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from payback_lab.atomic_write import write_file
from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.tasks import Payment, Task, entry_of, refuse_limit, refuse_payment

POOL = 10_000
"""How many layouts a pool has unless told otherwise."""


class Layouts(NamedTuple):
    """Hold a pool of P starts."""

    grid: np.ndarray
    """uint16 (P, height·width), row by row."""
    x: np.ndarray
    """int32 (P,), column of the agent."""
    y: np.ndarray
    """int32 (P,), row of the agent."""
    direction: np.ndarray
    """int32 (P,), 0 right, 1 down, 2 left, 3 up."""


def make_task(name: str, payment: Payment = "one", max_steps: int | None = None) -> Task:
    """Describe a task by its name, with another time limit if one is given.

    >>> make_task("KeyCorridorS3R1").max_steps
    270
    """
    entry, env = entry_of(name), package_env(name)
    limit = int(env.max_steps) if max_steps is None else max_steps
    refuse_payment(payment)
    refuse_limit(limit)
    return Task(name, env.width, env.height, limit, entry.target, bool(env.see_through_walls), entry.noisy, payment)


def package_env(name: str) -> Any:
    """Return the package's own environment of a task."""
    try:
        from minigrid import envs
    except ImportError as error:
        raise ImportError("the layouts come from the minigrid package: pip install minigrid") from error
    entry = entry_of(name)
    maker = getattr(envs, entry.maker)
    return (_with_ball(maker) if entry.noisy else maker)(**dict(entry.arguments))


def _with_ball(maker: Any) -> Any:
    """Return MultiRoom with a ball in its first room, placed by the package's own random numbers."""
    from minigrid.core.world_object import Ball

    class NoisyTV(maker):
        def _gen_grid(self, width: int, height: int) -> None:
            super()._gen_grid(width, height)
            first = self.rooms[0]
            self.place_obj(Ball(), first.top, first.size)

    return NoisyTV


def draw_layouts(name: str, count: int = POOL, first_seed: int = 0) -> Layouts:
    """Draw the layouts of the seeds `first_seed`, `first_seed` + 1, …"""
    env = package_env(name)
    grid = np.empty((count, env.height * env.width), np.uint16)
    agent = np.empty((3, count), np.int32)
    for n in range(count):
        env.reset(seed=first_seed + n)
        grid[n] = encode(env)
        agent[:, n] = *env.agent_pos, env.agent_dir
    return Layouts(grid, *agent)


def encode(env: Any) -> np.ndarray:
    """Return a package environment's grid as tile numbers, row by row, with what its boxes contain."""
    return np.array([_tile_of(cell) for cell in env.grid.grid], dtype=np.uint16)


def _tile_of(thing: Any) -> np.uint16:
    if thing is None:
        return tiles.EMPTY
    return tiles.tile(*thing.encode(), contents=0 if thing.contains is None else int(_tile_of(thing.contains)))


def load_layouts(name: str, count: int = POOL, folder: Path | None = None) -> Layouts:
    """Read a task's pool from the cache, or draw it and put it there.

    A pool that another version of the package has drawn raises a ValueError that says what to do.
    """
    path = (folder or cache_folder()) / f"{name}-{count}.npz"
    if not path.exists():
        layouts = draw_layouts(name, count)
        _write(path, layouts)
        return layouts
    with np.load(path, allow_pickle=False) as file:
        drawn_by = str(file["version"])
        if drawn_by != version("minigrid"):
            raise ValueError(
                f"the layouts in {path} were drawn by minigrid {drawn_by}, and {version('minigrid')} is installed, "
                "which may draw others: delete the file to draw them again, or install that version"
            )
        return Layouts(*(file[field] for field in Layouts._fields))


def cache_folder() -> Path:
    """Return where pools are kept: below XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "payback-lab" / "layouts"


def _write(path: Path, layouts: Layouts) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, version=np.str_(version("minigrid")), **layouts._asdict())
    write_file(path, content.getvalue())
