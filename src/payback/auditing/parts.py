"""The parts of a recorded log: numbered Parquet files in a folder of their own."""

from __future__ import annotations

import os
import re
from pathlib import Path

PART = re.compile(r"part-(\d{6,})\.parquet")
WORKER = re.compile(r"worker-\d+")
"""The folder of one of several workers."""
UNFINISHED = re.compile(r"\.part-\d{6,}\.parquet(\.\d+)?\.unfinished")
"""A part that was being written when the recorder was stopped; it is not read."""


def part_path(folder: Path, number: int) -> Path:
    """Return where part `number` lies."""
    return folder / f"part-{number:06d}.parquet"


def unfinished_path(folder: Path, number: int) -> Path:
    """Return where this process writes part `number` before it is renamed into place."""
    return folder / f".part-{number:06d}.parquet.{os.getpid()}.unfinished"


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in order; raise if there are none or one between two others is missing.

    Where several workers record at once, each has a folder of parts inside this one.
    """
    workers = sorted(path for path in folder.iterdir() if WORKER.fullmatch(path.name) and path.is_dir())
    parts = [part for one in (folder, *workers) for part in parts_in(one)]
    if not parts:
        raise ValueError(
            f"{folder} holds no part-000000.parquet: it is not the folder of a Recorder, or nothing is in it"
        )
    return parts


def parts_in(folder: Path) -> list[Path]:
    """Return the parts that lie in the folder itself, in order."""
    numbers = sorted(int(found[1]) for path in folder.iterdir() if (found := PART.fullmatch(path.name)))
    for expected, number in enumerate(numbers):
        if number != expected:
            raise ValueError(
                f"{folder}: {part_path(folder, expected).name} is missing; a log with a gap cannot be judged"
            )
    return [part_path(folder, number) for number in numbers]
