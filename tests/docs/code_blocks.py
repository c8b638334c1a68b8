"""The Python blocks of a page, and how they are run."""

import os
import re
import sys
import warnings
from contextlib import chdir
from pathlib import Path
from unittest import mock


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return each ```python block with the line it starts at."""
    return [
        (text[: found.start(1)].count("\n") + 1, found.group(1))
        for found in re.finditer(r"^```python[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    ]


def as_program(text: str) -> str:
    """Put the blocks at the lines where they stand, so that a traceback names the page's own line."""
    lines = [""] * (text.count("\n") + 1)
    for first, block in python_blocks(text):
        for k, line in enumerate(block.splitlines()):
            lines[first - 1 + k] = line
    return "\n".join(lines)


def run(page: Path, folder: Path) -> None:
    """Run a page's blocks as one program, in a folder of its own and in this process: importing Torch takes seconds."""
    program = compile(as_program(page.read_text()), str(page), "exec")
    environment = mock.patch.dict(os.environ, {"MPLBACKEND": "agg"})
    with chdir(folder), environment, warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside the tests: a warning ends no program
        exec(program, {"__name__": "__main__", "__file__": str(page)})
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
