"""Logs as people really have them: judged right, or refused in one clear sentence."""

import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import payback
from payback import audit, audit_file
from payback.auditing.hypotheses import Cause
from payback.cli import main

from .test_audit import GAMMA, log
from .test_log_file import flat, write


def test_a_last_axis_of_one_is_dropped(tmp_path) -> None:
    F, shaped, dones = log()
    found = audit(shaped[..., None], dones[..., None], GAMMA, rewards=F[..., None])
    assert found.ok
    assert len(found.episodes.leak) == dones.sum()
    assert audit(shaped[..., None], dones, GAMMA).ok
    np.savez(tmp_path / "log.npz", shaped=shaped[..., None], done=dones[..., None])
    assert audit_file(tmp_path / "log.npz", GAMMA).ok
    with pytest.raises(ValueError, match=r"give \(rows,\) or \(steps, environments\)"):
        audit(np.zeros((4, 3, 2)), np.ones((4, 3, 2), bool), GAMMA)


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_terminated_and_truncated_replace_done(kind, tmp_path) -> None:
    _, shaped, dones = log()
    table = flat(shaped, dones)
    ends = table.pop("done")
    half = np.arange(len(ends)) % 2 == 0
    path = tmp_path / f"log.{kind}"
    write(path, table | {"terminated": ends & half, "truncated": ends & ~half})
    found = audit_file(path, GAMMA)
    assert found.ok
    assert found.episodes.truncated.any()
    write(path, table | {"terminated": ends})
    with pytest.raises(ValueError, match="or both 'terminated' and 'truncated'"):
        audit_file(path, GAMMA)


@pytest.mark.parametrize("B", [2, 3, 8])
def test_interleaved_environments_without_a_column_are_refused(B, tmp_path) -> None:
    _, shaped, dones = log(B=B)
    with pytest.raises(ValueError, match=f"those of {B} environments in turn"):
        audit(shaped.reshape(-1), dones.reshape(-1), GAMMA)
    write(tmp_path / "log.csv", {"shaped": shaped.reshape(-1), "done": dones.reshape(-1)})
    with pytest.raises(ValueError, match=f"those of {B} environments in turn"):
        audit_file(tmp_path / "log.csv", GAMMA)


def test_carried_truncations() -> None:
    """Ends by truncation that leave their debt are named; if the learner bootstraps there, they are not judged."""
    F, _, dones = log()
    truncated = dones & (np.arange(len(F)) % 2 == 0)[:, None]
    match = payback.match_after(GAMMA, 3)
    state, shaped = match.init(F[0]), []
    for reward, done, cut in zip(F, dones, truncated, strict=True):
        carried, paid = match.update(state, reward, done & ~cut)
        assert match.drop is not None
        state = match.drop(carried, cut)
        shaped.append(paid)
    settled = audit(shaped, dones, GAMMA, truncated=truncated, rewards=F)
    assert settled.causes.keys() == {Cause.UNSETTLED_TRUNCATION}
    assert settled.broken > 0.9 * truncated.sum()
    carried = audit(shaped, dones, GAMMA, truncated=truncated, on_truncation="carry")
    assert carried.ok
    assert carried.carried == truncated.sum()
    assert len(carried.episodes.leak) == (dones & ~truncated).sum()
    with pytest.raises(ValueError, match="on_truncation must be"):
        audit(shaped, dones, GAMMA, on_truncation="drop")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_rounded_logs_are_judged_as_far_as_their_digits_go(decimals, tmp_path) -> None:
    F, shaped, dones = log()
    write(tmp_path / "log.csv", flat(shaped.round(decimals), dones, F))
    found = audit_file(tmp_path / "log.csv", GAMMA)
    assert found.broken == 0
    assert f"rounded to {decimals} decimals" in found.notes[0]
    broken = np.where(dones, F, shaped).round(decimals)
    assert audit(broken, dones, GAMMA, rewards=F).broken > 0.8 * dones.sum()
    assert audit(shaped, dones, GAMMA).notes == []


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_ids_are_only_printed(kind, tmp_path, capsys) -> None:
    """Markup and terminal escapes in an id are shown, not obeyed."""
    F, shaped, dones = log(B=2)
    table = flat(np.where(dones, F, shaped), dones)
    table["env"] = np.array(["[/]", "a\x1b[31mb"])[table["env"]]
    path = tmp_path / f"log.{kind}"
    write(path, table)
    assert main(["audit", str(path), "--gamma", str(GAMMA), "--page", str(tmp_path / "p.html")]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out + (tmp_path / "p.html").read_text()
    assert "[/]" in out
    assert "a\\x1b[31mb" in out


def test_ids_are_of_one_kind_however_the_file_is_cut(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("payback.auditing.read.CSV_ROWS", 4)
    path = tmp_path / "log.csv"
    rows = "".join(f"{name},{paid},{end}\n" for name in "a1" * 4 for paid, end in ((1.0, 0), (-1.0, 1)))
    path.write_text("env,shaped,done\n" + rows)
    found = audit_file(path, 1.0)
    assert found.ok
    assert sorted(set(found.episodes.environment.tolist())) == ["1", "a"]
    path.write_text("env,shaped,done\n" + rows[rows.index("1,") :].replace("a,", "2,") + "a,0,1\n")
    with pytest.raises(ValueError, match="name all of them in one way"):
        audit_file(path, 1.0)


def test_a_field_of_a_million_characters(tmp_path) -> None:
    long = "x" * 1_000_000
    path = tmp_path / "log.csv"
    for text in (f"env,shaped,done\n{long},0,1\n", f"env,shaped,done\n{long[:100_000]},0,1\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"log.csv: .*(larger than field limit|100,000 characters)"):
            audit_file(path, GAMMA)
    path.write_text(f"shaped,done\n{'1' * 100_000}z,1\n")
    with pytest.raises(ValueError, match="no number") as error:
        audit_file(path, GAMMA)
    assert len(str(error.value)) < 300
    pq.write_table(pa.table({"env": [long], "shaped": [0.0], "done": [True]}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="1,000,000 characters"):
        audit_file(tmp_path / "log.parquet", GAMMA)
    np.savez(tmp_path / "log.npz", env=np.array([long]), shaped=np.zeros(1), done=np.ones(1, bool))
    with pytest.raises(ValueError, match="1,000,000 characters"):
        audit_file(tmp_path / "log.npz", GAMMA)


BOUNDED = """
import resource, sys
from payback import audit_file
resource.setrlimit(resource.RLIMIT_AS, (800_000_000, 800_000_000))
found = audit_file(sys.argv[1], 0.9)
print(found.ok, found.rows)
"""


@pytest.mark.slow
def test_an_npz_beyond_memory_is_streamed(tmp_path) -> None:
    """0.9 GB of zeros, which are small on the disk, with 0.8 GB of address space."""
    path, rows = tmp_path / "log.npz", 100_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, dtype in (("shaped", np.float64), ("done", np.bool_)):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(
                    file,
                    {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (rows,)},
                )
                block = np.zeros(1_000_000, dtype)
                if name == "done":
                    block[-1] = True
                for _ in range(rows // len(block)):
                    file.write(block.tobytes())
    run = subprocess.run([sys.executable, "-c", BOUNDED, str(path)], capture_output=True, text=True)
    assert run.stdout.split() == ["True", str(rows)], run.stderr


def test_npz_by_columns_cut_short_or_with_objects(tmp_path) -> None:
    _, shaped, dones = log()
    path = tmp_path / "log.npz"
    np.savez(path, shaped=np.asfortranarray(shaped), done=np.asfortranarray(dones))
    with pytest.raises(ValueError, match=r"np\.ascontiguousarray"):
        audit_file(path, GAMMA)
    np.savez(path, shaped=np.array([None, 1.0]), done=np.ones(2, bool))
    with pytest.raises(ValueError, match="holds Python objects"):
        audit_file(path, GAMMA)
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("shaped.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (5,)})
            file.write(b"1234")
        archive.writestr("done.npy", b"nonsense")
    with pytest.raises(ValueError, match="is not a NumPy array"):
        audit_file(path, GAMMA)


def test_flags_are_zero_or_one() -> None:
    assert audit([1.0, -1.0], np.array([0, 1], np.uint8), 1.0).ok
    assert audit([1.0, -1.0], [0.0, 1.0], 1.0).ok
    for wrong in (0.5, np.nan, 2.0):
        with pytest.raises(ValueError, match=r"row 0 has done .* true or false"):
            audit([1.0, -1.0], [wrong, 1.0], 1.0)


@pytest.mark.parametrize("kind", ["parquet", "npz"])
@pytest.mark.parametrize("name", ["terminated", "truncated"])
def test_the_two_kinds_of_end_are_flags_like_done(name, kind, tmp_path) -> None:
    """As booleans 0.5 and NaN would be ends, and the rows two finished episodes."""
    path, shaped = tmp_path / f"log.{kind}", np.array([1.0, -1.0, 1.0, -1.0])
    ends = {"terminated": np.array([0.0, 1.0, 0.0, 0.0]), "truncated": np.array([0.0, 0.0, 0.0, 1.0])}
    write(path, {"shaped": shaped, **ends})
    assert audit_file(path, 1.0).ok
    for wrong in (0.5, np.nan, 2.0):
        ends[name][2] = wrong
        write(path, {"shaped": shaped, **ends})
        with pytest.raises(ValueError, match=rf"log\.{kind}: row 2 has {name} .* true or false"):
            audit_file(path, 1.0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_environment_without_an_id_is_refused(wrong, tmp_path) -> None:
    """NaN is unequal to itself, so that each of its rows would be an environment of its own."""
    for ids, row in (([wrong, wrong], 0), ([0.0, wrong], 1)):
        with pytest.raises(ValueError, match=f"audit: row {row} has environment {wrong}; fix the log"):
            audit([1.0, -1.0], [0, 1], 1.0, environments=ids)
    assert audit([1.0, -1.0, 0.0], [0, 1, 1], 1.0, environments=[0, 0, wrong], valid=[1, 1, 0]).ok
    (tmp_path / "log.csv").write_text(f"env,shaped,done\n0,1,0\n0,-1,1\n{wrong},1,1\n")
    with pytest.raises(ValueError, match=rf"log\.csv: row 2 has environment {wrong}; fix the log"):
        audit_file(tmp_path / "log.csv", 1.0)


def test_a_missing_id_among_python_objects_is_refused() -> None:
    """As columns of pandas hold it."""
    with pytest.raises(ValueError, match="row 1 has environment nan"):
        audit([1.0, -1.0], [0, 1], 1.0, environments=np.array([0, np.nan], dtype=object))


@pytest.mark.parametrize("wrong", ["nan", "inf", "-1"])
def test_a_tolerance_is_a_size(wrong, tmp_path, capsys) -> None:
    with pytest.raises(ValueError, match=f"tolerance must be a finite number, at least 0, got {wrong}"):
        audit([1.0, -1.0], [0, 1], 1.0, tolerance=float(wrong))
    write(tmp_path / "log.csv", {"shaped": np.array([1.0, -1.0]), "done": np.array([False, True])})
    assert main(["audit", str(tmp_path / "log.csv"), "--gamma", "1", f"--tolerance={wrong}"]) == 2
    assert "tolerance must be" in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "log.csv"), "--gamma", "1", "--tolerance=0"]) == 0


@pytest.mark.parametrize("name", ["log.csv", "LOG.CSV", "other.parquet", "."])
def test_the_page_never_overwrites_a_log(name, tmp_path, capsys) -> None:
    _, shaped, dones = log()
    write(tmp_path / "log.csv", flat(shaped, dones))
    before = (tmp_path / "log.csv").read_bytes()
    assert main(["audit", str(tmp_path / "log.csv"), "--gamma", str(GAMMA), "--page", str(tmp_path / name)]) == 2
    assert "ends in .html" in capsys.readouterr().err
    assert (tmp_path / "log.csv").read_bytes() == before
    linked = tmp_path / "page.html"
    linked.symlink_to(tmp_path / "log.csv")
    assert main(["audit", str(tmp_path / "log.csv"), "--gamma", str(GAMMA), "--page", str(linked)]) == 2
    assert (tmp_path / "log.csv").read_bytes() == before
