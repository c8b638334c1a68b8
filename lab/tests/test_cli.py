"""The command line: what is asked for is done, a user's error is one sentence and status 2."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCES = os.pathsep.join(str(Path(__file__).parents[2] / part) for part in ("src", "lab/src"))
Said = tuple[int, str, str]


@pytest.fixture
def payback(fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> Callable[..., Said]:
    """Call the command line with the fake experiment in an empty folder."""
    from payback_lab import cli

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Said:
        status = cli.main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "Expected one of {reproduce, run, report, list, prior-work, docs}"),
        ("frob", "Unrecognized options: frob"),
        ("run", "Missing from payback-lab run: EXPERIMENT"),
        ("run clif", 'There is no experiment "clif": choose one of fake.'),
        ("run fake --schemes grm-x", r'There is no scheme "grm-x": choose among none, im, pbim, pbim-raw, grm-1,'),
        ("run fake --schemes none grm-x", 'There is no scheme "grm-x"'),
        ("run fake --seeds x", "Error parsing --seeds: no type matching {None}|INT could be instantiated from ['x']"),
        ("run fake --seeds 0", "--seeds must be at least 1, got 0."),
        ("run fake --seeds -3", "--seeds must be at least 1, got -3."),
        ("run fake --first-seed -1", "--first-seed must be at least 0, got -1."),
        ("run fake --first-seed x", "Error parsing --first-seed"),
        ("run fake --steps 0", "--steps must be at least 1, got 0."),
        ("run fake --workers 0", "--workers must be at least 1, got 0."),
        ("run fake --engine slurm", "invalid choice 'slurm' for argument '--engine'. Expected one of"),
        ("run fake --address localhost:1", "--address names a Ray cluster: add --engine ray"),
        ("run fake --ablation fast", 'There is no ablation "fast": choose among slow.'),
        ("run fake --settings a0.1", 'There is no setting "a0.1": this experiment has no settings.'),
        ("run fake --sceems none", "perhaps you meant --schemes"),
        ("run fake --out file", "file cannot be written (File exists): choose another --out."),
        ("run fake --out file/below", "cannot be written (Not a directory): choose another --out."),
        ("report", "There are no runs in runs and no summaries in lab/results: start with `payback-lab run cliff`."),
        ("report --out nowhere", "There are no runs in nowhere"),
        ("report --out file", "There are no runs in file"),
        ("list --out nowhere", "There is no folder nowhere"),
    ],
)
def test_a_user_error_is_one_sentence_and_status_2(payback, tmp_path: Path, arguments: str, sentence: str) -> None:
    (tmp_path / "file").write_text("mine")
    status, out, error = payback(*arguments.split())
    assert status == 2
    assert sentence in error
    assert error.startswith("payback-lab: ")
    assert error.count("\n") == 1
    assert out == ""
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_sentence(payback, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    status, _, error = payback("run", "fake", "--out", "closed/runs")
    assert (status, error.count("\n")) == (2, 1)
    assert "Permission denied" in error


def test_run_report_list(payback, in_this_process, tmp_path: Path) -> None:
    status, out, error = payback("run", "fake", "--schemes", "none", "im", "--seeds", "2", "--steps", "30")
    assert (status, error) == (0, "")
    assert "fake: 4 runs planned, 0 done already, 4 to make on" in out.splitlines()[0]
    assert re.search(r"\[2/2\] fake/\S+ \(2 seeds\) done in \d+ s; 100% of all done, nothing left", out)
    status, out, error = payback("report", "--save-summaries")
    assert (status, error) == (0, "")
    assert (tmp_path / "runs/report.html").stat().st_size > 500_000
    assert (tmp_path / "lab/results/fake/summary.json").exists()
    status, out, _ = payback("list")
    assert status == 0
    assert "(the 4 runs there are of another kind)" in out  # 30 episodes are not the full experiment
    assert re.search(r"fake\s+slow\s+0\s+80", out)


def test_list_counts_what_is_done_left_and_damaged(payback, in_this_process, tmp_path: Path) -> None:
    assert payback("run", "fake", "--schemes", "none", "--seeds", "2")[0] == 0
    (tmp_path / "runs/fake/none/seed1/arrays.npz").unlink()
    status, out, _ = payback("list")
    assert status == 0
    assert re.search(r"fake\s+–\s+1\s+79 \(1 damaged\)", out)


def test_a_failed_run_is_told_at_the_end_and_the_others_are_kept(
    payback, in_this_process, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("FAKE_FAIL", "none")
    status, out, error = payback("run", "fake", "--schemes", "none", "im", "--seeds", "2")
    assert status == 1
    assert "failed; the other tasks continue" in out
    assert "fake/none (2 seeds) failed: ArithmeticError: none <b>diverged</b>" in error
    assert error.strip().endswith("2 runs failed, 2 were made; the same command tries them again.")
    assert len(list((tmp_path / "runs/fake/im").iterdir())) == 2
    monkeypatch.delenv("FAKE_FAIL")
    assert payback("run", "fake", "--schemes", "none", "im", "--seeds", "2")[0] == 0


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(payback, in_this_process, tmp_path: Path, monkeypatch) -> None:
    assert payback("run", "fake", "--schemes", "im", "--seeds", "1")[0] == 0

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    status, _, error = payback("run", "fake", "--schemes", "none", "--seeds", "1")
    assert status == 2
    assert error == (
        "payback-lab: The disk of runs is full: free some space or choose another --out, then give the same command "
        "again; what was finished is kept.\n"
    )
    monkeypatch.undo()
    assert sorted(path.name for path in (tmp_path / "runs/fake/im/seed0").iterdir())[0] == "arrays.npz"


@pytest.fixture
def tiny_disk(tmp_path: Path):
    """A disk of 64 kB, where the machine lets us mount one."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_while_running(payback_process, tiny_disk: Path) -> None:
    ask = ("run", "fake", "--schemes", "none", "im", "pbim", "--seeds", "3", "--out", str(tiny_disk), "--workers", "1")
    process = payback_process(*ask)
    _, error = process.communicate()
    assert process.returncode == 2
    assert f"The disk of {tiny_disk} is full" in error
    assert error.count("\n") == 1
    done = [folder for folder in tiny_disk.rglob("seed*") if folder.is_dir()]
    assert done
    assert all((folder / "manifest.json").exists() for folder in done)
    assert not list(tiny_disk.rglob("*.draft"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_everything_in_order(payback_process, tmp_path: Path, number: signal.Signals) -> None:
    ask = ("run", "fake", "--schemes", "none", "im", "--seeds", "1")
    process = payback_process(*ask, "--workers", "1", FAKE_PACE="600")
    lock = tmp_path / "runs/fake/none/.seed0.lock"
    while not lock.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, number)  # as a terminal does: everyone in the group hears it
    _, error = process.communicate()
    assert process.returncode == 130
    assert error == "payback-lab: stopped; what was finished is kept, and the same command goes on from there.\n"
    again = payback_process(*ask)
    out, error = again.communicate()
    assert again.returncode == 0, error
    assert "2 to make" in out
    assert not list((tmp_path / "runs").rglob(".*"))


def test_help_helps_and_is_quick(tmp_path: Path) -> None:
    code = "import sys; from payback_lab import cli\ntry: cli.main(['run', '--help'])\n"
    code += "except SystemExit as e: print('STATUS', e.code)\n"
    code += "print('LOADED', [m for m in ('jax', 'altair', 'ray', 'pyarrow') if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "COLUMNS": "120"}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    ).stdout
    assert "STATUS 0" in said
    assert "LOADED []" in said
    for words in (
        "--schemes",
        "none im pbim pbim-raw",
        "--seeds",
        "--steps",
        "--engine",
        "--address",
        "the same command goes",
    ):
        assert words in " ".join(said.split()), words
