"""DoorKey as an experiment: what is planned, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from payback_lab import cli, records
from payback_lab.experiments.doorkey import experiment as doorkey
from payback_lab.experiments.doorkey import training as doorkey_training
from payback_lab.experiments.doorkey.config import ABLATIONS, DoorKeyConfig
from payback_lab.experiments.resumable import about_run
from payback_lab.learners.checkpoint import save_checkpoint
from payback_lab.methods import OTHERS, SCHEMES
from payback_lab.running.request import Request
from payback_lab.running.run import planned
from payback_lab.runs import Run, checkpoint_of

ASK = ("run", "doorkey", "--schemes", "grm-10", "--settings", "a0.02-g0.995", "--seeds", "1", "--steps", "49152")


def plan(*arguments, **named) -> list[Run]:
    return planned(Request("doorkey", *arguments, **named))[1]


def test_a_seed_has_23_cells_and_no_im_one_per_gamma():
    runs = plan(seeds=1)
    ids = [run.id for run in runs]
    assert len(set(ids)) == len(ids) == 23
    expected = {f"doorkey/{setting}/{scheme}/seed0" for setting in doorkey.SETTINGS for scheme in SCHEMES[1:]}
    assert set(ids) == expected | {"doorkey/g0.99/none/seed0", "doorkey/g0.995/none/seed0"}
    assert {run.config.total_steps for run in runs} == {10_000_384}


def test_configs_are_those_of_the_settings():
    for run in plan(seeds=1):
        gamma = run.config.gamma
        alpha = 0.005 if run.scheme == "none" else run.config.alpha
        wanted = f"g{gamma}" if run.scheme == "none" else f"a{alpha}-g{gamma}"
        assert run.setting == wanted
        assert run.config == DoorKeyConfig(gamma=gamma, alpha=alpha, shaping_gamma=gamma)


def test_seeds_come_one_after_the_other():
    """Whatever is stopped has every cell equally often, but for the last seed."""
    runs = plan(schemes=("im", "none"))
    assert [run.seed for run in runs] == [0] * 5 + [1] * 5 + [2] * 5
    cells = [(run.setting, run.scheme) for run in runs]
    assert cells[:5] == cells[5:10] == cells[10:]
    batches = doorkey.EXPERIMENT.batches(runs)
    assert batches == [(run,) for run in runs]
    # The engine starts the longest first, which must not mix the seeds up.
    assert sorted(batches, key=doorkey.EXPERIMENT.cost, reverse=True) == batches


@pytest.mark.parametrize(
    ("ablation", "cells"),
    [
        ("plain-settlement", {("pbim", s) for s in doorkey.SETTINGS} | {("pbim-raw", s) for s in doorkey.SETTINGS}),
        ("learner-discount-0.99", {(scheme, s) for scheme in ("im", "grm-10") for s in doorkey.SETTINGS[1:]}),
        (
            "entropy-0.001",
            {(scheme, s) for scheme in ("im", "grm-10") for s in doorkey.SETTINGS}
            | {("none", "g0.99"), ("none", "g0.995")},
        ),
    ],
)
def test_an_ablation_changes_what_it_says_where_it_matters(ablation, cells):
    runs = plan(seeds=1, ablation=ablation)
    assert {(run.scheme, run.setting) for run in runs} == cells
    assert len(runs) == len(cells)
    literal = {(run.setting, run.scheme): run.config for run in plan(seeds=1)}
    for run in runs:
        before = literal[run.setting, run.scheme]
        assert run.config == replace(before, **ABLATIONS[ablation]) != before
        assert run.id.startswith(f"doorkey+{ablation}/")


def test_an_ablation_leaves_out_what_it_does_not_change():
    """Without a loan there is no settlement; at γ = 0.99 the learner discounts by 0.99 already."""
    assert plan(("none", "im"), ablation="plain-settlement") == []
    assert plan(SCHEMES, settings=("a0.005-g0.99",), ablation="learner-discount-0.99") == []
    every = plan((*SCHEMES, *OTHERS), 1, settings=("a0.02-g0.995",), ablation="plain-settlement")
    assert [run.scheme for run in every] == [*SCHEMES[2:], *OTHERS]


def test_other_settings_and_matchings_may_be_asked_for():
    (run,) = plan(("im",), 1, settings=("a0.03-g0.99",))
    assert run.id == "doorkey/a0.03-g0.99/im/seed0"
    assert (run.config.alpha, run.config.gamma, run.config.shaping_gamma) == (0.03, 0.99, 0.99)
    runs = plan(("grm-3", "when"), 1, settings=("a0.02-g0.995", "a0.020-g0.9950"), steps=4096)
    assert [run.id for run in runs] == [f"doorkey/a0.02-g0.995/{scheme}/seed0" for scheme in ("grm-3", "when")]
    assert {run.config.total_steps for run in runs} == {4096}


Said = tuple[int, str, str]


@pytest.fixture
def payback(in_this_process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> Callable[..., Said]:
    """Call the command line in an empty folder; the work is done in this process, which has JAX already."""

    monkeypatch.setattr(doorkey_training, "keep_compiled", lambda out: None)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Said:
        status = cli.main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--settings big", 'There is no setting "big": write α and γ like a0.02-g0.995.'),
        ("--settings a0.02", 'There is no setting "a0.02": write α and γ like a0.02-g0.995.'),
        ("--settings a1e-3-g0.99", 'There is no setting "a1e-3-g0.99": write α and γ like a0.02-g0.995.'),
        ("--settings a0.02-g0.995 anan-g0.99", 'There is no setting "anan-g0.99"'),
        ("--settings a0-g0.99", "α is 0 in a0-g0.99: a bonus must be more than 0; for no bonus use --schemes none."),
        ("--settings a-0.02-g0.99", "α is -0.02 in a-0.02-g0.99: a bonus must be more than 0"),
        ("--settings a0-g0.99 --schemes none", "α is 0 in a0-g0.99"),
        ("--settings a0.02-g0", "γ is 0 in a0.02-g0: it must be more than 0 and at most 1."),
        ("--settings a0.02-g-0.5", "γ is -0.5 in a0.02-g-0.5: it must be more than 0 and at most 1."),
        ("--settings a0.02-g1.01", "γ is 1.01 in a0.02-g1.01: it must be more than 0 and at most 1."),
        ("--steps 1000", "--steps 1,000 is not a whole number of updates of 2,048 steps: give 2,048."),
        ("--steps 10000000", "give 9,998,336 or 10,000,384."),
        ("--steps -2048", "--steps must be at least 1, got -2048."),
        ("--schemes grm-0", 'There is no scheme "grm-0"'),
        ("--first-seed -1", "--first-seed must be at least 0, got -1."),
        ("--ablation entropy", 'There is no ablation "entropy"'),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(payback, tmp_path: Path, monkeypatch, arguments: str, sentence: str):
    monkeypatch.delattr(doorkey_training, "train")  # if it is not refused, nothing must begin for hours
    status, out, error = payback("run", "doorkey", *arguments.split())
    assert (status, out) == (2, "")
    assert error.startswith("payback-lab: ")
    assert error.count("\n") == 1
    assert sentence in error
    assert list(tmp_path.iterdir()) == []


def checkpoint_here(tmp_path: Path, **others) -> Path:
    """Leave a checkpoint as of `ASK`, of which `others` were different; its state is a made-up one."""
    (run,) = plan(("grm-10",), 1, settings=("a0.02-g0.995",), steps=49152)
    path = checkpoint_of(tmp_path / "runs", run)
    path.parent.mkdir(parents=True)
    about = about_run(run, doorkey.EXPERIMENT.learner_version)
    assert others.keys() <= about.keys()
    save_checkpoint(path, {"parameters": np.arange(1000.0)}, {"steps": np.arange(9)}, {**about, **others})
    return path


def refused(payback, path: Path) -> str:
    """Ask for the run; return the sentence, after looking that nothing else was said and nothing touched."""
    before, modified = path.read_bytes(), path.stat().st_mtime_ns
    status, _, error = payback(*ASK)
    assert status == 2
    assert error.startswith(f"payback-lab: The checkpoint {path.relative_to(Path.cwd())} ")
    assert error.count("\n") == 1
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, modified)
    assert records.folders(Path("runs")) == []
    return error


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"total_steps": 4096}, "is of another run (total_steps was 4096, now 49152): give the settings it was made"),
        ({"entropy_weight": 0.001}, "(entropy_weight was 0.001, now 0.01)"),
        ({"seed": 1}, "(seed was 1, now 0)"),
        ({"learner_version": 0}, "(learner_version was 0, now 1): give the settings it was made with, another --out"),
        ({}, "does not fit this version of the learner: delete it."),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_kept(payback, tmp_path: Path, others: dict, words: str):
    assert words in refused(payback, checkpoint_here(tmp_path, **others))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_a_damaged_checkpoint_is_refused_and_kept(payback, tmp_path: Path, damage: str):
    path = checkpoint_here(tmp_path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    path.write_bytes({"truncated": whole[:-100], "flipped": flipped, "empty": b""}[damage])
    assert "is damaged: delete it to begin this run again." in refused(payback, path)
