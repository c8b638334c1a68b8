"""A record says from which commit it was made, and whether the code differs from that commit."""

import shutil
import subprocess
from pathlib import Path

import pytest

from payback_lab import provenance

PARTS = ("src/payback", "lab/src/payback_lab")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the library and the lab in their places, and the module as if it ran from there."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for part in PARTS:
        (tmp_path / part).mkdir(parents=True)
        (tmp_path / part / "__init__.py").write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All."]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "lab/src/payback_lab/provenance.py"))
    return tmp_path


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("beside the code")
    head = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert provenance.commit() == head.stdout.strip()


@pytest.mark.parametrize("part", PARTS)
def test_changes_of_library_or_lab_are_said(checkout: Path, part: str) -> None:
    (checkout / part / "__init__.py").write_text("changed = True")
    assert str(provenance.commit()).endswith("+changes")


def test_a_copy_inside_another_repository_has_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = checkout / ".venv/lib/site-packages/payback_lab"
    installed.mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(installed / "provenance.py"))
    assert provenance.commit() is None
