import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

import payback
from payback import Recorder, audit_file
from payback.auditing.hypotheses import Cause
from payback.auditing.read import part_path, parts_of
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
from payback import Recorder
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
    with Recorder(tmp_path / "valid", gamma=GAMMA) as recorder:
        recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag, valid=~flag)
        with pytest.raises(ValueError, match="every call takes the same columns"):
            recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag)
    with pytest.raises(ValueError, match="is closed"):
        recorder.add(reward=np.ones(2), shaped=np.ones(2), terminated=flag, truncated=flag)


def test_memory_is_bounded(tmp_path) -> None:
    recorder = Recorder(tmp_path / "log", gamma=GAMMA, rows=400)
    record(recorder, 1000)
    assert recorder._count * B < 400
    recorder.close()
    assert audit_file(tmp_path / "log").rows == 4000


def plain_loop(folder, mistake: str, seed: int, steps: int = 1500) -> np.ndarray:
    """A loop of one's own with the default grm; returns which of its steps end episodes."""
    rng = np.random.default_rng(seed)
    delay, limit, mean_length = (int(rng.choice(some)) for some in ([1, 3, 10, 30], [20, 50, 100], [15, 40, 100]))
    shaping = payback.grm(0.99, delay=delay)
    state, age, late, ends = shaping.init(np.zeros(B, np.float32)), np.zeros(B, int), np.zeros(B, bool), []
    with Recorder(folder, shaping) as recorder:
        for _ in range(steps):
            bonus, terminated = rng.random(B).astype(np.float32), rng.random(B) < 1 / mean_length
            truncated = ~terminated & (age == limit - 1)
            done = terminated | truncated
            age = np.where(done, 0, age + 1)
            passed = {"right": done, "terminations only": terminated, "late": late}[mistake]
            state, shaped = shaping.update(state, bonus, passed)
            recorder.add(reward=bonus, shaped=shaped, terminated=terminated, truncated=truncated)
            late = done
            ends.append(done)
    return np.array(ends)


@pytest.mark.parametrize(
    ("mistake", "cause"), [("terminations only", Cause.UNSETTLED_TRUNCATION), ("late", Cause.LATE_RESET)]
)
def test_the_two_commonest_mistakes_of_a_plain_loop_are_named(mistake, cause, tmp_path) -> None:
    named = Counter()
    for seed in range(4):
        assert plain_loop(tmp_path / f"right-{seed}", "right", seed).any()
        assert audit_file(tmp_path / f"right-{seed}").ok
        plain_loop(tmp_path / f"wrong-{seed}", mistake, seed)
        named += audit_file(tmp_path / f"wrong-{seed}").causes
    assert named[cause] >= 0.9 * named.total() > 100


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_the_recorder_knows_what_was_lent(name, tmp_path) -> None:
    """F − F̄, also of a scaled bonus, after a resume, and beside invalid rows."""
    library = pytest.importorskip(name)
    shaping = payback.chain(payback.scale(2.0), payback.center(), payback.match_after(GAMMA, 2))
    rng = np.random.default_rng(0)
    state, expected, mean, count = shaping.init(library.zeros(B, dtype=library.float32)), [], 0.0, 0
    for part in (1, 2):
        with Recorder(tmp_path / "log", shaping, state=None if part == 1 else state) as recorder:
            for _ in range(20):
                reward, done, valid = rng.random(B).astype(np.float32), rng.random(B) < 0.2, rng.random(B) < 0.8
                expected.append((2 * reward - mean)[valid])
                mean = (mean * count + 2 * reward[valid].sum()) / max(count + valid.sum(), 1)
                count += valid.sum()
                F, ends, there = (library.asarray(x) for x in (reward, done, valid))
                state, shaped = shaping.update(state, F, ends, there)
                recorder.add(reward=F, shaped=shaped, terminated=ends, truncated=ends & ~ends, valid=there)
    lent = np.concatenate([pq.read_table(part)["lent"].to_numpy() for part in parts_of(tmp_path / "log")])
    np.testing.assert_allclose(lent, np.concatenate(expected), atol=1e-5)


def test_a_recorder_needs_a_transform_that_repays_or_gamma(tmp_path) -> None:
    with pytest.raises(ValueError, match="gamma="):
        Recorder(tmp_path / "log")
    with pytest.raises(ValueError, match="repays"):
        Recorder(tmp_path / "log", payback.scale(2.0))
    assert Recorder(tmp_path / "log", payback.pbim(0.9)).gamma == 0.9


def test_a_folder_that_cannot_be_written_fails_at_once(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="cannot write in"):
        Recorder(tmp_path / "file" / "log", gamma=GAMMA)
    (tmp_path / "log").mkdir(mode=0o555)
    if os.access(tmp_path / "log", os.W_OK):  # root may write anywhere, but not on a read-only disk

        def read_only(**given):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    with pytest.raises(OSError, match="cannot write in"):
        Recorder(tmp_path / "log", gamma=GAMMA)


def test_what_a_killed_recorder_left_is_removed_by_the_next(tmp_path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = [f".part-000000.parquet.{process}.unfinished" for process in (dead.pid, os.getppid())]
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    Recorder(tmp_path, gamma=GAMMA).close()
    assert [path.name for path in tmp_path.iterdir()] == names[1:]
