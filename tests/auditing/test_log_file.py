import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import payback
from payback import audit
from payback.auditing.audit import audit_file
from payback.auditing.hypotheses import Cause
from payback.auditing.read import Columns

from .test_audit import GAMMA, log

KINDS = ["parquet", "csv", "npz"]


def write(path, table: dict[str, np.ndarray]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
    elif path.suffix == ".npz":
        np.savez(path, **table)
    else:
        lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")


def flat(shaped, dones, F=None):
    T, B = shaped.shape
    table = {"env": np.tile(np.arange(B), T), "shaped": shaped.reshape(-1), "done": dones.reshape(-1)}
    return table if F is None else table | {"reward": F.reshape(-1)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_on_disk_is_judged_like_one_in_memory(kind, tmp_path, monkeypatch) -> None:
    for rows in ("ROWS", "CSV_ROWS"):
        monkeypatch.setattr(f"payback.auditing.read.{rows}", 137)
    F, shaped, dones = log()
    shaped[np.flatnonzero(dones[:, 1])[3], 1] = F[np.flatnonzero(dones[:, 1])[3], 1]
    path = tmp_path / f"log.{kind}"
    write(path, flat(shaped, dones, F))
    found = audit_file(path, GAMMA)
    memory = audit(shaped, dones, GAMMA, rewards=F)
    assert found.broken == 1
    assert found.rows == shaped.size
    assert found.leaks[0].cause is Cause.UNPAID_END
    assert found.leaks[0].environment == 1
    assert found.leaks[0].episode == 3
    assert memory.leaks[0].amount == pytest.approx(found.leaks[0].amount)


def test_gamma_from_its_column_from_f_or_not_at_all(tmp_path) -> None:
    F, shaped, dones = log()
    path = tmp_path / "log.parquet"
    write(path, flat(shaped, dones) | {"gamma": np.full(shaped.size, GAMMA)})
    assert audit_file(path).ok
    write(path, flat(shaped, dones, F))
    assert audit_file(path).gamma == pytest.approx(GAMMA, abs=1e-7)
    write(path, flat(shaped, dones))
    with pytest.raises(ValueError, match="gamma is not given"):
        audit_file(path)
    changed = np.full(shaped.size, GAMMA)
    changed[-5] = 0.9
    write(path, flat(shaped, dones) | {"gamma": changed})
    with pytest.raises(ValueError, match=f"row {shaped.size - 5}"):
        audit_file(path)


def test_terminated_and_truncated_other_names_and_valid_rows(tmp_path) -> None:
    _, shaped, dones = log()
    path = tmp_path / "log.npz"
    np.savez(path, paid=shaped, terminated=dones & (shaped > 0), truncated=dones & (shaped <= 0))
    assert audit_file(path, GAMMA, Columns(shaped="paid")).ok
    valid = np.ones(shaped.shape, dtype=bool)
    shaped, dones, valid = (np.insert(x, 9, v, axis=0) for x, v in ((shaped, 1.0), (dones, False), (valid, False)))
    np.savez(path, shaped=shaped, done=dones, valid=valid)
    found = audit_file(path, GAMMA)
    assert not found.ok
    assert (found.broken, found.invalid_rows_paid) == (0, shaped.shape[1])
    assert "row 45" in found.leaks[0].detail


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_log(kind, tmp_path) -> None:
    path = tmp_path / f"log.{kind}"
    write(path, {"env": np.array([], int), "shaped": np.array([]), "done": np.array([], bool)})
    with pytest.raises(ValueError, match="empty"):
        audit_file(path, GAMMA)


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_rows_are_named(kind, tmp_path) -> None:
    _, shaped, dones = log()
    path = tmp_path / f"log.{kind}"
    table = flat(shaped, dones)
    table["shaped"] = table["shaped"].copy()
    table["shaped"][321] = np.nan
    write(path, table)
    with pytest.raises(ValueError, match="row 321"):
        audit_file(path, GAMMA)
    write(path, {"paid": table["shaped"], "done": table["done"]})
    with pytest.raises(ValueError, match=r"no column 'shaped'.*'paid'.*--shaped"):
        audit_file(path, GAMMA)
    steps = np.repeat(np.arange(len(shaped)), shaped.shape[1])
    steps[777] = 0
    write(path, flat(shaped, dones) | {"step": steps})
    with pytest.raises(ValueError, match="row 777"):
        audit_file(path, GAMMA)


def test_malformed_files(tmp_path) -> None:
    path = tmp_path / "log.csv"
    for text, message in [
        ("shaped,done\n1.0,False\nx,True\n", "row 1 has 'x' for 'shaped'"),
        ("shaped,done\n1.0,False\n2.0\n", "row 1 has 1 fields"),
        ("shaped,done\n1.0,maybe\n", "no flag"),
        ("", "no column 'shaped'"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            audit_file(path, GAMMA)
    for name in ("log.parquet", "log.npz"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(ValueError, match="is not a"):
            audit_file(tmp_path / name, GAMMA)
    (tmp_path / "log.txt").write_text("")
    with pytest.raises(ValueError, match=r"not \.txt"):
        audit_file(tmp_path / "log.txt", GAMMA)
    pq.write_table(pa.table({"shaped": ["a"], "done": [True]}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="not numbers"):
        audit_file(tmp_path / "log.parquet", GAMMA)
    pq.write_table(pa.table({"shaped": [1.0, None], "done": [True, True]}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="row 1 has no 'shaped'"):
        audit_file(tmp_path / "log.parquet", GAMMA)


PEAK = """
import resource, sys
from payback.auditing.hypotheses import Cause
from payback import audit_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = audit_file(sys.argv[1], 0.99)
print(found.ok, found.rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def write_long_log(path, blocks: int) -> int:
    """Repeat one lawful block of 8 environments many times; every environment's block ends its episode."""
    rng = np.random.default_rng(0)
    T, B = 25_000, 8
    F = rng.normal(size=(T, B)).astype(np.float32)
    dones = rng.random((T, B)) < 0.01
    dones[-1] = True
    match = payback.match_after(0.99, 10)
    _, shaped = payback.shape_rollout(match, match.init(F[0]), F, dones)
    table = pa.table(flat(shaped, dones, F) | {"env": np.tile(np.arange(B, dtype=np.int32), T)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(blocks):
            writer.write_table(table)
    return T * B * blocks


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path) -> None:
    path = tmp_path / "log.parquet"
    rows = write_long_log(path, 50)
    output = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True).stdout
    ok, found, megabytes = output.split()
    assert (ok, int(found)) == ("True", rows)
    assert int(megabytes) < 500
