"""Each environment that the Makefile sets up is pinned by a file of its own, and each dependency has its reason."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = re.findall(r"^\.envs/([\w-]+)/\.ready:.*", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_there_are_environments_of_their_own() -> None:
    assert {"hosts", "floors"} <= set(ENVIRONMENTS)


@pytest.mark.parametrize("name", ["", *ENVIRONMENTS])
def test_every_package_of_an_environment_has_one_version(name: str) -> None:
    pins = ROOT / (f"constraints-{name}.txt" if name else "constraints.txt")
    lines = [line for line in pins.read_text().splitlines() if line and not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []
    packages = [line.partition("==")[0].lower() for line in lines]
    assert len(packages) == len(set(packages))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_makefile_installs_an_environment_with_its_pins(name: str) -> None:
    rule = (ROOT / "Makefile").read_text().split(f".envs/{name}/.ready:")[1].split("\n\n")[0]
    assert f"constraints-{name}.txt" in rule.splitlines()[0]
    assert rule.count("pip") == rule.count(f"host_pip,{name})")
    assert "==" not in rule.replace("torch==2.13.0", "")


@pytest.mark.parametrize("project", ["pyproject.toml", "lab/pyproject.toml"])
def test_every_dependency_has_its_reason(project: str) -> None:
    stated = tomllib.loads((ROOT / project).read_text())
    project_table = stated["project"]
    needed = [*stated["build-system"]["requires"], *project_table["dependencies"]]
    needed += chain.from_iterable(project_table["optional-dependencies"].values())
    names = {re.split(r"[\[<>=]", name)[0] for name in needed} - {"payback"}
    reasons = (ROOT / "CONTRIBUTING.md").read_text().split("**Dependencies**")[1]
    assert len(names) > 5
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){name}(?![\w-])", reasons)] == []
