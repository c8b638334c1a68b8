"""Reading a Parquet log in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.environment_ids import refuse_long_id
from payback.auditing.rows import Table

ROWS = 1 << 20
NEEDED = "Parquet logs need pyarrow: pip install 'payback[audit]'"


def parquet_module() -> Any:
    """Return pyarrow.parquet, or say which extra to install."""
    try:
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise ImportError(NEEDED) from None


def read_parquet(path: Path, choose: Callable[[list[str]], dict[str, str]]) -> Iterator[tuple[int, Table]]:
    """Yield (number of the first row, columns by our names)."""
    parquet = parquet_module()
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {error}") from None
    with file:
        chosen = choose(file.schema_arrow.names)
        _refuse_text(path, file.schema_arrow, chosen)
        row = 0
        for batch in file.iter_batches(batch_size=ROWS, columns=list(chosen.values())):
            yield row, {ours: _column(path, row, batch, theirs) for ours, theirs in chosen.items()}
            row += batch.num_rows


def _refuse_text(path: Path, schema: Any, chosen: dict[str, str]) -> None:
    types = import_module("pyarrow.types")
    for ours, theirs in chosen.items():
        kind = schema.field(theirs).type
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not numeric and ours != "environment":
            raise ValueError(f"{path}: column {theirs!r} holds {kind}, not numbers")


def _column(path: Path, row: int, batch: Any, theirs: str) -> np.ndarray:
    column = batch.column(batch.schema.get_field_index(theirs))
    if column.null_count:
        bad = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"{path}: row {row + bad} has no {theirs!r}; fix the log, no row is skipped")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype != object:
        return values
    texts = [str(x) for x in values]
    refuse_long_id(path, row, texts)
    return np.array(texts)
