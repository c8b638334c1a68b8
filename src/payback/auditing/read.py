"""Read a log in batches, whatever its format: Parquet, CSV, NPZ, or the folder of a `Recorder`."""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from payback.auditing.rows import FLAGS, Log, Table, refuse_shapes

Names = dict[str, str]  # our name of a column → the log's
Choose = Callable[[list[str]], Names]  # picks, from the names of all columns, those that are read
Tables = Iterator[tuple[int, Table]]  # yields the number of the first row and the columns by our names

ROWS = 1 << 20  # rows per batch
LONGEST_ID = 200  # characters of an environment's id. NumPy gives every row of a column the room of its longest text


@dataclass(frozen=True)
class Columns:
    """The names of a log's columns; it must have `shaped`, and `done` or both `terminated` and `truncated`.

    `shaped`: F', the reward that the learner was paid. `done`: whether the transition ended its episode. `environment`:
    which one the row belongs to; without it, the whole log is one. `reward`: F. `lent`: the loan, F − F̄. `gamma`: γ,
    the same in every row. `valid`: false on invalid rows, such as autoreset rows. `step`: a clock that must rise within
    an episode.
    """

    shaped: str = "shaped"
    done: str = "done"
    environment: str = "env"
    reward: str = "reward"
    lent: str = "lent"
    gamma: str = "gamma"
    valid: str = "valid"
    step: str = "step"
    terminated: str = "terminated"
    truncated: str = "truncated"


def open_log(path: str | Path, columns: Columns = Columns()) -> Log:  # noqa: B008
    """Return the file or folder as a log that can be read more than once."""
    path = Path(path)
    return Log(str(path), lambda: _read_parts(path, vars(columns)))


def _read_parts(path: Path, names: Names) -> Tables:
    """Yield the batches of a file, or of the parts of a recorder's folder one after the other."""
    if not path.exists():
        raise FileNotFoundError(f"there is no log {path}")
    row = 0
    for part in parts_of(path) if path.is_dir() else [path]:
        read = FORMATS.get(part.suffix.lower())
        if read is None or not part.is_file():
            kind = "a device" if not part.is_file() else part.suffix or "one without a suffix"
            raise ValueError(f"{part}: a log is a .parquet, .csv or .npz file, or a recorder's folder, not {kind}")
        rows = 0
        for first, table in read(part, lambda there, part=part: _choose(part, there, names)):
            rows = first + len(table["shaped"])
            yield row + first, table
        row += rows


def _choose(path: Path, there: list[str], names: Names) -> Names:
    """Return our name → the log's, for the columns that are there; name the missing and the ambiguous."""
    chosen = {ours: theirs for ours, theirs in names.items() if theirs in there}
    for needed in ("shaped", "done"):
        # One kind of end alone is not enough, because the other would run two episodes together.
        if needed not in chosen and not (needed == "done" and {"terminated", "truncated"} <= set(chosen)):
            shown = ", ".join(repr(name[:40]) for name in there[:30]) or "none"
            also = " (or both 'terminated' and 'truncated')" if needed == "done" else ""
            missing = f"{path} has no column {names[needed]!r}{also}"
            raise ValueError(f"{missing}; it has {shown}: name the right one with --{needed}")
    if "done" in chosen:
        chosen.pop("terminated", None)
    for theirs in chosen.values():
        if there.count(theirs) > 1:
            raise ValueError(f"{path} has {there.count(theirs)} columns {theirs!r}; rename all but one")
    return chosen


PART = re.compile(r"part-(\d{6,})\.parquet")
WORKER = re.compile(r"worker-\d+")  # the folder of one of several workers


def part_path(folder: Path, number: int) -> Path:
    """Return where part `number` lies."""
    return folder / f"part-{number:06d}.parquet"


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in order, those of workers' folders included; raise if there are none or one is missing."""
    workers = sorted(path for path in folder.iterdir() if WORKER.fullmatch(path.name) and path.is_dir())
    parts = [part for one in (folder, *workers) for part in parts_in(one)]
    if not parts:
        raise ValueError(f"{folder} holds no part-000000.parquet: it is not a Recorder's folder, or an empty one")
    return parts


def parts_in(folder: Path) -> list[Path]:
    """Return the parts that lie in the folder itself, in order."""
    numbers = sorted(int(match[1]) for path in folder.iterdir() if (match := PART.fullmatch(path.name)))
    for expected, number in enumerate(numbers):
        if number != expected:
            missing = part_path(folder, expected).name
            raise ValueError(f"{folder}: {missing} is missing; a log with a gap cannot be judged")
    return [part_path(folder, number) for number in numbers]


def refuse_long_ids(path: Path, texts: list[str]) -> None:
    """Raise if an id is too long to be one."""
    longest = max(map(len, texts), default=0)
    if longest > LONGEST_ID:
        what = f"the id of an environment has {longest:,} characters, more than {LONGEST_ID}"
        raise ValueError(f"{path}: {what}; name the right column with --environment")


CSV_ROWS, CSV_CHARACTERS = 1 << 17, 1 << 26  # rows and characters per batch of text, which takes more room
LONGEST_LINE = 1 << 20
TRUE, FALSE = {"true", "1", "1.0", "t", "yes"}, {"false", "0", "0.0", "f", "no"}


def read_csv(path: Path, choose: Choose) -> Tables:
    """Read a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = _fields(path, csv.reader(_lines(path, file)))
        header = next(lines, list[str]())
        chosen, row, texts = choose(header), 0, False
        while rows := _some(lines):
            table = {
                ours: _parsed(path, row, ours, theirs, [line[header.index(theirs)].strip() for line in rows], texts)
                for ours, theirs in chosen.items()
            }
            now = "environment" in table and table["environment"].dtype.kind == "U"
            if row and now and not texts:  # 1 and "1" would be two environments
                what = f"the environments before row {row} are numbers, later ones are not"
                raise ValueError(f"{path}: {what}; name all of them in one way")
            texts = now
            yield row, table
            row += len(rows)


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    """Yield the lines; refuse endless ones, which would fill the memory."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise ValueError(f"{path}: a line has more than {LONGEST_LINE:,} characters; this is no CSV log")
        yield line


def _fields(path: Path, reader: Any) -> Iterator[list[str]]:
    """Yield the header's fields, then each row's, of which there must be as many."""
    width = 0
    try:
        for row, line in enumerate(reader, start=-1):
            width = len(line) if row < 0 else width
            if len(line) != width:
                raise ValueError(f"{path}: row {row} has {len(line)} fields, the header {width}; no row is skipped")
            yield line
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: line {reader.line_num + 1} cannot be read as CSV: {error}") from None


def _some(lines: Iterator[list[str]]) -> list[list[str]]:
    """Return as many of the next rows as are held in memory at once."""
    rows, room = list[list[str]](), CSV_CHARACTERS
    for line in islice(lines, CSV_ROWS):
        rows.append(line)
        room -= sum(map(len, line))
        if room < 0:
            break
    return rows


def _parsed(path: Path, row: int, ours: str, theirs: str, texts: list[str], ids_are_texts: bool) -> np.ndarray:
    if ours == "environment":
        refuse_long_ids(path, texts)
        return ids_of(texts, ids_are_texts)
    parse, values = _flag if ours in FLAGS else float, list[float]()
    for k, text in enumerate(texts):
        try:
            values.append(parse(text))
        except ValueError:
            what = f"{text[:40]!r} for {theirs!r}, which is no {'flag' if ours in FLAGS else 'number'}"
            raise ValueError(f"{path}: row {row + k} has {what}; fix the log, no row is skipped") from None
    return np.array(values)


def ids_of(texts: list[str], as_texts: bool = False) -> np.ndarray:
    """Return ids read from text: whole numbers if all are, numbers if all are, else (or `as_texts`) the texts."""
    for kind in () if as_texts else (int, float):
        try:
            return np.array([kind(text) for text in texts])
        except (ValueError, OverflowError):
            pass
    return np.array(texts)


def _flag(text: str) -> bool:
    if text.lower() in TRUE | FALSE:
        return text.lower() in TRUE
    raise ValueError(text)


LONGEST_HEADER = 10_000  # bytes; NumPy refuses longer ones, too, but only after it has read them


class _Array(NamedTuple):
    """One array of the archive, being read from its beginning."""

    file: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype

    def rows(self, many: int) -> np.ndarray:
        """Return the next `many` values."""
        data = self.file.read(many * self.dtype.itemsize)
        if len(data) < many * self.dtype.itemsize:
            raise EOFError("the file ends early")
        return np.frombuffer(data, dtype=self.dtype)


def read_npz(path: Path, choose: Choose) -> Tables:
    """Read an NPZ file, (T, B) blocks row by row; arrays are streamed, because they may be larger than memory."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an NPZ file, or is damaged")
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            chosen, members = choose(names), dict(zip(names, archive.namelist(), strict=True))
            arrays = {
                ours: _open_array(path, theirs, stack.enter_context(archive.open(members[theirs])))
                for ours, theirs in chosen.items()
            }
            yield from _npz_batches(path, arrays)
    # RuntimeError: the archive is encrypted, or compressed in a way that Python does not know.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _npz_batches(path: Path, arrays: dict[str, _Array]) -> Tables:
    shape, same = arrays["shaped"].shape, dict[str, np.ndarray]()
    if "gamma" in arrays and math.prod(arrays["gamma"].shape) == 1:
        same["gamma"] = arrays.pop("gamma").rows(1)
    refuse_shapes(str(path), {ours: (array.shape, array.dtype) for ours, array in arrays.items()}, shape)
    total = math.prod(shape)
    for row in range(0, total, ROWS):
        many = min(ROWS, total - row)
        table = {ours: array.rows(many) for ours, array in arrays.items()}
        if len(shape) == 2 and "environment" not in table:
            table["environment"] = np.arange(row, row + many) % shape[1]
        yield row, table | {ours: np.broadcast_to(value, (many,)) for ours, value in same.items()}


def _open_array(path: Path, name: str, file: IO[bytes]) -> _Array:
    """Read an array's header; axes of length one at the end, as in (T, B, 1), are dropped."""
    try:
        old = np.lib.format.read_magic(file) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        size = file.read(2 if old else 4)
        header = file.read(min(int.from_bytes(size, "little"), LONGEST_HEADER))
        shape, by_columns, dtype = read_header(io.BytesIO(size + header))
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{path}: {name!r} is not a NumPy array: {error}") from None
    if dtype.hasobject:
        raise ValueError(f"{path}: {name!r} holds Python objects, which are not loaded; save numbers or text")
    if dtype.kind == "U" and dtype.itemsize > 4 * LONGEST_ID:
        length = f"{dtype.itemsize // 4:,} characters, more than {LONGEST_ID}"
        raise ValueError(f"{path}: {name!r} holds texts of up to {length}")
    if by_columns and len(shape) > 1:
        raise ValueError(f"{path}: {name!r} is stored column by column; save np.ascontiguousarray of it")
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    return _Array(file, shape, dtype)


def parquet_module() -> Any:
    """Return pyarrow.parquet, or name the extra to install."""
    # pyarrow imports it with its first table, which fails where Python is ending and a log's last rows are written.
    import_module("concurrent.futures.thread")
    try:
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise ImportError("Parquet logs need pyarrow: pip install 'payback[audit]'") from None


def read_parquet(path: Path, choose: Choose) -> Tables:
    """Read a Parquet file."""
    parquet = parquet_module()
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            chosen = choose(schema.names)
            texts = _text_columns(path, schema, chosen)
        # Texts are read as a dictionary, because a long one may be repeated in every row.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            row = 0
            for batch in file.iter_batches(batch_size=ROWS, columns=list(chosen.values())):
                yield row, {ours: _column(path, row, batch, theirs) for ours, theirs in chosen.items()}
                row += batch.num_rows
    except (import_module("pyarrow").ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {error}") from None


def _text_columns(path: Path, schema: Any, chosen: Names) -> list[str]:
    """Return the ids that are texts; refuse other columns that hold no numbers."""
    types, texts = import_module("pyarrow.types"), list[str]()
    for ours, theirs in chosen.items():
        kind = schema.field(theirs).type
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not numeric and ours != "environment":
            raise ValueError(f"{path}: column {theirs!r} holds {kind}, not numbers")
        if types.is_string(kind) or types.is_large_string(kind):
            texts.append(theirs)
    return texts


def _column(path: Path, row: int, batch: Any, theirs: str) -> np.ndarray:
    column = batch.column(batch.schema.get_field_index(theirs))
    if column.null_count:
        bad = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"{path}: row {row + bad} has no {theirs!r}; fix the log, no row is skipped")
    in_dictionary = hasattr(column, "dictionary")
    values = (column.dictionary if in_dictionary else column).to_numpy(zero_copy_only=False)
    if values.dtype == object:
        ids = [str(x) for x in values]
        refuse_long_ids(path, ids)
        values = np.array(ids)
    return values[column.indices.to_numpy(zero_copy_only=False)] if in_dictionary else values


FORMATS = {".parquet": read_parquet, ".pq": read_parquet, ".csv": read_csv, ".npz": read_npz}
