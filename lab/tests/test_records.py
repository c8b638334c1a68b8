"""One run = one folder: whole or not at all, believed only if the manifest agrees."""

import errno
import hashlib
import io
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from payback_lab import records
from payback_lab.runs import Result, Run
from payback_lab.user_error import UserError, writing_to


@dataclass(frozen=True)
class Config:
    episodes: int = 3
    rates: tuple[float, ...] = (0.1, 1 / 3)


RUN = Run("cliff", None, None, "grm-10", 3, Config())
MADE = {"created": "now", "command": "payback-lab run cliff"}


def result(shift: float = 0.0) -> Result:
    columns = {
        "return": np.array([1.5, 2.5, 0.1], np.float32) + np.float32(shift),
        "length": np.arange(3, dtype=np.int32),
    }
    arrays = {"q": np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7, "empty": np.zeros((0, 2))}
    return Result(
        columns, arrays, {"greedy_return": np.float32(0.1), "n": np.int64(3), "ok": True, "never": None, "s": "ü"}
    )


def write(out: Path, run: Run = RUN, shift: float = 0.0, version: int = 1) -> Path:
    records.write(out, run, result(shift), version, MADE)
    return out / run.id


def test_what_is_written_is_read_back_to_the_bit(tmp_path: Path) -> None:
    record = records.read(write(tmp_path))
    wanted = result()
    for name, column in wanted.columns.items():
        assert record.result.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(record.result.columns[name], column)
    for name, array in wanted.arrays.items():
        assert record.result.arrays[name].dtype == array.dtype
        assert record.result.arrays[name].shape == array.shape
        np.testing.assert_array_equal(record.result.arrays[name], array)
    assert record.result.summary == {
        "greedy_return": float(np.float32(0.1)),
        "n": 3,
        "ok": True,
        "never": None,
        "s": "ü",
    }
    assert record.made == MADE
    assert record.identity["config"] == {"episodes": 3, "rates": [0.1, 1 / 3]}
    assert record.identity["learner_version"] == 1


def test_the_bytes_do_not_depend_on_when_they_were_written(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    for name in (*records.FILES, records.MANIFEST):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_sound_record_is_never_overwritten(tmp_path: Path) -> None:
    folder = write(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write(tmp_path, shift=100.0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [truncate, flip, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", [*records.FILES, records.MANIFEST])
def test_every_damage_is_seen_named_and_repaired(tmp_path: Path, name: str, harm) -> None:
    folder = write(tmp_path)
    assert records.flaw(folder) is None
    harm(folder / name)
    # A bit of the manifest that is not part of a checksum shows as the file it speaks of.
    named = records.flaw(folder)
    assert named is not None
    assert name in named or name == records.MANIFEST
    with pytest.raises(records.Damaged):
        records.read(folder)
    write(tmp_path)
    assert records.flaw(folder) is None


def test_nothing_but_the_record_is_left(tmp_path: Path) -> None:
    folder = write(tmp_path)
    truncate(folder / "curve.parquet")
    (folder.parent / ".seed3.draft").mkdir()  # left behind by a kill -9
    write(tmp_path)
    assert [path.name for path in folder.parent.iterdir()] == ["seed3"]


@pytest.mark.parametrize("step", range(14))
def test_an_error_at_any_step_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    count = iter(range(100))

    def failing(function):
        def call(*arguments, **options):
            if next(count) == step:
                raise OSError(errno.ENOSPC, "No space left on device")
            return function(*arguments, **options)

        return call

    for name in ("fsync", "rename", "open"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    monkeypatch.setattr(Path, "mkdir", failing(Path.mkdir))
    try:
        with writing_to(tmp_path):
            write(tmp_path)
    except UserError as error:
        assert "full" in str(error)  # noqa: PT017 - with so many steps, the last may not fail
    else:
        assert next(count) <= step
    monkeypatch.undo()
    assert records.folders(tmp_path) in ([], [tmp_path / RUN.id])
    assert all(records.flaw(folder) is None for folder in records.folders(tmp_path))
    assert not list(tmp_path.rglob(".*"))
    write(tmp_path)
    assert records.flaw(tmp_path / RUN.id) is None


def test_folders_are_found_in_order(tmp_path: Path) -> None:
    for seed in (10, 2):
        write(tmp_path, replace(RUN, seed=seed))
    write(tmp_path, replace(RUN, ablation="wide-rnd", seed=0))
    write(tmp_path, Run("doorkey", None, "a0.02-g0.995", "im", 1, Config()))
    names = [folder.relative_to(tmp_path).as_posix() for folder in records.folders(tmp_path)]
    assert names == [
        "cliff/grm-10/seed2",
        "cliff/grm-10/seed10",
        "cliff+wide-rnd/grm-10/seed0",
        "doorkey/a0.02-g0.995/im/seed1",
    ]


def test_records_of_another_config_or_version_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    records.refuse_others(tmp_path, [RUN, replace(RUN, scheme="none")], 1)
    with pytest.raises(UserError, match=r"learner_version 1, not 2.*another --out"):
        records.refuse_others(tmp_path, [RUN], 2)
    # Another scheme of the same experiment must not be made with another config beside it either.
    longer = replace(RUN, scheme="none", config=Config(episodes=5000))
    with pytest.raises(UserError, match=r"cliff/grm-10/seed3 is of another kind \(episodes 3, not 5000\)"):
        records.refuse_others(tmp_path, [longer], 1)
    records.refuse_others(tmp_path, [replace(longer, ablation="wide-rnd")], 1)
    records.refuse_others(tmp_path, [replace(longer, setting="a0.1")], 1)


def test_a_field_that_is_new_or_gone_is_another_config(tmp_path: Path) -> None:
    folder = write(tmp_path)
    kept = json.loads((folder / "config.json").read_text())
    del kept["identity"]["config"]["rates"]
    kept["identity"]["config"]["old"] = 1
    (folder / "config.json").write_text(json.dumps(kept))
    with pytest.raises(UserError, match="rates absent, not"):
        records.refuse_others(tmp_path, [RUN], 1)


def test_a_folder_that_was_moved_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    folder.rename(folder.parent / "seed4")
    with pytest.raises(UserError, match="it holds the run cliff/grm-10/seed3"):
        records.refuse_others(tmp_path, [RUN], 1)


def test_a_config_that_cannot_be_read_is_damage_not_another_kind(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for text in ("{", "[]", '{"identity": {}}', '{"identity": 3}'):
        (folder / "config.json").write_text(text)
        records.refuse_others(tmp_path, [RUN], 2)
        assert records.flaw(folder) == "config.json is not what was written (its checksum differs)"


def rewritten(folder: Path, name: str, data: bytes) -> None:
    """Put other bytes in, with a manifest that agrees: as someone does who means it."""
    (folder / name).write_bytes(data)
    manifest = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in records.FILES}
    (folder / records.MANIFEST).write_text(json.dumps(manifest))


def npz(**arrays) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def parquet(**columns) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def config(**changes) -> bytes:
    identity = records.identity(RUN, 1) | changes
    return json.dumps({"identity": identity, "made": MADE}).encode()


HOSTILE = {
    "a list": ("config.json", b"[]"),
    "nothing": ("config.json", b""),
    "no identity": ("config.json", b'{"made": {}}'),
    "deep": ("config.json", b"[" * 100_000),
    "not UTF-8": ("config.json", b"\xff\xfe"),
    "a seed that is a text": ("config.json", config(seed="3")),
    "a seed that is a flag": ("config.json", config(seed=True)),
    "a scheme that climbs": ("config.json", config(scheme="../../..")),
    "a scheme with a slash": ("config.json", config(scheme="a/b/c/d")),
    "a config that is a list": ("config.json", config(config=[])),
    "made of a number": ("config.json", config().replace(json.dumps(MADE).encode(), b"3")),
    "no Parquet": ("curve.parquet", b"PAR1nonsensePAR1"),
    "texts in a curve": ("curve.parquet", parquet(**{"return": ["a", "b"]})),
    "lists in a curve": ("curve.parquet", parquet(**{"return": [[1.0], [2.0]]})),
    "no zip": ("arrays.npz", b"PK\x03\x04"),
    "pickled objects": ("arrays.npz", npz(q=np.array([{"a": 1}], dtype=object))),
    "figures that are a list": ("summary.json", b"[1, 2]"),
    "figures of lists": ("summary.json", b'{"greedy_return": [1]}'),
    "figures that are NaN": ("summary.json", b'{"greedy_return": NaN}'),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_contents_with_a_manifest_that_agrees_are_one_sentence(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path)
    name, data = HOSTILE[kind]
    rewritten(folder, name, data)
    assert records.flaw(folder) is None  # the checksums are right
    with pytest.raises(records.Damaged, match=f"{name} does not hold what a record holds") as found:
        records.read(folder)
    assert len(str(found.value)) < 400
    assert "\n" not in str(found.value)


def test_what_json_and_npz_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'greedy_return' is nan: use None"):
        records.write(tmp_path, RUN, Result({}, {}, {"greedy_return": float("nan")}), 1, MADE)
    with pytest.raises(TypeError, match="'q' holds Python objects"):
        records.write(tmp_path, RUN, Result({}, {"q": np.array([{}], dtype=object)}), 1, MADE)
    assert records.folders(tmp_path) == []
