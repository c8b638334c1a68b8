"""Whoever makes a run holds its lock; a lock ends with its holder."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from payback_lab.locks import locked


def hold(out: Path, ready, release) -> None:
    with locked(out, ["cliff/none/seed0"]):
        ready.set()
        release.wait()


def start_holder(out: Path):
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    process = context.Process(target=hold, args=(out, ready, release))
    process.start()
    assert ready.wait()
    return process, release


@pytest.mark.slow
def test_a_second_process_waits_and_says_for_what(tmp_path: Path) -> None:
    process, release = start_holder(tmp_path)
    told: list[str] = []

    def on_waiting(run: str) -> None:
        told.append(run)
        assert process.is_alive()
        release.set()

    with locked(tmp_path, ["cliff/none/seed1", "cliff/none/seed0"], on_waiting):
        process.join()
    assert told == ["cliff/none/seed0"]


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process, _ = start_holder(tmp_path)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with locked(tmp_path, ["cliff/none/seed0"]):
        pass
    assert [path.name for path in (tmp_path / "cliff/none").iterdir()] == []


def test_only_one_holds_it_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0
    guard = threading.Lock()

    def visit() -> None:
        nonlocal inside, most
        for _ in range(50):
            with locked(tmp_path, ["a/seed0", "a/seed1"]):
                with guard:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0)  # lets the other threads in, if the lock does
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
