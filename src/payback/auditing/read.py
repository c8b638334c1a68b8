"""Reading columns of a log in batches: Parquet, CSV or NPZ."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 1 << 20
"""Rows per batch of a Parquet file or an NPZ; a CSV's are fewer, as text takes more room."""
CSV_ROWS = 1 << 17
NUMBERS = ("shaped", "reward", "gamma", "step")
FLAGS = ("done", "terminated", "truncated", "valid")
TRUE, FALSE = {"true", "1", "1.0", "t", "yes"}, {"false", "0", "0.0", "f", "no"}

Table = dict[str, np.ndarray]


def read_batches(path: Path, names: dict[str, str]) -> Iterator[tuple[int, Table]]:
    """Yield (number of the first row, columns by our names) of a log, in order.

    `names` says what each of our columns is called in the log. Rows that cannot be read are named and refused.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no log {path}")
    kinds = {".parquet": _parquet, ".pq": _parquet, ".csv": _csv, ".npz": _npz}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"{path}: a log is a .parquet, .csv or .npz file, not {path.suffix or 'one without a suffix'}")
    for row, table in kinds[path.suffix.lower()](path, names):
        if "done" not in table:
            table["done"] = table.pop("terminated").astype(bool) | table.pop("truncated").astype(bool)
        _refuse_not_finite(path, row, table)
        yield row, table


def choose(path: Path, there: list[str], names: dict[str, str]) -> dict[str, str]:
    """Return our name → the log's, for the columns that are there; say which are missing."""
    found = {ours: theirs for ours, theirs in names.items() if theirs in there}
    if "done" not in found and {"terminated", "truncated"} <= set(there):
        found |= {"terminated": "terminated", "truncated": "truncated"}
    for needed, option in (("shaped", "--shaped"), ("done", "--done")):
        if needed not in found and not (needed == "done" and "terminated" in found):
            raise ValueError(
                f"{path} has no column {names[needed]!r}; it has {', '.join(map(repr, there)) or 'none'}: "
                f"name the right one with {option}"
            )
    return found


def _parquet(path: Path, names: dict[str, str]) -> Iterator[tuple[int, Table]]:
    try:
        parquet, types = import_module("pyarrow.parquet"), import_module("pyarrow.types")
    except ModuleNotFoundError:
        raise ValueError("reading Parquet needs pyarrow: pip install 'payback[audit]'") from None
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {error}") from None
    with file:
        chosen = choose(path, file.schema_arrow.names, names)
        for ours, theirs in chosen.items():
            kind = file.schema_arrow.field(theirs).type
            numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
            if not numeric and ours != "environment":
                raise ValueError(f"{path}: column {theirs!r} holds {kind}, not numbers")
        row = 0
        for batch in file.iter_batches(batch_size=ROWS, columns=list(chosen.values())):
            table = {}
            for ours, theirs in chosen.items():
                column = batch.column(batch.schema.get_field_index(theirs))
                if column.null_count:
                    bad = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise ValueError(f"{path}: row {row + bad} has no {theirs!r}; mend the log, no row is skipped")
                values = column.to_numpy(zero_copy_only=False)
                table[ours] = values.astype(str) if values.dtype == object else values
            yield row, table
            row += batch.num_rows


def _npz(path: Path, names: dict[str, str]) -> Iterator[tuple[int, Table]]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an NPZ file, or is damaged")
    with np.load(path, allow_pickle=False) as file:
        chosen = choose(path, list(file.files), names)
        try:
            table = {ours: file[theirs] for ours, theirs in chosen.items()}
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
    shape = table["shaped"].shape
    if len(shape) == 2 and "environment" not in table:
        table["environment"] = np.broadcast_to(np.arange(shape[1]), shape)
    for ours, column in table.items():
        if column.shape == () and ours == "gamma":
            table[ours] = column = np.broadcast_to(column, shape)
        if column.shape != shape:
            raise ValueError(f"{path}: {names.get(ours, ours)!r} has shape {column.shape}, {names['shaped']!r} {shape}")
        if column.dtype.kind not in "fiub" and ours != "environment":
            raise ValueError(f"{path}: column {names.get(ours, ours)!r} holds {column.dtype}, not numbers")
    flat = {ours: column.reshape(-1) for ours, column in table.items()}
    for row in range(0, int(np.prod(shape)), ROWS):
        yield row, {ours: column[row : row + ROWS] for ours, column in flat.items()}


def _csv(path: Path, names: dict[str, str]) -> Iterator[tuple[int, Table]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        chosen = choose(path, header, names)
        rows: list[list[str]] = []
        row = 0
        for line in reader:
            if len(line) != len(header):
                raise ValueError(
                    f"{path}: row {row + len(rows)} has {len(line)} fields, the header {len(header)}; no row is skipped"
                )
            rows.append(line)
            if len(rows) == CSV_ROWS:
                yield row, _parsed(path, row, header, chosen, rows)
                row, rows = row + len(rows), []
        if rows:
            yield row, _parsed(path, row, header, chosen, rows)


def _parsed(path: Path, row: int, header: list[str], chosen: dict[str, str], rows: list[list[str]]) -> Table:
    table: Table = {}
    for ours, theirs in chosen.items():
        at = header.index(theirs)
        texts = [line[at].strip() for line in rows]
        if ours == "environment":
            table[ours] = np.array(texts)
            continue
        parse: Any = _flag if ours in FLAGS else float
        try:
            table[ours] = np.array([parse(text) for text in texts])
        except ValueError:
            bad = next(k for k, text in enumerate(texts) if not _parses(parse, text))
            raise ValueError(
                f"{path}: row {row + bad} has {texts[bad]!r} for {theirs!r}, which is no "
                f"{'flag' if ours in FLAGS else 'number'}; mend the log, no row is skipped"
            ) from None
    return table


def _flag(text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise ValueError(text)


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _refuse_not_finite(path: Path, row: int, table: Table) -> None:
    for name in NUMBERS:
        column = table.get(name)
        if column is not None and column.dtype.kind == "f" and not np.isfinite(column).all():
            bad = int(np.flatnonzero(~np.isfinite(column))[0])
            raise ValueError(f"{path}: row {row + bad} has {name} {column[bad]}; mend the log, no row is skipped")
