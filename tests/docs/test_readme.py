"""The README's Python blocks run in order as one program, and what it installs is there."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import PPO

from .code_blocks import run

ROOT = Path(__file__).parents[2]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Training is cut short here: what the full one reaches is in docs/results/curiosity.md."""
    learn, asked = PPO.learn, []

    def short(model: PPO, total_timesteps: int, **options: Any) -> PPO:
        asked.append(total_timesteps)
        return learn(model, 1024, **options)

    monkeypatch.setattr(PPO, "learn", short)
    run(ROOT / "README.md", tmp_path)
    assert asked == [80_000]
    printed = capsys.readouterr().out
    assert re.search(r"before: 0\.\d+\nafter:  0\.\d+\n", printed)
    assert "bonus of the episode, raw: 46.39, with GRM: 0.00" in printed


def test_it_installs_from_a_clone_only():
    """payback is on no index: `pip install payback` would fail."""
    advertised = [line for page in PAGES for line in re.findall(r"pip install [^`\n]*", page.read_text())]
    assert any("'.[sb3]'" in line for line in advertised)
    assert [line for line in advertised if "payback" in line.partition("#")[0]] == []


def test_every_extra_is_spelled_as_it_is_defined():
    """pip before 24 looks for an extra by the name you type and only warns if there is none (see test_pins.py)."""
    typed = [
        (page.name, name)
        for page in PAGES
        for names in re.findall(r"pip install [^`\n]*?'\.\[([\w,-]+)\]'", page.read_text())
        for name in names.split(",")
    ]
    assert len(typed) > 10
    assert [(page, name) for page, name in typed if name not in EXTRAS] == []
