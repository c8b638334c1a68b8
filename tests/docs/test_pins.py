"""Each environment has a lock, each dependency its reason, and each extra a name that every pip finds."""

import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {".venv": "constraints.txt", "hosts": "constraints-hosts.txt", "floors": "constraints-floors.txt"}
"""Name of an environment's folder → its lock."""
LIBRARY, LAB = (tomllib.loads((ROOT / path).read_text()) for path in ("pyproject.toml", "lab/pyproject.toml"))


def normalised(name: str) -> str:
    """Return a package's or an extra's name as indexes and build backends write it (PEP 503, PEP 685)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []
    versions = {normalised(line.partition("==")[0]): line.partition("==")[2] for line in lines}
    assert len(versions) == len(lines), "one version each"
    return versions


@pytest.mark.parametrize("lock", LOCKS.values())
def test_a_lock_has_one_version_of_everything(lock: str) -> None:
    assert len(locked(lock)) > 20


def installed() -> tuple[dict[str, str], dict[str, str]]:
    """Return what this environment's own folder has, and its lock; not the copies that Ray puts on the path."""
    lock = LOCKS.get(Path(sys.prefix).name)
    if lock is None:
        pytest.skip("this environment was not set up by make")
    folders = sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")})
    found = {normalised(one.name): one.version.partition("+")[0] for one in distributions(path=folders)}
    return {name: found[name] for name in found.keys() - {"payback", "payback-lab"}}, locked(lock)


def test_what_is_locked_is_installed_in_that_version() -> None:
    found, lock = installed()
    assert {"numpy", "pytest"} <= found.keys()
    assert {name: found[name] for name in found.keys() & lock.keys() if found[name] != lock[name]} == {}


def test_torch_is_installed_first_and_as_locked() -> None:
    """What asks for any Torch would fetch the newest one, and gigabytes of accelerator libraries."""
    recipes = re.findall(r"torch==([\d.]+)", (ROOT / "Makefile").read_text())
    assert len(recipes) == 2
    assert set(recipes) == {locked(lock)["torch"] for lock in LOCKS.values()}


def test_every_dependency_has_its_reason() -> None:
    needed = [*LIBRARY["build-system"]["requires"]]
    for project in (LIBRARY["project"], LAB["project"]):
        needed += [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    groups = chain.from_iterable(LIBRARY["dependency-groups"].values())
    needed += [requirement for requirement in groups if isinstance(requirement, str)]
    names = {re.split(r"[\[<>=]", name)[0] for name in needed} - {"payback"}
    reasons = (ROOT / "CONTRIBUTING.md").read_text().split("**Dependencies**")[1]
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){name}(?![\w-])", reasons)] == []


FIND_EXTRA = """
import sys
sys.path.insert(0, sys.argv[1])
from pip._vendor.pkg_resources import safe_extra
for name in sys.argv[2:]:
    print(safe_extra(name))
"""


def test_every_extra_is_found_by_the_pip_that_this_python_brings() -> None:
    """pip 23.2.1, of Python 3.11.7 and 3.12.1, looks for `[rl_zoo]` in metadata that say `rl-zoo`, and only warns."""
    bundled = find_spec("ensurepip._bundled")
    wheels = (
        [path for place in bundled.submodule_search_locations for path in Path(place).glob("pip-*.whl")]
        if bundled
        else []
    )
    if not wheels:
        pytest.skip("this Python brings no pip")
    extras = list(LIBRARY["project"]["optional-dependencies"])
    found = subprocess.run(
        [sys.executable, "-I", "-c", FIND_EXTRA, str(wheels[0]), *extras], capture_output=True, text=True
    )
    if "No module named" in found.stderr:
        pytest.skip("a later pip, which normalises what is typed")
    assert found.stdout.split() == [normalised(extra) for extra in extras], found.stderr


def test_commits_are_formatted_by_the_locked_ruff() -> None:
    (revision,) = re.findall(r"ruff-pre-commit\n +rev: v([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert revision == locked("constraints.txt")["ruff"]
