"""Processes of this machine: what dies is tried again, what fails is told, nothing is left behind."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from payback_lab import records
from payback_lab.running import local
from payback_lab.running.task import ONE_THREAD, Task
from payback_lab.runs import Asked
from payback_lab.user_error import UserError


def tasks(fake, out: Path, *schemes: str, seeds: int = 1) -> list[Task]:
    runs = fake.plan(Asked(schemes, seeds, (), 20))
    return [Task("fake_experiment", batch, out, "payback-lab run fake") for batch in fake.batches(runs)]


def kinds(events) -> list[tuple[str, str]]:
    return [(event.task.runs[0].scheme, event.kind) for event in events if event.kind != "progress"]


def test_all_tasks_are_done_and_kept(fake, tmp_path: Path) -> None:
    todo = tasks(fake, tmp_path, "none", "im", seeds=2)
    seen = kinds(local.events(todo, workers=2))
    assert seen[:2] == [("none", "started"), ("im", "started")]
    assert sorted(seen[2:]) == [("im", "done"), ("none", "done")]
    assert all(records.flaw(tmp_path / run.id) is None for task in todo for run in task.runs)


def test_a_worker_that_dies_is_tried_again(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = tmp_path / "marks"
    marks.write_text("x")
    monkeypatch.setenv("FAKE_DIE", str(marks))
    seen = kinds(local.events(tasks(fake, tmp_path, "none"), workers=1))
    assert [kind for _, kind in seen] == ["started", "retried", "started", "done"]


@pytest.mark.slow
def test_a_worker_that_dies_each_time_fails_with_the_signal(
    fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.write_text("xxx")
    monkeypatch.setenv("FAKE_DIE", str(marks))
    events = list(local.events(tasks(fake, tmp_path, "none", "im"), workers=1))
    failed = [event for event in events if event.kind == "failed"]
    assert [event.task.runs[0].scheme for event in failed] == ["none"]
    assert "killed by SIGKILL" in failed[0].text
    assert events[-1].kind == "done"


@pytest.mark.slow
def test_an_exception_is_told_and_the_others_finish(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAIL", "none")
    events = list(local.events(tasks(fake, tmp_path, "none", "im"), workers=1))
    failed = [event for event in events if event.kind == "failed"]
    assert len(failed) == 1
    assert failed[0].text.strip().endswith("ArithmeticError: none <b>diverged</b>")
    assert events[-1].kind == "done"


def test_a_folder_that_cannot_be_written_stops_everything(fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        list(local.events(tasks(fake, tmp_path / "file", "none"), workers=1))


def test_leaving_early_ends_the_workers(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PACE", "600")
    before = set(multiprocessing.active_children())
    events = local.events(tasks(fake, tmp_path, "none"), workers=1)
    next(events)
    assert len(set(multiprocessing.active_children()) - before) == 1
    events.close()
    assert set(multiprocessing.active_children()) == before


@pytest.mark.slow
def test_ctrl_c_is_for_the_parent_to_hear(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = tmp_path / "gate"
    monkeypatch.setenv("FAKE_HOLD", f"0 {gate}")
    seen = []
    for event in local.events(tasks(fake, tmp_path, "none"), workers=1):
        seen.append(event.kind)
        if seen.count("progress") == 1 and event.kind == "progress":
            (worker,) = multiprocessing.active_children()
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGINT)
            gate.touch()
    assert seen[-1] == "done"
    assert "retried" not in seen


@pytest.mark.slow
def test_ctrl_c_does_not_reach_a_worker_that_has_just_been_started(fake, tmp_path: Path, capfd) -> None:
    seen = []
    for event in local.events(tasks(fake, tmp_path, "none"), workers=1):
        seen.append(event.kind)
        if event.kind == "started":
            (worker,) = multiprocessing.active_children()
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGINT)  # it has not come to ignoring it yet
    assert seen[-1] == "done"
    assert "retried" not in seen
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_each_worker_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ONE_THREAD:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    with local._environment(ONE_THREAD):
        assert os.environ["OMP_NUM_THREADS"] == "1"
        assert os.environ["XLA_FLAGS"] == "--mine"
    assert "OMP_NUM_THREADS" not in os.environ
    assert os.environ["XLA_FLAGS"] == "--mine"


@pytest.fixture
def two_cores():
    """Leave this process and those it starts two cores at most, and say which."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not pin processes")
    before = os.sched_getaffinity(0)
    if len(before) == 1:
        pytest.skip("with one core there is nothing to choose")
    os.sched_setaffinity(0, sorted(before)[:2])
    yield sorted(before)[:2]
    os.sched_setaffinity(0, before)


def cores_used(log: Path) -> list[list[int]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.slow
def test_workers_that_fill_the_machine_have_a_core_each(fake, tmp_path: Path, monkeypatch, two_cores) -> None:
    log, marks = tmp_path / "cores", tmp_path / "marks"
    marks.write_text("x")  # one dies and is tried again, on the core that it left free
    monkeypatch.setenv("FAKE_CORES", str(log))
    monkeypatch.setenv("FAKE_DIE", str(marks))
    seen = [kind for _, kind in kinds(local.events(tasks(fake, tmp_path, "none", "im"), workers=2))]
    assert (seen.count("retried"), seen.count("done")) == (1, 2)
    used = cores_used(log)
    assert len(used) == 3
    assert sorted(map(list, {tuple(cores) for cores in used})) == [[core] for core in two_cores]
    assert sorted(os.sched_getaffinity(0)) == two_cores


@pytest.mark.slow
@pytest.mark.parametrize(("schemes", "workers"), [(("none",), 1), (("none",), 2), (("none", "im", "pbim"), 3)])
def test_workers_that_do_not_fill_it_exactly_are_left_free(
    fake, tmp_path: Path, monkeypatch, two_cores, schemes: tuple[str, ...], workers: int
) -> None:
    log = tmp_path / "cores"
    monkeypatch.setenv("FAKE_CORES", str(log))
    list(local.events(tasks(fake, tmp_path, *schemes), workers))
    assert cores_used(log) == [two_cores] * len(schemes)
