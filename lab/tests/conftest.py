"""The fake experiment, importable here and in the processes that tests start."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """The fake experiment, under its name on the command line."""
    from payback_lab import experiments

    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(SOURCE)]))
    monkeypatch.setattr(experiments, "MODULES", {"fake": "fake_experiment"})
    return experiments.load("fake")


@pytest.fixture
def payback_process(tmp_path: Path) -> Callable[..., subprocess.Popen]:
    """Start `payback` with the fake experiment as a process of its own."""

    def start(*arguments: str, **environment: str) -> subprocess.Popen:
        path = os.pathsep.join([str(HERE), str(SOURCE)])
        return subprocess.Popen(
            [sys.executable, str(HERE / "run_fake.py"), *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start
