"""A DoorKey run killed with kill -9 and started again leaves the same bits as one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from payback_lab import records
from payback_lab.running import run as runner

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ASK = ("run", "doorkey", "--schemes", "grm-10", "--settings", "a0.02-g0.995", "--seeds", "1", "--steps", "49152")
RUN = "doorkey/a0.02-g0.995/grm-10/seed0"


@pytest.fixture
def started(tmp_path: Path) -> Callable[..., subprocess.Popen]:
    """Start the hurried command line as a process group of its own; all share what is compiled."""

    def start(out: str, **environment: str) -> subprocess.Popen:
        source = str(Path(runner.__file__).parents[2])
        compiled = {
            "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        return subprocess.Popen(
            [sys.executable, str(HERE / "run_doorkey.py"), *ASK, "--workers", "1", "--out", out],
            cwd=tmp_path,
            env={**os.environ, **compiled, "PYTHONPATH": source, "DOORKEY_LOG": f"{out}.log", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


def shares(log: Path) -> list[int]:
    """Return what was told to be done, in updates of 24."""
    return [round(24 * float(line)) for line in log.read_text().split()]


def kill_at_checkpoint(process: subprocess.Popen, checkpoint: Path) -> None:
    """Kill the command and its worker as soon as a checkpoint is there."""
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert checkpoint.exists()


def test_kill_9_and_resume_is_the_same_to_the_bit(started, tmp_path: Path):
    def finish(out: str) -> dict[str, bytes]:
        process = started(out)
        _, error = process.communicate()
        assert (process.returncode, error) == (0, "")
        folder = tmp_path / out / RUN
        assert records.flaw(folder) is None
        # No checkpoint, lock or half-written file stays beside the record.
        assert [path.name for path in folder.parent.iterdir()] == ["seed0"]
        return {name: (folder / name).read_bytes() for name in ("curve.parquet", "arrays.npz", "summary.json")}

    straight = finish("straight")
    assert shares(tmp_path / "straight.log") == [0, 4, 8, 12, 16, 20, 24]
    checkpoint = (tmp_path / "killed" / RUN).with_name(".seed0.checkpoint.npz")
    kill_at_checkpoint(started("killed", DOORKEY_STOP="3"), checkpoint)
    before = shares(tmp_path / "killed.log")
    assert before in ([0, 4], [0, 4, 8], [0, 4, 8, 12])
    assert finish("killed") == straight
    after = shares(tmp_path / "killed.log")[len(before) :]
    # It went on from a checkpoint: that of the last chunk, or the one before if the kill came while it was written.
    assert after[0] >= 4
    assert after[0] in (before[-1], before[-1] - 4)
    assert after == list(range(after[0], 25, 4))
    one = records.read(tmp_path / "killed" / RUN).result
    assert one.columns["steps"].tolist() == list(range(2048, 49153, 2048))
    assert np.isfinite(one.arrays["parameters"]).all()
