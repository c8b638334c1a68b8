"""The README's Python blocks run in order as one program, and what it installs is there."""

import re
import tomllib
from pathlib import Path

import pytest

from .code_blocks import run

ROOT = Path(__file__).parents[2]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_blocks_run(tmp_path: Path):
    run(ROOT / "README.md", tmp_path)


def test_it_installs_from_a_clone_only():
    """payback is on no index: `pip install payback` would fail."""
    advertised = [line for page in PAGES for line in re.findall(r"pip install [^`\n]*", page.read_text())]
    assert any("'.[sb3]'" in line for line in advertised)
    assert [line for line in advertised if "payback" in line.partition("#")[0]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_extra_is_spelled_as_it_is_defined(page: Path):
    """pip before 24 looks for an extra by the name you type and only warns if there is none (see test_pins.py)."""
    typed = re.findall(r"pip install [^`\n]*?'\.\[([\w,-]+)\]'", page.read_text())
    assert {name for names in typed for name in names.split(",")} <= EXTRAS
