"""The lab's example runs: four agents learn DoorKey before one's eyes, and their film is drawn."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import SOURCES

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[1] / "examples" / "doorkey_agent.py"
AGENTS = ("no bonus", "raw bonus, tuned", "GRM, D = 30", "GRM as an advantage")


def example(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCES, "COLUMNS": "160"}
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_four_agents_learn_and_their_film_is_drawn(tmp_path: Path):
    # On the smallest grid, whose episodes end after 250 steps at the latest, so that by the last report some have.
    done = example("--updates", "12", "--size", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in AGENTS:
        assert f"{name} " in done.stdout
    last = done.stdout.rpartition("length of an episode")[2]  # the table is printed several times on a slow machine
    assert last.count(", drawn: ") == 4
    assert last.count("24,576") == 4
    for name in ("agents.svg", "agents-moving.svg"):
        assert f"demo/{name}" in done.stdout
        drawn = ElementTree.fromstring((tmp_path / "demo" / name).read_text())
        words = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert sum(word.startswith(tuple(f"{name}, " for name in AGENTS)) for word in words) == 4


@pytest.mark.parametrize("wrong", [("--updates", "0"), ("--size", "4")])
def test_what_cannot_be_watched_is_refused(tmp_path: Path, wrong: tuple[str, str]):
    done = example(*wrong, cwd=tmp_path)
    assert done.returncode == 2
    assert "at least 1 update, and a grid of at least 5×5" in done.stderr
    assert list(tmp_path.iterdir()) == []
