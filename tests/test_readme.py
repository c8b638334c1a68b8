"""The README's Python blocks run, in order, as one program."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return each ```python block with the line it starts at."""
    return [
        (text[: found.start(1)].count("\n") + 1, found.group(1))
        for found in re.finditer(r"^```python[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    ]


def as_program(text: str) -> str:
    """Put the blocks at the lines where they stand, so that a traceback names the README's own line."""
    lines = [""] * (text.count("\n") + 1)
    for first, block in python_blocks(text):
        for k, line in enumerate(block.splitlines()):
            lines[first - 1 + k] = line
    return "\n".join(lines)


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "README.py"
    path.write_text(program)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_blocks_run(tmp_path: Path):
    text = README.read_text()
    assert python_blocks(text), "the README shows no code"
    done = run(as_program(text), tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_block_is_eight_lines_that_work_alone(tmp_path: Path):
    first = python_blocks(README.read_text())[0][1]
    assert len([line for line in first.splitlines() if line.strip()]) <= 8
    done = run(first, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_broken_block_is_seen(tmp_path: Path):
    text = "# title\n\n```python\nx = 1\n```\n\nwords\n\n```python\nassert x == 2\n```\n\n```sh\nexit 1\n```\n"
    done = run(as_program(text), tmp_path)
    assert done.returncode != 0
    assert "line 10" in done.stderr
    assert run(as_program(text.replace("== 2", "== 1")), tmp_path).returncode == 0
