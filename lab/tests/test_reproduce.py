"""`payback-lab reproduce`: one plan, one estimate, the report, the findings; made with a few episodes."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab import reproduce as command
from payback_lab.reproduce import STEPS, ReproduceCommand, reproduce
from payback_lab.running.request import Request
from payback_lab.running.run import planned


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.experiment}-{step.ablation}")
def test_every_step_can_be_planned(step: Request, tmp_path: Path) -> None:
    _, runs = planned(replace(step, summaries=tmp_path))
    assert runs


def test_it_plans_the_whole_then_runs_reports_and_names_the_page(
    fake, in_this_process, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(command, "print_findings", lambda *_: None)  # they are of other experiments
    console = Console(file=io.StringIO(), width=200)
    steps = (Request("fake", schemes=("none",), seeds=2), Request("fake", ablation="slow", schemes=("im",), seeds=2))
    asked = ReproduceCommand(out=tmp_path / "runs", workers=1, summaries=tmp_path / "results")
    assert reproduce(asked, console, steps) == 0
    lines = console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    assert lines[1].split()[:4] == ["fake", "2", "0", "2"]
    assert lines[2].split()[:5] == ["fake", "slow", "2", "0", "2"]
    assert lines[3].startswith("2 tasks on 1 process")
    assert any(line.startswith("[2/2]") and "100% of all done, nothing left" in line for line in lines)
    assert lines[-1] == f"Report: {tmp_path / 'runs/report.html'}"


def test_the_findings_are_of_these_runs_and_of_the_committed_ones(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    (tmp_path / "runs").mkdir()
    command.print_findings(tmp_path / "runs", Path(__file__).parents[1] / "results", console)
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert [text.count(f"{number}. ") for number in (1, 2, 3)] == [1, 1, 1]
    assert "–" not in text
    assert re.search(r" 16% +72% +100%", text)
    assert "these runs" not in text


def test_a_failed_run_ends_it_without_a_report(fake, in_this_process, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FAKE_FAIL", "none")
    asked = ReproduceCommand(out=tmp_path / "runs", workers=1, summaries=tmp_path / "results")
    step = Request("fake", schemes=("none",), seeds=1)
    assert reproduce(asked, Console(file=io.StringIO()), (step,)) == 1
    assert "diverged" in capsys.readouterr().err
    assert not (tmp_path / "runs/report.html").exists()
