"""The README is one screen: short, its Python blocks run in order as one program, and what it points to is there."""

import re
from pathlib import Path

from .code_blocks import as_program, python_blocks, run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_it_is_short():
    assert len(README.splitlines()) <= 120
    assert len(re.findall(r"!\[|<img", README)) == 1, "one picture"


def test_the_blocks_run(tmp_path: Path):
    assert len(python_blocks(README)) >= 2
    done = run(as_program(README), tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_it_points_to_is_there():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) > 5
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_it_installs_from_a_clone_only():
    """payback is on no index: `pip install payback` would fail."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    advertised = [line for page in pages for line in re.findall(r"pip install [^`\n]*", page.read_text())]
    assert any("'.[sb3]'" in line for line in advertised)
    assert [line for line in advertised if "payback" in line.partition("#")[0]] == []


def test_a_broken_block_is_seen(tmp_path: Path):
    text = "# title\n\n```python\nx = 1\n```\n\nwords\n\n```python\nassert x == 2\n```\n\n```sh\nexit 1\n```\n"
    done = run(as_program(text), tmp_path)
    assert done.returncode != 0
    assert "line 10" in done.stderr
    assert run(as_program(text.replace("== 2", "== 1")), tmp_path).returncode == 0
