"""The studies: what is planned, what the committed runs decide, and what is refused."""

import json

import pytest

from payback_lab import cli
from payback_lab.experiments import load
from payback_lab.experiments.arena.config import ADV, TWO
from payback_lab.experiments.arena.setting import BONUS_NAMES
from payback_lab.experiments.studies import analysis, depth, learned, safe_range
from payback_lab.experiments.studies.study import Cell, best_share, setting_of, whole_updates
from payback_lab.learners.arena.bonus import BONUSES
from payback_lab.running import local
from payback_lab.runs import Asked
from payback_lab.user_error import UserError

from .study_runs import of_alpha, write_study


def figures(share: float, training: float = 0.0, steps: int = safe_range.STEPS, **more: object) -> dict[str, object]:
    return {
        "sampled_solved": share,
        "sampled_solved_length": 40.0 if share else None,
        "mean_training_solved": training,
        "best_training_solved": share,
        "trained_steps": steps,
        **more,
    }


def write_summary(folder, name: str, runs: dict[tuple[str, str, int], dict[str, object]]) -> None:
    listed = [{"id": f"{name}/{s}/{m}/seed{seed}", **own} for (s, m, seed), own in runs.items()]
    made = {"learner_version": load(name).learner_version}
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "summary.json").write_text(json.dumps({"groups": [{"made": made, "runs": listed}]}))


def test_every_bonus_of_a_setting_exists():
    assert set(BONUS_NAMES) == set(BONUSES)


def test_safe_range_is_breadth_first_and_says_gamma():
    runs = load("safe-range").plan(Asked())
    per_seed = len(safe_range.CELLS)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert len(runs) == 3 * per_seed
    assert {run.config.gamma for run in runs} == {0.99}
    assert {run.config.bonus for run in runs} == {"views"}
    assert {run.config.total_steps for run in runs} == {2_000_896}


def test_named_runs_are_run_at_each_other():
    study = load("safe-range")
    (run,) = study.plan(Asked(schemes=(ADV,), settings=("DoorKey-6x6_a0.02_g0.99_views",), seeds=1, steps=4096))
    assert run.id == f"safe-range/DoorKey-6x6_a0.02_g0.99_views/{ADV}/seed0"
    assert run.config.total_steps == 4096
    with pytest.raises(UserError, match="second critic"):
        study.plan(Asked(schemes=("two-critics-1",), settings=("DoorKey-6x6_a0.02_g1_views",)))


def test_a_named_run_beside_the_plan_is_as_long_as_the_plans_own_on_that_task(tmp_path):
    write_study(tmp_path, "safe-range", of_alpha)
    depth = load("depth").informed(tmp_path)
    (run,) = depth.plan(Asked(schemes=("none",), settings=("KeyCorridorS6R3_a0.32_g0.99_views",), seeds=1))
    assert run.config.total_steps == whole_updates(20)


HERE = "DoorKey-6x6_a0.02_g0.99_views"


@pytest.mark.parametrize(
    ("method", "setting", "words"),
    [
        ("grm-adv-300-1.5", HERE, "λ_I is 1.5"),
        ("two-critics--0.1", HERE, "λ_I is -0.1"),
        ("two-critics-1", "DoorKey-6x6_a0.02_g1_views", "γλ_I = 1"),
        ("grm-adv-0-0.9", HERE, "at least 1 step"),
        ("grm-adv-2.5-0.9", HERE, "no method"),
        ("two-critics-0.9-lone", HERE, "no method"),
        ("none", "DoorKey-6x6_a0.02_g0.99_curious", '"curious" is not understood'),
        ("none", "DoorKey-7x9_a0.02_g0.99_views", 'no task "DoorKey-7x9"'),
        ("none", "DoorKey-6x6_a0.02_g0.99_n130_views", "multiple of 4"),
    ],
)
@pytest.mark.parametrize("study", ["safe-range", "depth", "learned"])
def test_bad_input_is_one_sentence_status_2_and_nothing_is_lost(
    study, method, setting, words, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(local, "events", lambda tasks, workers: pytest.fail(f"{tasks[0].name} was started"))
    kept = tmp_path / "runs" / study / HERE / "none" / "seed0" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("finished")
    folders = ["--out", str(tmp_path / "runs"), "--summaries", str(tmp_path / "summaries")]
    assert cli.main(["run", study, "--schemes", method, "--settings", setting, *folders]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("payback-lab: ")
    assert said.count("\n") == 1
    assert kept.read_text() == "finished"


def test_alpha_is_the_smallest_as_good_by_seed_0():
    shares = dict(zip(safe_range.ALPHAS, (0.2, 0.9, 0.905, 1.0, 0.995), strict=True))
    finished = {
        (setting_of(task, alpha), "im"): {0: figures(share, training=share), 1: figures(0.0)}
        for alpha, share in shares.items()
        for task in safe_range.TASKS
    }
    assert safe_range.chosen_alpha(finished, "im") == (0.08, 1.0)
    del finished[setting_of("KeyCorridorS3R3", 0.32), "im"]
    assert safe_range.chosen_alpha(finished, "im") is None


def test_depth_waits_for_the_safe_range_and_takes_the_better_delay(tmp_path):
    assert load("depth").informed(tmp_path).cells == ()
    runs = {
        (setting_of(task, alpha), method, 0): figures(0.9 if (method, alpha) in best else 0.1)
        for best in [{("im", 0.005), ("grm-10", 0.02), (ADV, 0.08)}]
        for task in safe_range.TASKS
        for alpha in safe_range.ALPHAS
        for method in ("im", "im-centred", "grm-10", "grm-30", ADV, f"{ADV}-back", TWO, f"{TWO}-back")
    }
    write_summary(tmp_path, "safe-range", runs)
    study = load("depth").informed(tmp_path)
    assert study.later == ""
    assert len(study.cells) == len(depth.TASKS) * 7 + 6
    assert {c.setting for c in study.cells if c.method == "im" and "16x16" in c.setting} == {
        "DoorKey-16x16_a0.005_g0.99",
        "DoorKey-16x16_a0.005_g0.99_views",
    }
    assert {c.method for c in study.cells if c.method.startswith("grm-1") or c.method == "grm-30"} == {"grm-10"}
    runs = study.plan(Asked())
    assert len(runs) == 3 * len(study.cells)
    assert {run.config.steps for run in runs} == {64, 128, 256, 512}
    assert all(run.config.total_steps % run.config.samples == 0 for run in runs)


def test_learned_tunes_first_and_runs_what_is_decided(tmp_path):
    study = load("learned").informed(tmp_path)
    assert study.waiting
    assert {(run.seed, run.config.task) for run in study.plan(Asked())} == {(10, "DoorKey-8x8")}
    runs = {
        (setting_of("DoorKey-8x8", alpha, "e3b"), "im", 10): figures(alpha, steps=learned.TUNING_STEPS)
        for alpha in learned.ALPHAS
    }
    write_summary(tmp_path, "learned", runs)
    decided = load("learned").informed(tmp_path)
    assert [c for c in decided.cells if c.method == "im" and c.steps == learned.STEPS] == [
        Cell(setting_of(task, 0.08, "e3b"), "im", learned.STEPS) for task in learned.TASKS
    ]


def test_safe_alphas_reach_half_of_the_best_score():
    finished = {
        (setting_of(task, alpha), method): {0: figures(share)}
        for method, alpha, share in (("im", 0.005, 1.0), ("im", 0.02, 0.4), ("grm-30", 0.02, 0.6))
        for task in safe_range.TASKS
    }
    raw, grm = analysis.safe_ranges(finished, ("im", "grm-30"))
    assert raw.safe == (0.005,)
    assert grm.safe == (0.02,)


def test_best_of_training_shows_a_collapse():
    import numpy as np

    columns = {"episodes": np.full(4, 100), "solved": np.array([0, 97, 50, 0])}
    assert best_share(columns) == 0.97
    collapsed = analysis.reached([figures(0.0, best_training_solved=0.97)])
    assert collapsed is not None
    assert collapsed.collapsed == 1
