"""Reading an NPZ log in batches: its arrays are streamed out of the archive, because they may be larger than memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from payback.auditing.environment_ids import LONGEST
from payback.auditing.rows import Table, refuse_shapes

ROWS = 1 << 20
WHOLE = 1 << 28
"""Bytes of an array that may be read at once where it cannot be streamed."""


@dataclass
class _Array:
    """One array of the archive, being read from its beginning."""

    file: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype
    whole: np.ndarray | None = None
    """All of it, where it is stored column by column."""

    def rows(self, first: int, count: int) -> np.ndarray:
        """Return the next `count` values, which are those from `first` on."""
        if self.whole is not None:
            return self.whole[first : first + count]
        data = self.file.read(count * self.dtype.itemsize)
        if len(data) < count * self.dtype.itemsize:
            raise EOFError("the file ends early")
        return np.frombuffer(data, dtype=self.dtype)


def read_npz(path: Path, choose: Callable[[list[str]], dict[str, str]]) -> Iterator[tuple[int, Table]]:
    """Yield (number of the first row, columns by our names); (T, B) blocks row by row."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an NPZ file, or is damaged")
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            chosen = choose(list(members))
            arrays = {
                ours: _opened(path, theirs, stack.enter_context(archive.open(members[theirs])))
                for ours, theirs in chosen.items()
            }
            yield from _batches(path, arrays)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _batches(path: Path, arrays: dict[str, _Array]) -> Iterator[tuple[int, Table]]:
    shape = arrays["shaped"].shape
    gamma = None
    if "gamma" in arrays and math.prod(arrays["gamma"].shape) == 1:
        gamma = arrays.pop("gamma").rows(0, 1)
    refuse_shapes(str(path), {ours: (array.shape, array.dtype) for ours, array in arrays.items()}, shape)
    total = math.prod(shape)
    for row in range(0, total, ROWS):
        count = min(ROWS, total - row)
        table = {ours: array.rows(row, count) for ours, array in arrays.items()}
        if len(shape) == 2 and "environment" not in table:
            table["environment"] = np.arange(row, row + count) % shape[1]
        if gamma is not None:
            table["gamma"] = np.broadcast_to(gamma, (count,))
        yield row, table


def _opened(path: Path, name: str, file: IO[bytes]) -> _Array:
    """Read an array's header; axes of length one at the end, as in (T, B, 1), are dropped."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
    except ValueError as error:
        raise ValueError(f"{path}: {name!r} is not a NumPy array: {error}") from None
    if dtype.hasobject:
        raise ValueError(f"{path}: {name!r} holds Python objects, which are not loaded; save numbers or text")
    if dtype.kind == "U" and dtype.itemsize > 4 * LONGEST:
        raise ValueError(
            f"{path}: {name!r} holds texts of up to {dtype.itemsize // 4:,} characters, more than {LONGEST}"
        )
    whole = None
    if by_columns and len(shape) > 1:
        size = math.prod(shape) * dtype.itemsize
        if size > WHOLE:
            raise ValueError(
                f"{path}: {name!r} is stored column by column and too large to be turned in memory; save "
                "np.ascontiguousarray of it"
            )
        whole = np.frombuffer(file.read(size), dtype=dtype).reshape(shape, order="F").reshape(-1)
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    return _Array(file, shape, dtype, whole)
