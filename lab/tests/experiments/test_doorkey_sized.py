"""`reach` and `delay`: what is planned, what is refused, and that committed runs are not made again."""

import json
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab import cli
from payback_lab.experiments.delay import config as delay
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.experiments.reach import config as reach
from payback_lab.running.run import Request, planned, run


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
