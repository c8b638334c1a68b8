"""Logs that are damaged, huge or meant to harm: one line on stderr and status 2, never 1, which means "leaks"."""

import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from payback.cli import main

LINES = "shaped,done\n1,0\n-1,1\n"


def encrypted(path) -> None:
    np.savez(path, shaped=np.array([1.0, -1.0]), done=np.array([False, True]))
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(signature, at + 1)
    path.write_bytes(data)


def two_columns_of_one_name(path) -> None:
    column = pa.array([1.0, -1.0])
    pq.write_table(pa.Table.from_arrays([column, column, pa.array([False, True])], ["shaped", "shaped", "done"]), path)


def two_arrays_of_one_name(path) -> None:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("shaped", "shaped", "done"):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros(2))


def long_header(path, length: int = 1_500_000_000) -> None:
    """An array whose header says that it has 1.5 GB."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("shaped", "done"):
            with archive.open(f"{name}.npy", "w") as file:
                file.write(b"\x93NUMPY\x02\x00" + length.to_bytes(4, "little") + bytes(1_000_000))


def long_ids(path) -> None:
    """3,000 rows with an id of a megabyte each: 3 GB in memory if each row has its own."""
    ids = pa.array(["x" * 1_000_000] * 300)
    table = pa.table({"env": ids, "shaped": np.zeros(300), "done": np.ones(300, bool)})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(table)


def endless(path) -> None:
    path.symlink_to("/dev/zero")


def one_long_line(path) -> None:
    with open(path, "wb") as file:
        file.truncate(3_000_000_000)


CASES = {
    "encrypted.npz": (encrypted, "encrypted"),
    "twice.parquet": (two_columns_of_one_name, "2 columns 'shaped'"),
    "twice.csv": (lambda path: path.write_text("shaped,shaped,done\n1,1,0\n-1,-1,1\n"), "2 columns 'shaped'"),
    "twice.npz": (two_arrays_of_one_name, "2 columns 'shaped'"),
    "header.npz": (long_header, "header"),
    "ids.parquet": (long_ids, "1,000,000 characters"),
    "zero.csv": (endless, "a device"),
    "line.csv": (one_long_line, "characters"),
    "a\x1b[31mb\nc.txt": (lambda path: path.write_text(""), "a\\x1b[31mb c.txt"),
}

LIMITED = """
import resource, sys
import pyarrow.parquet
from payback.cli import main
if sys.platform == "linux":  # macOS refuses the limit
    resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, 2_500_000_000))
sys.exit(main(["audit", sys.argv[1], "--gamma", "1"]))
"""


@pytest.mark.parametrize("name", CASES)
def test_one_line_and_status_2(name, tmp_path) -> None:
    make, words = CASES[name]
    make(tmp_path / name)
    command = [sys.executable, "-c", LIMITED, str(tmp_path / name)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2, run.stderr[-500:]
    assert run.stderr.count("\n") == 1
    assert words in run.stderr
    assert "\x1b" not in run.stderr
    assert run.stdout == ""


def test_a_file_name_with_escapes_is_shown_not_obeyed(tmp_path, capsys) -> None:
    path = tmp_path / "a\x1b[31mb.csv"
    path.write_text("shaped,done\n1,0\n1,1\n")
    page = tmp_path / "p\x1b[31m.html"
    assert main(["audit", str(path), "--gamma", "1", "--page", str(page)]) == 1
    assert "\x1b" not in capsys.readouterr().out + page.read_text()


def test_an_unexpected_error_is_not_a_leak(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "log.csv").write_text(LINES)
    monkeypatch.setattr("payback.cli.printable", lambda *given: 1 / 0)
    monkeypatch.setattr("numpy.array", lambda *given: 1 / 0)
    assert main(["audit", str(tmp_path / "log.csv"), "--gamma", "1"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path) -> None:
    """`payback audit log | head -0`."""
    (tmp_path / "log.csv").write_text("env,shaped,done\n" + "".join(f"{k},1,1\n" for k in range(50)))
    command = [sys.executable, "-m", "payback", "audit", str(tmp_path / "log.csv"), "--gamma", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_help_defines_what_is_checked(capsys) -> None:
    for command in ([], ["audit"], ["check"]):
        with pytest.raises(SystemExit, match="0"):
            main([*command, "--help"])
        said = capsys.readouterr().out
        assert "the law" not in said
        assert "cancel" in said
    assert "Run the Python file FILE" in said
