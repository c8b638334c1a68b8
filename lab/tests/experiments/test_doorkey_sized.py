"""`reach` and `delay`: what is planned, what is refused, and that committed runs are not made again."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from payback_lab import cli, records
from payback_lab.experiments import reach
from payback_lab.experiments.delay import experiment as delay
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.experiments.reach import CLAIMS
from payback_lab.learners.ppo.train import Record
from payback_lab.running.request import Request
from payback_lab.running.run import planned, run
from payback_lab.runs import Result

RESULTS = Path(__file__).parents[2] / "results"


def plan(name: str, **asked) -> list:
    return planned(Request(name, **asked))[1]


def test_the_reach_has_ten_seeds_at_size_11_and_20_million_steps_at_16():
    runs = plan("reach")
    assert len(runs) == len({r.id for r in runs}) == 96
    assert Counter(r.scheme for r in runs if r.config.size == 11) == {
        "none": 10,
        "im": 10,
        "grm-30": 10,
        "grm-10": 3,
        "grm-100": 3,
    }
    assert {(r.config.size, r.config.total_steps) for r in runs} == {
        *((size, 6_000_640) for size in (8, 10, 11, 12, 13, 14)),
        (16, 20_000_768),
    }
    assert [r.seed for r in runs] == sorted(r.seed for r in runs)


def test_the_delay_study_has_26_cells_whose_config_is_that_of_their_name():
    runs = plan("delay", seeds=1)
    assert len(runs) == len(delay.CELLS) == 26
    for r in runs:
        size, alpha, gamma, lam = parse_sized_setting(r.setting)
        config = r.config
        assert (config.size, config.alpha, config.gamma, config.gae_lambda) == (size, alpha, gamma, lam)
        assert (config.shaping_gamma, config.total_steps) == (gamma, 3_000_320)


def test_a_scheme_outside_the_plan_is_run_at_every_planned_setting():
    runs = plan("reach", schemes=("grm-20", "grm-30"), seeds=1)
    assert {r.setting for r in runs if r.scheme == "grm-20"} == {cell.setting for cell in reach.CELLS}
    assert len([r for r in runs if r.scheme == "grm-30"]) == 7
    assert [r.scheme for r in plan("reach", schemes=("grm-20",), settings=("s9-a0.02-g0.995-l0.95",), seeds=1)] == [
        "grm-20"
    ]


def test_what_is_named_is_run_at_each_other_and_first_seed_counts_on():
    runs = plan("reach", schemes=("grm-20", "none"), settings=("s9-a0.020-g0.99-l1.0",), seeds=2, first_seed=3)
    cell = "reach/s9-a0.02-g0.99-l1"
    assert [r.id for r in runs] == [f"{cell}/{scheme}/seed{seed}" for seed in (3, 4) for scheme in ("grm-20", "none")]
    assert [r.scheme for r in plan("reach", settings=(reach.setting(13),), seeds=1)] == [
        *reach.METHODS,
        *reach.DELAYS,
    ]
    assert Request("reach", first_seed=3, seeds=2).command == "payback-lab run reach --seeds 2 --first-seed 3"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("a0.02-g0.995", 'There is no setting "a0.02-g0.995": write size, α, γ and λ like s11-a0.02-g0.995-l0.95.'),
        ("s4-a0.02-g0.995-l0.95", "The size is 4 in s4-a0.02-g0.995-l0.95: two rooms and a wall"),
        ("s11-a0-g0.995-l0.95", "α is 0 in"),
        ("s11-a0.02-g1.1-l0.95", "γ is 1.1 in"),
        ("s11-a0.02-g0.995-l1.01", "λ is 1.01 in s11-a0.02-g0.995-l1.01: it must be between 0 and 1."),
        ("s11-a0.02-g0.995-l-0.1", "λ is -0.1 in"),
        ("s11-a0.02-g0.995-lx", 'There is no setting "s11-a0.02-g0.995-lx"'),
        ("s11.5-a0.02-g0.995-l0.95", 'There is no setting "s11.5-a0.02-g0.995-l0.95"'),
    ],
)
def test_a_setting_that_is_none_is_one_sentence(capsys, tmp_path: Path, monkeypatch, setting: str, sentence: str):
    monkeypatch.chdir(tmp_path)
    assert cli.main(("run", "delay", "--settings", setting)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("experiment", ["reach", "delay", "center"])
def test_a_first_seed_below_0_is_one_sentence(capsys, tmp_path: Path, monkeypatch, experiment: str):
    monkeypatch.chdir(tmp_path)
    assert cli.main(("run", experiment, "--first-seed", "-1")) == 2
    assert capsys.readouterr().err == "payback-lab: --first-seed must be at least 0, got -1.\n"
    assert list(tmp_path.iterdir()) == []


def committed(folder: Path, version: int = 1) -> None:
    """Commit two runs of `reach`: one as planned, one that was cut short."""
    runs = [
        {"id": f"reach/{reach.setting(11)}/im/seed0", "trained_steps": 6_000_640},
        {"id": f"reach/{reach.setting(11)}/im/seed1", "trained_steps": 4096},
    ]
    (folder / "reach").mkdir(parents=True)
    group = {"made": {"learner_version": version}, "runs": runs}
    (folder / "reach" / "summary.json").write_text(json.dumps({"groups": [group]}))


def test_a_committed_run_is_not_made_again(tmp_path: Path, monkeypatch, capsys):
    """One that was cut short is, and so are all with --again."""
    committed(tmp_path / "results")
    asked = {"schemes": ("im",), "settings": (reach.setting(11),), "seeds": 2, "out": tmp_path / "runs"}
    made = []
    monkeypatch.setattr("payback_lab.running.local.events", lambda tasks, workers: made.extend(tasks) or iter(()))
    for again in (False, True):
        run(Request("reach", **asked, summaries=tmp_path / "results", again=again), Console(soft_wrap=True))
    assert [task.runs[0].seed for task in made] == [1, 0, 1]
    assert "2 runs planned, 0 done already, 1 more in" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["version", "text", "shape"])
def test_a_summary_that_does_not_fit_is_one_sentence(tmp_path: Path, monkeypatch, capsys, damage: str):
    committed(tmp_path / "results", version=0 if damage == "version" else 1)
    path = tmp_path / "results" / "reach" / "summary.json"
    if damage != "version":
        path.write_text("{" if damage == "text" else '{"groups": [3]}')
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert cli.main(("run", "reach", "--seeds", "1", "--summaries", "results")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert ("learner version 0, not 1" if damage == "version" else "cannot be read") in error
    assert path.read_bytes() == before
    assert not (tmp_path / "runs").exists()


def test_runs_are_not_added_to_a_summary_of_another_learner(tmp_path: Path, monkeypatch, capsys):
    """The summary and the runs are as they were, and nothing is written beside them."""
    shutil.copytree(RESULTS / "reach", tmp_path / "results" / "reach")
    path = tmp_path / "results" / "reach" / "summary.json"
    path.write_text(path.read_text().replace('"learner_version": 1', '"learner_version": 0'))
    before = path.read_bytes()
    (one, *_) = plan("reach", schemes=("im",), settings=(reach.setting(11),), seeds=1)
    points = 40
    columns = {name: np.ones(points, np.float32) for name in Record._fields} | {
        "steps": np.linspace(0, 6_000_640, points + 1)[1:].astype(np.int32)
    }
    made = {"created": "2026-01-02", "command": "", "commit": "", "python": "", "platform": "", "seconds": 1.0}
    result = Result(columns, {}, {"sampled_solved": 1.0, "sampled_length": 60.0})
    records.write(tmp_path / "runs", one, result, 1, made)
    monkeypatch.chdir(tmp_path)
    assert cli.main(("report", "--summaries", "results", "--save-summaries")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "made with another learner_version: move it away, or choose another --summaries." in error
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in (tmp_path / "runs").iterdir()) == ["reach"]


def test_claims_are_decided_again_from_the_committed_figures(tmp_path: Path, monkeypatch, capsys):
    shutil.copytree(RESULTS / "reach", tmp_path / "results" / "reach")
    path = tmp_path / "results" / "reach" / "summary.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "claims": []}))
    assert cli.main(("report", "--decide-again", "--summaries", str(tmp_path / "results"))) == 0
    again = json.loads(path.read_text())
    assert [claim["sentence"] for claim in again["claims"]] == [s.statement for s in CLAIMS.stated]
    assert again["groups"] == stored["groups"]
    assert "decided the claims" in capsys.readouterr().out
