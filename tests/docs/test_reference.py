"""The reference names what is missing, and shows docstrings as they were written."""

import doctest
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import payback

ROOT = Path(__file__).parents[2]


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch):
    """Imports one of the site's own Sphinx extensions."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs installs it")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module


def complaints(extension, monkeypatch: pytest.MonkeyPatch, documented: set[str]) -> list[str]:
    """Return what the build says about public names if only these are documented."""
    names, said = extension("public_names"), []
    monkeypatch.setattr(names.log, "warning", lambda text, *arguments: said.append(text % arguments))
    config = SimpleNamespace(autodoc_mock_imports=["ray", "rllte", "rsl_rl", "gymnax", "skrl"])
    domain = SimpleNamespace(objects=documented)
    names._refuse_missing(SimpleNamespace(config=config), SimpleNamespace(get_domain=lambda _: domain))
    return said


def test_a_name_that_no_page_documents_fails_the_build(extension, monkeypatch: pytest.MonkeyPatch):
    everything = {text.split()[0] for text in complaints(extension, monkeypatch, set())}
    assert {f"payback.{name}" for name in payback.__all__} <= everything
    assert {
        "payback.integrations.sb3.ShapeVectorReward",
        "payback.bonuses.torch.RND",
        "payback.mdp.solve",
    } <= everything
    assert complaints(extension, monkeypatch, everything) == []
    (said,) = complaints(extension, monkeypatch, everything - {"payback.grm"})
    assert said == "payback.grm is public, but on no page of the reference: add it to docs/reference/"


def test_a_name_without_a_docstring_fails_the_build(extension, monkeypatch: pytest.MonkeyPatch):
    everything = {text.split()[0] for text in complaints(extension, monkeypatch, set())}
    monkeypatch.setattr(payback.grm, "__doc__", None)
    assert complaints(extension, monkeypatch, everything) == ["payback.grm is public, but has no docstring"]


def test_docstrings_are_shown_as_they_were_written(extension):
    docstrings = extension("docstrings")
    assert doctest.testmod(docstrings).failed == 0
    assert doctest.testmod(extension("narrow")).failed == 0
    assert sys.modules["docstrings"].__doc__


def test_the_version_is_the_same_everywhere():
    places = ("pyproject.toml", "lab/pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    pattern = r'^(?:version = "|version: |## \[)(\d+\.\d+\.\d+)'
    found = {name: re.search(pattern, (ROOT / name).read_text(), re.MULTILINE) for name in places}
    assert {match and match[1] for match in found.values()} == {payback.__version__}
