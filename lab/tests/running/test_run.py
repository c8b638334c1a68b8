"""Plan, run, resume: finished runs stay, damaged ones are named and made again, kill -9 changes nothing."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab import records
from payback_lab.running import run as runner
from payback_lab.running.request import Request
from payback_lab.user_error import UserError

TWO = ("none", "grm-10")


def contents(out: Path) -> dict[str, bytes]:
    """Return every measured byte below a records folder (config.json also says when it was made)."""
    files = [path for folder in records.folders(out) for path in folder.iterdir()]
    return {str(p.relative_to(out)): p.read_bytes() for p in files if p.name not in ("config.json", "manifest.json")}


def make(request: Request) -> tuple[runner.Outcome, str]:
    console = Console(width=200, record=True, force_terminal=False, quiet=False, file=open(os.devnull, "w"))  # noqa: SIM115
    try:
        return runner.run(request, console), console.export_text()
    finally:
        console.file.close()


def test_a_finished_run_is_neither_repeated_nor_touched(fake, in_this_process, tmp_path: Path) -> None:
    request = Request("fake", TWO, 2, steps=20, out=tmp_path)
    outcome, said = make(request)
    assert outcome == runner.Outcome(4, ())
    assert "4 runs planned, 0 done already, 4 to make" in said
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    outcome, said = make(Request("fake", TWO, 2, steps=20, out=tmp_path, engine="local"))
    assert outcome == runner.Outcome(0, ())
    assert "4 done already, nothing to make" in said
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_a_finished_folder_on_a_read_only_disk_is_read(
    fake, in_this_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request("fake", TWO, 2, steps=20, out=tmp_path)
    make(request)
    open_as_usual = os.open

    def read_only(path, flags, *more, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(path).startswith(str(tmp_path)):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return open_as_usual(path, flags, *more, **options)

    def refuse(path, *more, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "open", read_only)
    for name in ("write_bytes", "write_text", "mkdir", "touch", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    outcome, said = make(request)
    assert outcome == runner.Outcome(0, ())
    assert "4 done already, nothing to make" in said
    with pytest.raises(UserError, match=r"cannot be written \(Read-only file system\): choose another --out"):
        make(Request("fake", TWO, 3, steps=20, out=tmp_path))


def test_more_seeds_add_to_what_is_there(fake, in_this_process, tmp_path: Path) -> None:
    make(Request("fake", ("none",), 1, steps=20, out=tmp_path))
    first = contents(tmp_path)
    outcome, _ = make(Request("fake", ("none",), 3, steps=20, out=tmp_path))
    assert outcome.made == 2
    assert first.items() <= contents(tmp_path).items()


def test_a_damaged_run_is_named_and_made_again_and_the_others_stay(fake, in_this_process, tmp_path: Path) -> None:
    request = Request("fake", TWO, 2, steps=20, out=tmp_path)
    make(request)
    whole = contents(tmp_path)
    (tmp_path / "fake/none/seed1/curve.parquet").write_bytes(b"PAR1")
    (tmp_path / "fake/grm-10/seed0/manifest.json").unlink()
    kept = (tmp_path / "fake/none/seed0/config.json").stat().st_mtime_ns
    outcome, said = make(request)
    assert outcome.made == 2
    assert "none/seed1 is damaged (curve.parquet is not what was written (its checksum differs))" in said
    assert "grm-10/seed0 is damaged (manifest.json is missing)" in said
    assert contents(tmp_path) == whole
    assert (tmp_path / "fake/none/seed0/config.json").stat().st_mtime_ns == kept


def test_another_length_in_the_same_folder_is_refused_and_nothing_is_lost(
    fake, in_this_process, tmp_path: Path
) -> None:
    make(Request("fake", ("none",), 1, steps=20, out=tmp_path))
    before = contents(tmp_path)
    with pytest.raises(UserError, match=r"episodes 20, not 30"):
        make(Request("fake", ("im",), 1, steps=30, out=tmp_path))
    assert contents(tmp_path) == before


def test_another_learner_version_is_refused(
    fake, in_this_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request("fake", ("none",), 1, steps=20, out=tmp_path)
    make(request)
    monkeypatch.setitem(vars(fake), "learner_version", 4)
    with pytest.raises(UserError, match="learner_version 3, not 4"):
        make(request)


def test_an_ablation_has_a_place_of_its_own(fake, in_this_process, tmp_path: Path) -> None:
    make(Request("fake", ("none",), 1, steps=20, out=tmp_path))
    make(Request("fake", ("none",), 1, steps=20, out=tmp_path, ablation="slow"))
    slow, plain = records.folders(tmp_path, "fake+slow"), records.folders(tmp_path, "fake")
    assert len(slow) == len(plain) == 1
    assert records.read(slow[0]).identity["config"]["drift"] == 0.1
    assert (
        records.read(slow[0]).made["command"]
        == "payback-lab run fake --schemes none --seeds 1 --steps 20 --ablation slow"
    )


def kill_group(process) -> None:
    """End a process and all it started at once, as a power cut does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_kill_9_at_random_moments_changes_no_bit(payback_process, tmp_path: Path) -> None:
    ask = ("run", "fake", "--schemes", "none", "im", "grm-1", "--seeds", "3", "--steps", "50", "--workers", "2")
    straight = payback_process(*ask, "--out", "straight")
    assert straight.wait() == 0, straight.stderr.read()
    straight.communicate()
    rng = random.Random(0)
    for enough in (0, 1, 2, 4, 6, 8):
        process = payback_process(*ask, "--out", "killed", FAKE_PACE="0.2")
        # Early, between records, and while the next ones of a batch are being written.
        while len(records.folders(tmp_path / "killed")) < enough and process.poll() is None:
            time.sleep(0.02 * rng.random())
        kill_group(process)
        for folder in records.folders(tmp_path / "killed"):
            assert records.flaw(folder) is None  # the rename is atomic: what is there is whole
    final = payback_process(*ask, "--out", "killed")
    said, error = final.communicate()
    assert final.returncode == 0, error
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    assert len(contents(tmp_path / "killed")) == 27, said


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(payback_process, tmp_path: Path) -> None:
    process = payback_process("run", "fake", "--schemes", "none", "--seeds", "1", FAKE_PACE="600")
    lock = tmp_path / "runs/fake/none/.seed0.lock"
    while not lock.exists() and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()  # returns when the last process that holds our pipes has ended
    again = payback_process("run", "fake", "--schemes", "none", "--seeds", "1")
    assert again.wait() == 0
    again.communicate()


@pytest.mark.slow
def test_two_processes_share_a_folder(payback_process, tmp_path: Path) -> None:
    ask = ("run", "fake", "--schemes", "none", "im", "grm-1", "--seeds", "2", "--workers", "1", "--out", "shared")
    log = tmp_path / "log"
    both = [payback_process(*ask, FAKE_PACE="0.5", FAKE_LOG=str(log)) for _ in range(2)]
    for process in both:
        _, error = process.communicate()
        assert process.returncode == 0, error
    assert sorted(log.read_text().split()) == ["grm-1", "im", "none"]  # nothing was computed twice
    folders = records.folders(tmp_path / "shared")
    assert len(folders) == 6
    assert all(records.flaw(folder) is None for folder in folders)
    assert not list((tmp_path / "shared").rglob(".*"))


def test_the_command_that_is_kept_names_no_folder() -> None:
    request = Request("cliff", ("none", "im"), 3, steps=200, ablation="wide-rnd", out=Path("/secret"), engine="ray")
    assert request.command == "payback-lab run cliff --schemes none im --seeds 3 --steps 200 --ablation wide-rnd"
    assert Request("cliff").command == "payback-lab run cliff"


@pytest.mark.slow
def test_the_real_cliff_resumed_is_the_same_to_the_bit(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install payback-lab")

    def finish(out: str) -> dict[str, bytes]:
        ask = ("run", "cliff", "--schemes", "grm-10", "--seeds", "3", "--steps", "40", "--workers", "1", "--out", out)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "payback_lab.cli", *ask]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return contents(tmp_path / out)

    straight = finish("straight")
    assert len(straight) == 9
    # One seed is there, as if a kill had come between two records: the others must not miss its company.
    shutil.copytree(tmp_path / "straight/cliff/grm-10/seed1", tmp_path / "killed/cliff/grm-10/seed1")
    assert finish("killed") == straight
