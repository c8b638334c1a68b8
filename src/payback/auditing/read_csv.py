"""Reading a CSV log in batches."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.environment_ids import ids_of, refuse_long_id
from payback.auditing.rows import Table

ROWS = 1 << 17
"""Rows per batch; fewer than of the other formats, because text takes more room."""
FLAGS = ("done", "terminated", "truncated", "valid")
TRUE, FALSE = {"true", "1", "1.0", "t", "yes"}, {"false", "0", "0.0", "f", "no"}


def read_csv(path: Path, choose: Callable[[list[str]], dict[str, str]]) -> Iterator[tuple[int, Table]]:
    """Yield (number of the first row, columns by our names)."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = _lines(path, csv.reader(file))
        header = next(lines, list[str]())
        chosen = choose(header)
        row, texts = 0, False
        while rows := list(islice(lines, ROWS)):
            table = _parsed(path, row, header, chosen, rows, texts)
            texts = _ids_are_texts(path, row, table, texts)
            yield row, table
            row += len(rows)


def _lines(path: Path, reader: Any) -> Iterator[list[str]]:
    """Yield the header's fields, then each row's, of which there must be as many.

    What the csv module refuses, such as a field of 131,072 characters, is one sentence.
    """
    width: int | None = None
    for row in count(-1):
        try:
            line: list[str] = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: line {reader.line_num + 1} cannot be read as CSV: {error}") from None
        width = len(line) if width is None else width
        if len(line) != width:
            raise ValueError(f"{path}: row {row} has {len(line)} fields, the header {width}; no row is skipped")
        yield line


def _ids_are_texts(path: Path, row: int, table: Table, before: bool) -> bool:
    """Return whether ids are texts; refuse texts after numbers, because 1 and "1" would be two environments."""
    now = "environment" in table and table["environment"].dtype.kind == "U"
    if row and now and not before:
        raise ValueError(
            f"{path}: the environments before row {row} are numbers, later ones are not; name all of them in one way"
        )
    return now


def _parsed(
    path: Path, row: int, header: list[str], chosen: dict[str, str], rows: list[list[str]], texts_before: bool
) -> Table:
    table: Table = {}
    for ours, theirs in chosen.items():
        at = header.index(theirs)
        texts = [line[at].strip() for line in rows]
        if ours == "environment":
            refuse_long_id(path, row, texts)
            table[ours] = ids_of(texts, texts_before)
            continue
        parse: Any = _flag if ours in FLAGS else float
        try:
            table[ours] = np.array([parse(text) for text in texts])
        except ValueError:
            bad = next(k for k, text in enumerate(texts) if not _parses(parse, text))
            raise ValueError(
                f"{path}: row {row + bad} has {texts[bad][:40]!r} for {theirs!r}, which is no "
                f"{'flag' if ours in FLAGS else 'number'}; fix the log, no row is skipped"
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
