"""Ids of environments that come as text: not too long to hold, numbers where they are numbers, safe to print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LONGEST = 200
"""Characters of an id. NumPy gives every row of a column the room of its longest text."""
SHOWN = 24
"""Characters of an id that are printed."""


def refuse_long_id(path: Path, row: int, texts: list[str]) -> None:
    """Raise if an id is too long to be one."""
    if max(map(len, texts), default=0) > LONGEST:
        bad = next(k for k, text in enumerate(texts) if len(text) > LONGEST)
        raise ValueError(
            f"{path}: the environment of row {row + bad} is a text of {len(texts[bad]):,} characters, more than "
            f"{LONGEST}; name the right column with --environment"
        )


def ids_of(texts: list[str], as_texts: bool = False) -> np.ndarray:
    """Return ids read from text: whole numbers if all are, numbers if all are, else (or `as_texts`) the texts.

    >>> ids_of(["0", "1"]), ids_of(["a", "1"])
    (array([0, 1]), array(['a', '1'], dtype='<U1'))
    """
    for kind in () if as_texts else (int, float):
        try:
            return np.array([kind(text) for text in texts])
        except (ValueError, OverflowError):
            pass
    return np.array(texts)


def printable(key: Any) -> str:
    """Return an id for a terminal: control characters as escapes, so that they do nothing; long ids are cut.

    >>> printable("a\\x1b[31mb"), printable("[/]"), len(printable("x" * 1000))
    ('a\\\\x1b[31mb', '[/]', 24)
    """
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(key)[: SHOWN + 1])
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
