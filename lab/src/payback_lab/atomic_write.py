"""Write files and folders whole or not at all: a reader sees the old content or the new, also after kill -9.

The new content is written to a draft beside its place, flushed to the disk, and renamed, because a rename within one
file system is atomic. There may be one writer at a time for a place; a draft that a killed writer left is overwritten.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def write_file(path: Path, data: bytes) -> None:
    """Write one file, replacing what is there; make the folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(path)
    try:
        _write_flushed(draft, data)
        os.replace(draft, path)
        _flush_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files, replacing what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, old = _draft(path), path.with_name(f".{path.name}.old")
    try:
        for stale in (draft, old):
            shutil.rmtree(stale, ignore_errors=True)
        draft.mkdir()
        for name, data in files.items():
            _write_flushed(draft / name, data)
        _flush_folder(draft)
        if path.exists():
            os.rename(path, old)  # a folder cannot be renamed onto another
        os.rename(draft, path)
        _flush_folder(path.parent)
    finally:
        for left in (draft, old):
            shutil.rmtree(left, ignore_errors=True)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there, and the draft that a killed writer may have left beside it."""
    for left in (path, _draft(path)):
        left.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.draft")


def _write_flushed(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
