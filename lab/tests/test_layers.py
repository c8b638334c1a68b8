"""The lab's layers: what makes runs knows nothing of the report, and nothing but the report imports Altair or Jinja.

Planning imports nothing that trains."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1] / "src" / "payback_lab"
BELOW = ("environments", "intrinsic", "learners", "running", "records.py", "methods.py", "policy.py", "statistics.py")
ABOVE = ("payback_lab.report", "payback_lab.prior_work", "payback_lab.cli", "altair", "jinja2", "vl_convert")


def imported(code: str) -> set[str]:
    """Return the modules that code imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def forbidden(code: str) -> set[str]:
    return {name for name in imported(code) if any(name == top or name.startswith(f"{top}.") for top in ABOVE)}


@pytest.mark.parametrize("part", BELOW)
def test_what_makes_runs_does_not_import_what_shows_them(part: str) -> None:
    files = list((LAB / part).rglob("*.py")) if (LAB / part).is_dir() else [LAB / part]
    assert files
    assert {file.name: forbidden(file.read_text()) for file in files if forbidden(file.read_text())} == {}


PLAN = """
import sys
from payback_lab import experiments
from payback_lab.runs import Asked
import payback_lab.report.curiosity
for name in experiments.MODULES:
    experiments.load(name).plan(Asked())
print(*{name.split(".")[0] for name in sys.modules})
"""


def test_planning_every_experiment_imports_nothing_that_trains() -> None:
    run = subprocess.run([sys.executable, "-c", PLAN], capture_output=True, text=True, check=True)
    assert not {"jax", "torch", "stable_baselines3", "minigrid", "gymnasium", "ray"} & set(run.stdout.split())
