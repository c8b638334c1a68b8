"""What is written is there in full or not at all, and a draft never stays."""

import os
from pathlib import Path

import pytest

from payback_lab.atomic_write import remove_file, write_file, write_folder


def test_a_file_is_replaced_and_its_folder_made(tmp_path: Path) -> None:
    for data in (b"first", b"second"):
        write_file(tmp_path / "new" / "page", data)
        assert (tmp_path / "new" / "page").read_bytes() == data
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page"]


def test_a_folder_is_replaced_with_all_it_held(tmp_path: Path) -> None:
    write_folder(tmp_path / "run", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "run", {"c": b"3"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == {"c": b"3"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path, monkeypatch, name: str) -> None:
    write_file(tmp_path / "page", b"old")

    def fail(*_) -> None:
        # At this moment the new content is in the draft alone.
        assert (tmp_path / "page").read_bytes() == b"old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "page", b"new")
    assert (tmp_path / "page").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_what_a_killed_writer_left_is_overwritten_or_removed(tmp_path: Path) -> None:
    (tmp_path / ".page.draft").write_bytes(b"half")
    write_file(tmp_path / "page", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    (tmp_path / ".page.draft").write_bytes(b"half")
    remove_file(tmp_path / "page")
    remove_file(tmp_path / "page")
    assert not list(tmp_path.iterdir())
    for stale in (".run.draft", ".run.old"):
        (tmp_path / stale).mkdir()
        (tmp_path / stale / "half").write_bytes(b"")
    write_folder(tmp_path / "run", {"a": b"1"})
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "a"]
