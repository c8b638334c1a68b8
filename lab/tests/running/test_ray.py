"""Ray's two-node test cluster makes the same records as local processes; a dead worker's task is made again."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from payback_lab import records
from payback_lab.running import local
from payback_lab.running import ray as ray_engine
from payback_lab.running.task import Task
from payback_lab.runs import Asked, checkpoint_of
from payback_lab.user_error import UserError

ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "payback-lab[ray]"')
pytestmark = [
    pytest.mark.ray,
    # Ray leaves pipes and sockets to the garbage collector when its test cluster stops.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def tasks(fake, out: Path, schemes: tuple[str, ...]) -> list[Task]:
    runs = fake.plan(Asked(schemes, 2, (), 20))
    return [Task("fake_experiment", batch, out, "payback-lab run fake") for batch in fake.batches(runs)]


def contents(out: Path) -> dict[str, bytes]:
    files = [path for folder in records.folders(out) for path in folder.iterdir()]
    # config.json says when it was made, and the manifest covers it.
    return {str(p.relative_to(out)): p.read_bytes() for p in files if p.name not in ("config.json", "manifest.json")}


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def locks_held(out: Path) -> int:
    """Count the locks below `out` that a living process holds."""
    held = 0
    for path in out.rglob(".*.lock"):
        with path.open() as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held += 1
    return held


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has Ray give a busy machine time: at a start, until a node answers, and for workers, which it runs at nice 15."""
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "600")
    monkeypatch.setenv("RAY_health_check_timeout_ms", "120000")


def test_a_node_and_a_worker_die_and_no_run_is_lost_or_made_twice(
    fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    from ray.cluster_utils import Cluster

    out, marks, tenths, gate = (tmp_path / name for name in ("ray", "marks", "tenths", "gate"))
    marks.write_text("x")
    monkeypatch.setenv("FAKE_DIE", str(marks))
    monkeypatch.setenv("FAKE_FAIL", "pbim")
    monkeypatch.setenv("FAKE_TENTHS", str(tenths))
    monkeypatch.setenv("FAKE_HOLD", f"5 {gate}")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})

    def kill_the_second_node_in_mid_run() -> None:
        while sum(line.endswith(" 4") for line in lines(tenths)) < 2:  # a task on each node has done half
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)
        while locks_held(out) > 2:  # its worker lives on for a moment; a task holds the locks of its two seeds
            time.sleep(0.1)
        gate.touch()

    try:
        second = cluster.add_node(num_cpus=1)
        todo = tasks(fake, out, ("none", "im", "pbim", "grm-1"))
        threading.Thread(target=kill_the_second_node_in_mid_run, daemon=True).start()
        events = list(ray_engine.events(todo, None, cluster.address))
    finally:
        cluster.shutdown()
    assert marks.read_text() == ""  # one worker died
    assert gate.exists()  # and one node
    done = lines(tenths)
    assert len(done) == len(set(done)) == 4 * 10  # and their tasks went on from the checkpoints that they left
    assert list(out.glob(".*")) == []
    failed = [event for event in events if event.kind == "failed"]
    assert [event.task.runs[0].scheme for event in failed] == ["pbim"]
    assert "diverged" in failed[0].text
    assert sum(event.kind == "done" for event in events) == 3
    list(local.events(tasks(fake, tmp_path / "local", ("none", "im", "grm-1")), workers=1))
    assert contents(out) == contents(tmp_path / "local")
    assert len(contents(out)) == 3 * 2 * 3


def test_a_command_that_was_killed_goes_on_from_its_checkpoint(tmp_path: Path, payback_process, patient: None) -> None:
    tenths = tmp_path / "tenths"
    ask = ("run", "fake", "--schemes", "none", "--seeds", "1", "--engine", "ray", "--workers", "1", "--out", "runs")
    first = payback_process(*ask, FAKE_TENTHS=str(tenths), FAKE_HOLD=f"4 {tmp_path / 'never'}")
    while first.poll() is None and len(lines(tenths)) < 4:
        time.sleep(0.1)
    first.kill()
    first.communicate()
    second = payback_process(*ask, FAKE_TENTHS=str(tenths))
    _, said = second.communicate()
    assert second.returncode == 0, said
    tenth = [int(line.split()[1]) for line in lines(tenths)]
    assert tenth == list(range(10))
    assert records.flaw(tmp_path / "runs/fake/none/seed0") is None


def test_a_node_without_the_folder_sends_its_results(fake, tmp_path: Path) -> None:
    (task,) = tasks(fake, tmp_path / "elsewhere", ("none",))
    computed = ray_engine._make(task, tmp_path / ".mark")
    assert computed is not None
    assert set(computed[0]) == {run.id for run in task.runs}
    assert not (tmp_path / "elsewhere").exists()


def test_a_node_with_the_folder_writes_the_records_itself(fake, tmp_path: Path) -> None:
    (task,) = tasks(fake, tmp_path, ("none",))
    (tmp_path / ".mark").write_text("")
    assert ray_engine._make(task, tmp_path / ".mark") is None
    assert len(contents(tmp_path)) == 2 * 3


def test_what_the_user_can_correct_ends_the_command(fake, tmp_path: Path, payback_process, patient: None) -> None:
    damaged = checkpoint_of(tmp_path / "runs", fake.plan(Asked(("none",), 1, (), 20))[0])
    damaged.parent.mkdir(parents=True)
    damaged.write_text("half")
    ask = ("run", "fake", "--schemes", "none", "--seeds", "1", "--steps", "20", "--engine", "ray", "--workers", "1")
    run = payback_process(*ask, "--out", "runs", FAKE_TENTHS=str(tmp_path / "tenths"))
    _, said = run.communicate()
    assert run.returncode == 2, said
    assert "is damaged: delete it" in said
    assert "Traceback" not in said
    assert damaged.read_text() == "half"


def test_no_cluster_there_is_one_sentence(fake, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"127\.0\.0\.1:1"):
        list(ray_engine.events(tasks(fake, tmp_path, ("none",)), None, "127.0.0.1:1"))


OWN = """
import os
from payback_lab.running.ray import _connect
ray = _connect(None, 1)
print(*(node["NodeManagerAddress"] for node in ray.nodes()), ray.get_runtime_context().gcs_address)
print(os.environ["RAY_AUTH_MODE"], os.path.exists(os.path.expanduser("~/.ray/auth_token")))
ray.shutdown()
"""


def test_a_cluster_of_our_own_listens_on_this_machine_alone_and_asks_for_a_token(tmp_path: Path) -> None:
    # In a process and a home of its own, because Ray reads its settings when it is imported and keeps a token there.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    run = subprocess.run(
        [sys.executable, "-c", OWN], env=kept | {"HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    node, gcs, mode, token = run.stdout.split()
    assert node == "127.0.0.1"
    assert gcs.startswith("127.0.0.1:")
    assert (mode, token) == ("token", "True")
