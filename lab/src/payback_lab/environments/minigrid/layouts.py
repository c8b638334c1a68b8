"""Layouts: the grids on which episodes start, drawn by the `minigrid` package's own generator.

A pool of layouts is drawn once and kept in a file; an episode starts on one of them at random. The file says which
version of the package drew it, because another version may draw other layouts.
"""

import io
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from payback_lab.atomic_write import write_file
from payback_lab.environments.minigrid import tiles
from payback_lab.environments.minigrid.tasks import Payment, Task, entry_of, refuse_limit, refuse_payment, short_name
from payback_lab.locks import locked
from payback_lab.user_error import UserError

POOL = 10_000
"""Number of layouts in a pool, unless the task's entry gives another."""


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
    sees_through_walls = bool(env.see_through_walls)
    target = entry.target, entry.target_colour
    return Task(short_name(name), env.width, env.height, limit, *target, sees_through_walls, entry.noisy, payment)


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


def pool_of(name: str) -> int:
    """Return the number of layouts in a task's pool: fewer than `POOL` where drawing is slow.

    >>> pool_of("MultiRoom-N6"), pool_of("MultiRoom-N12-S10")
    (10000, 1000)
    """
    return entry_of(name).pool or POOL


def draw_layouts(name: str, count: int | None = None, first_seed: int = 0) -> Layouts:
    """Draw the layouts of the seeds `first_seed`, `first_seed` + 1, …, `pool_of(name)` of them by default."""
    env, count = package_env(name), pool_of(name) if count is None else count
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


def load_layouts(name: str, count: int | None = None, folder: Path | None = None) -> Layouts:
    """Read a task's pool from the cache, or draw it and put it there; of several processes, one draws.

    A damaged pool, or one drawn by another version of the package, raises a `UserError` that says what to do.
    """
    entry_of(name)
    path = pool_path(name, count, folder)
    folder = path.parent
    if not path.exists():
        try:
            with locked(folder, [path.name]):
                if not path.exists():
                    _write(path, draw_layouts(name, count))
        except (OSError, UserError) as error:
            raise UserError(
                f"The layouts cannot be kept in {folder} ({_reason(error)}): set XDG_CACHE_HOME to a folder that can "
                "be written."
            ) from error
    return _read(path)


def refuse_layouts(task: Task, layouts: Layouts) -> None:
    """Refuse a pool that cannot be this task's."""
    cells = layouts.grid.shape[-1]
    if not len(layouts.x) or cells != task.cells:
        raise ValueError(
            f"the pool has {len(layouts.x)} layouts of {cells} cells, but {task.name} needs at least one, of "
            f'{task.width}×{task.height} cells; draw it with draw_layouts("{task.name}")'
        )


def cache_folder() -> Path:
    """Return where pools are kept: below XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "payback-lab" / "layouts"


def pool_path(name: str, count: int | None = None, folder: Path | None = None) -> Path:
    """Return the file in which a task's pool is kept."""
    return (folder or cache_folder()) / f"{short_name(name)}-{pool_of(name) if count is None else count}.npz"


def _read(path: Path) -> Layouts:
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            drawn_by = str(file["version"])
            layouts = Layouts(*(file[field] for field in Layouts._fields))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise UserError(f"The layouts in {path} are damaged: delete the file to draw them again.") from error
    if drawn_by != version("minigrid"):
        raise UserError(
            f"The layouts in {path} were drawn by minigrid {drawn_by}, and {version('minigrid')} is installed, which "
            "may draw others: delete the file to draw them again, or install that version."
        )
    return layouts


def _write(path: Path, layouts: Layouts) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, version=np.str_(version("minigrid")), **layouts._asdict())
    write_file(path, content.getvalue())


def _reason(error: BaseException) -> str:
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error)
