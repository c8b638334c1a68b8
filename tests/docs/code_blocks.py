"""The Python blocks of a page, and how they are run."""

import os
import re
import subprocess
import sys
from pathlib import Path


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


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own, as a reader would."""
    path = folder / "page.py"
    path.write_text(program)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
