"""Reading the columns of a log in batches, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from payback.auditing.parts import parts_of
from payback.auditing.read_csv import read_csv
from payback.auditing.read_npz import read_npz
from payback.auditing.read_parquet import read_parquet
from payback.auditing.rows import Table

Names = dict[str, str]
"""Our name of a column → the log's."""
FORMATS: dict[str, Callable[[Path, Callable[[list[str]], Names]], Iterator[tuple[int, Table]]]] = {
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".csv": read_csv,
    ".npz": read_npz,
}


def read_batches(path: Path, names: Names) -> Iterator[tuple[int, Table]]:
    """Yield (number of the first row, columns by our names) of a log, in order.

    `names` says what each of our columns is called in the log. Rows that cannot be read are named and refused. Of a
    folder, the parts that a `Recorder` wrote are read one after the other.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no log {path}")
    row = 0
    for part in parts_of(path) if path.is_dir() else [path]:
        if part.suffix.lower() not in FORMATS:
            kind = part.suffix or "one without a suffix"
            raise ValueError(f"{part}: a log is a .parquet, .csv or .npz file, or a recorder's folder, not {kind}")
        count = 0
        for first, table in FORMATS[part.suffix.lower()](part, lambda there, part=part: choose(part, there, names)):
            count = first + len(table["shaped"])
            yield row + first, table
        row += count


def choose(path: Path, there: list[str], names: Names) -> Names:
    """Return our name → the log's, for the columns that are there; say which are missing."""
    found = {ours: theirs for ours, theirs in names.items() if theirs in there}
    if "shaped" not in found:
        raise ValueError(_missing(path, there, names, "shaped"))
    if "done" in found:
        found.pop("terminated", None)
    elif not {"terminated", "truncated"} <= set(found):
        # One of the two alone is not enough, because the other kind of ending would run two episodes together.
        raise ValueError(_missing(path, there, names, "done"))
    return found


def _missing(path: Path, there: list[str], names: Names, needed: str) -> str:
    shown = ", ".join(repr(name[:40]) for name in there[:30]) or "none"
    also = " (or both 'terminated' and 'truncated')" if needed == "done" else ""
    return f"{path} has no column {names[needed]!r}{also}; it has {shown}: name the right one with --{needed}"
