import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import payback
from payback.auditing.log_file import audit_file
from payback.auditing.parts import part_path, parts_of
from payback.auditing.recorder import Recorder
from payback.cli import main

GAMMA, B = 0.97, 4


def record(recorder: Recorder, steps: int, *, seed: int = 0, settle: bool = True, dtype=np.float32) -> np.ndarray:
    """Record some steps of a lawful run, or of one that never settles; returns which steps end episodes."""
    rng, match = np.random.default_rng(seed), payback.match_after(GAMMA, 3)
    state, ends = match.init(np.zeros(B, dtype)), rng.random((steps, B)) < 0.1
    for done in ends:
        reward = rng.random(B).astype(dtype)
        state, shaped = match.update(state, reward, done if settle else np.zeros(B, bool))
        terminated = done & (rng.random(B) < 0.5)
        recorder.add(reward=reward, shaped=shaped, terminated=terminated, truncated=done & ~terminated)
    return ends


def test_audit_reads_a_recorded_folder_without_options(tmp_path, capsys) -> None:
    with Recorder(tmp_path / "log", gamma=GAMMA, rows=64) as recorder:
        ends = record(recorder, 300)
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert (found.rows, len(found.episodes.leak), found.gamma) == (300 * B, ends.sum(), GAMMA)
    assert len(parts_of(tmp_path / "log")) == -(-300 * B // 64)
    assert main(["audit", str(tmp_path / "log")]) == 0
    with Recorder(tmp_path / "broken", gamma=GAMMA) as recorder:
        record(recorder, 300, settle=False)
    assert main(["audit", str(tmp_path / "broken")]) == 1
    assert "never reset" in capsys.readouterr().out


def test_valid_rows_and_what_was_lent_are_recorded(tmp_path) -> None:
    with Recorder(tmp_path / "log", gamma=1.0) as recorder:
        for reward, done, valid in ((1.0, False, True), (2.0, True, True), (5.0, False, False), (1.0, True, True)):
            paid = {1.0: 0.5, 2.0: -0.5, 5.0: 0.0}[reward] if not done or reward == 2.0 else 0.0
            one = {"reward": reward, "shaped": paid, "lent": reward - 0.5}
            flags = {"terminated": done, "truncated": False, "valid": valid}
            recorder.add(**{k: np.array([v]) for k, v in (one | flags).items()})
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.episodes.length.tolist() == [2, 1]


def test_a_second_recorder_goes_on_with_new_episodes(tmp_path) -> None:
    """The first is stopped in mid-episode: what was open stays unfinished and is not joined to what follows."""
    counts = 0
    for seed in (1, 2):
        with Recorder(tmp_path / "log", gamma=GAMMA, rows=100) as recorder:
            counts += record(recorder, 211, seed=seed).sum()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert len(found.episodes.leak) == counts
    with Recorder(tmp_path / "log", gamma=GAMMA) as recorder:
        counts += record(recorder, 57, seed=3).sum()
        recorder.restart()
        counts += record(recorder, 57, seed=4).sum()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert len(found.episodes.leak) == counts


KILLED = """
import sys, numpy as np
from payback.auditing.recorder import Recorder
recorder = Recorder(sys.argv[1], gamma=1.0, rows=1000)
k = 0
while True:
    done = np.array([k % 2 == 1] * 10)
    recorder.add(reward=np.ones(10), shaped=np.where(done, -1.0, 1.0), terminated=done, truncated=np.zeros(10, bool))
    k += 1
    if k % 100 == 0:
        print(k, flush=True)
"""


def test_after_kill_9_all_but_the_last_part_is_there(tmp_path) -> None:
    folder = tmp_path / "log"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    added = 0
    while added < 2000:
        added = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    rest = process.communicate()[0].split()
    added = int(rest[-1]) if rest else added
    found = audit_file(folder)
    assert found.ok
    assert found.rows >= 10 * added - 1000
    with Recorder(folder, gamma=1.0) as recorder:
        recorder.add(reward=np.ones(1), shaped=np.zeros(1), terminated=np.ones(1, bool), truncated=np.zeros(1, bool))
    assert audit_file(folder).rows == found.rows + 1


def test_a_part_that_was_being_written_is_not_read(tmp_path) -> None:
    with Recorder(tmp_path / "log", gamma=GAMMA, rows=100) as recorder:
        record(recorder, 100)
    rows = audit_file(tmp_path / "log").rows
    (tmp_path / "log" / ".part-000004.parquet.unfinished").write_bytes(b"half")
    assert audit_file(tmp_path / "log").rows == rows
    part_path(tmp_path / "log", 2).unlink()
    with pytest.raises(ValueError, match=r"part-000002\.parquet is missing"):
        audit_file(tmp_path / "log")


def test_two_recorders_in_one_folder_do_not_overwrite_each_other(tmp_path) -> None:
    first, second = (Recorder(tmp_path / "log", gamma=GAMMA, rows=40) for _ in range(2))
    record(first, 30)
    rows = audit_file(tmp_path / "log").rows
    with pytest.raises(ValueError, match=r"another Recorder has written part-000000\.parquet"):
        record(second, 30)
    assert audit_file(tmp_path / "log").rows == rows


def test_after_a_part_could_not_be_written_nothing_is_lost(tmp_path, monkeypatch) -> None:
    """A disk that is full raises; once there is room again, the same rows are written."""
    recorder = Recorder(tmp_path / "log", gamma=1.0, rows=3)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    one = {"reward": np.ones(1), "shaped": np.zeros(1), "terminated": np.ones(1, bool), "truncated": np.zeros(1, bool)}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        recorder.add(**one)
        recorder.add(**one)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                recorder.add(**one)
    recorder.add(**one)
    recorder.close()
    assert audit_file(tmp_path / "log").rows == 4


def test_what_cannot_be_recorded_is_refused(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'notes.txt'"):
        Recorder(tmp_path, gamma=GAMMA)
    with pytest.raises(ValueError, match="is a file"):
        Recorder(tmp_path / "notes.txt", gamma=GAMMA)
    with pytest.raises(ValueError, match="gamma must lie"):
        Recorder(tmp_path / "log", gamma=2.0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no part"):
        audit_file(tmp_path / "empty")
    flag = np.zeros(2, bool)
    with Recorder(tmp_path / "log", gamma=GAMMA) as recorder:
        with pytest.raises(ValueError, match=r"shaped has shape \(\)"):
            recorder.add(reward=1.0, shaped=1.0, terminated=False, truncated=False)
        with pytest.raises(ValueError, match=r"terminated has shape \(3,\)"):
            recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=np.zeros(3, bool), truncated=flag)
        recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag)
        with pytest.raises(ValueError, match="every call takes the same columns"):
            recorder.add(reward=np.ones(3), shaped=np.ones(3), terminated=flag, truncated=flag)
        with pytest.raises(ValueError, match="every call takes the same columns"):
            recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag, valid=flag)
    with pytest.raises(ValueError, match="is closed"):
        recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag)


def test_memory_is_bounded(tmp_path) -> None:
    recorder = Recorder(tmp_path / "log", gamma=GAMMA, rows=400)
    record(recorder, 1000)
    assert recorder._count * B < 400
    recorder.close()
    assert audit_file(tmp_path / "log").rows == 4000
