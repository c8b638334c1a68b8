"""The study in Stable-Baselines3: what is planned, what the other studies decide, how a run is made, what is judged."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from payback_lab import cli
from payback_lab.experiments import load
from payback_lab.experiments.arena.config import ADV
from payback_lab.experiments.hosts.experiment import (
    FORMS,
    PLANNED,
    TASKS,
    TUNING_SEED,
    Choices,
    cells_of,
    choices,
    middle,
)
from payback_lab.experiments.hosts.setting import BONUSES, COUNTS, LIFETIME, parse_setting
from payback_lab.experiments.hosts.verdicts import HostRuns, of_hosts
from payback_lab.experiments.studies import learned
from payback_lab.experiments.studies.study import Cell
from payback_lab.runs import Asked
from payback_lab.user_error import UserError

from .study_runs import of_alpha, of_bonus, write_runs, write_study

EXPERIMENT = load("hosts")
LONE = FORMS[ADV]
CHOSEN = Choices("grm-30", LONE, "e3b", {(task, b): middle(task) for task in TASKS for b in (COUNTS, "e3b")})


def figures(cell: Cell, seed: int, step: int | None, first: int | None = 1000, length: float = 50.0) -> dict:
    return {
        "id": f"hosts/{cell.setting}/{cell.method}/seed{seed}",
        "scheme": cell.method,
        "seed": seed,
        "trained_steps": cell.steps,
        "solved_step": step,
        "first_goal_step": first,
        "mean_training_solved": 0.5,
        "best_training_solved": 0.9,
        "sampled_solved": 0.8,
        "sampled_length": length + seed,
    }


def test_what_can_be_planned_is_and_the_rest_waits_in_one_sentence(tmp_path: Path) -> None:
    study = EXPERIMENT.informed(tmp_path)
    runs = study.plan(Asked())
    assert [run.seed for run in runs[:9]] == [TUNING_SEED] * 9
    assert {(run.scheme, run.config.bonus) for run in runs} == {("im", COUNTS), ("none", COUNTS)}
    assert len(runs) == 9 + 15 + 18
    assert study.later.startswith(f"42 of {PLANNED} runs are planned; ")
    assert all(what in study.later for what in ("GRM's delay", "the advantage-side form", "learned bonus", "α of"))
    assert study.later.count(".") == 1
    assert {run.config.environments * run.config.rollout for run in runs} == {2048}
    assert {run.config.total_steps for run in runs} == {401_408, 1_001_472, 301_056}


def test_the_other_studies_decide_the_rest(tmp_path: Path) -> None:
    write_study(tmp_path, "safe-range", of_alpha)
    for _ in range(2):  # the tuning runs choose each α
        write_study(tmp_path, "learned", of_bonus)
    found = choices(tmp_path)
    assert found.grm in ("grm-10", "grm-30")
    assert found.form in FORMS.values()
    assert found.bonus in learned.LEARNED
    tuned = [
        figures(cell, TUNING_SEED, None) | {"mean_training_solved": parse_setting(cell.setting).alpha}
        for cell in cells_of(found)
        if cell.first_seed == TUNING_SEED
    ]
    write_runs(tmp_path, "hosts", tuned)
    study = EXPERIMENT.informed(tmp_path)
    assert study.later == ""
    assert {alpha for (task, _), alpha in choices(tmp_path).alphas.items()} == {1.6, 0.08}
    runs = study.plan(Asked())
    assert len(runs) == len({run.id for run in runs}) == PLANNED == 18 + 15 + 90 + 36 - 6 + 3 * (11 - 2)


def test_the_best_learned_bonus_needs_every_run() -> None:
    chosen = learned.Choices(ADV, {(b, m): 0.02 for b in learned.BONUSES for m in ("im", "grm-30", ADV)})
    shares = {"rnd-views": 0.2, "e3b": 0.9, "noveld": 0.5, "icm": 0.1, "rnd": 0.0}
    finished = {
        (f"{task}_a0.02_g0.99_{bonus}", method): {0: {"sampled_solved": share, "mean_training_solved": share}}
        for task in learned.TASKS
        for bonus, share in shares.items()
        for method in ("grm-30", ADV)
    }
    assert learned.best_bonus(chosen, finished) == "e3b"
    assert learned.best_bonus(chosen, dict(list(finished.items())[1:])) is None
    assert learned.best_bonus(learned.Choices(None, {}), finished) is None


@pytest.mark.parametrize(
    ("method", "setting", "words"),
    [
        ("none", "DoorKey-8x8_a0.02_counts", 'There is no bonus "counts"'),
        ("none", "DoorKey-7x9_a0.02_rnd", 'no task "DoorKey-7x9"'),
        ("none", "DoorKey-8x8", "is not understood"),
        ("none", "MountainCar_a0_rnd", "a bonus must be more than 0"),
        ("grm-adv-30-0.95", "MountainCar_a0.4_rnd", "write grm-adv-30-0.95-lone"),
        ("grm-adv-30-0.95-flat-lone", "MountainCar_a0.4_rnd", "leave -flat out"),
        ("grm-adv-0-0.95-lone", "MountainCar_a0.4_rnd", "after at least 1 step"),
        ("two-critics-0.99", "MountainCar_a0.4_rnd", 'no method "two-critics-0.99"'),
        ("eipo", "MountainCar_a0.4_rnd", 'no method "eipo"'),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    method: str, setting: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--out", str(tmp_path / "runs"), "--summaries", str(tmp_path / "summaries")]
    assert cli.main(["run", "hosts", "--schemes", method, "--settings", setting, *folders]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_steps_that_are_no_whole_rollouts_are_refused() -> None:
    with pytest.raises(UserError, match="whole number of rollouts of 2,048 steps"):
        EXPERIMENT.plan(Asked(steps=3000))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):  # an earlier test may have imported any of its modules
        if name.startswith(("stable_baselines3.", "payback_lab.experiments.hosts.training")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(UserError, match=r"hosts needs stable_baselines3.*: pip install 'payback-lab\[sb3\]'"):
        EXPERIMENT.execute((EXPERIMENT.plan(Asked())[0],), lambda share: None, None)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch):
    """The module that trains, with an evaluation of sixteen episodes on few layouts."""
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minigrid")
    from payback_lab.environments.minigrid.layouts import draw_layouts
    from payback_lab.experiments.hosts import training

    monkeypatch.setattr(training, "EVALUATION", 16)
    monkeypatch.setattr(training, "make_sb3_vec", partial(training.make_sb3_vec, layouts=draw_layouts("Empty-5x5", 8)))
    return training


def run_of(method: str, setting: str = "Empty-5x5_a0.02_episodic-count", rollouts: int = 2):
    asked = Asked(schemes=(method,), settings=(setting,), seeds=1, steps=2048 * rollouts)
    return EXPERIMENT.plan(asked)[-1]


def test_a_short_run_repeats_itself_and_depends_on_its_method(training) -> None:
    shares: list[float] = []
    methods = ("grm-30", "grm-30", "im", "none", LONE)
    results = [EXPERIMENT.execute((run_of(m),), shares.append)[run_of(m).id] for m in methods]
    assert shares[:3] == [0.0, 0.5, 1.0]
    assert results[0].summary == results[1].summary
    assert results[0].columns["steps"].tolist() == [2048, 4096]
    assert {"solved_step", "first_goal_step", "sampled_length", "best_training_solved"} <= results[0].summary.keys()
    assert results[0].columns["episodes"].sum() > 0
    assert results[0].summary["first_goal_step"] <= 4096
    lengths = [result.summary["sampled_length"] for result in results[1:]]
    assert len(set(lengths)) == len(lengths), "another method makes another agent"


def test_taking_back_ends_with_the_tasks_advantage_alone(training, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[float] = []
    original = training.CheckShaping._on_rollout_end

    def seen(self) -> None:
        original(self)
        weights.append(self._advantage._weight)

    monkeypatch.setattr(training.CheckShaping, "_on_rollout_end", seen)
    EXPERIMENT.execute((run_of(f"{LONE}-back", rollouts=8),), lambda share: None)
    assert weights[0] == 1
    assert weights[-1] == 0


def test_mountain_car_is_sparse_and_its_limit_ends_it(training) -> None:
    config = replace(EXPERIMENT.plan(Asked())[0].config, task="MountainCar", environments=2)
    env = training.ended_by_limits(config)
    env.reset()
    for _ in range(200):
        _, reward, done, infos = env.step(np.array([1, 1]))
        assert not reward.any()
    assert done.all()
    assert not any(info["TimeLimit.truncated"] for info in infos)
    single = training.sparse_mountain_car()
    single.reset(seed=0)
    single.unwrapped.state = np.array([0.49, 0.07])
    assert single.step(2)[1:3] == (1.0, True)


@pytest.mark.parametrize("bonus", BONUSES)
@pytest.mark.parametrize("task", ["Empty-5x5", "MountainCar"])
def test_every_bonus_pays_on_every_task(training, bonus: str, task: str) -> None:
    config = replace(EXPERIMENT.plan(Asked())[0].config, task=task, bonus=bonus, environments=2)
    env = training.ended_by_limits(config)
    made = training.bonus_of(config, seed=0)
    training.ShapeVectorReward(env, made, training.transform_of("grm-30", 0.99), learner_gamma=0.99)
    obs = env.reset()
    F = made(obs, np.array([0, 2]), obs[::-1].copy(), [{}, {}])
    assert F.shape == (2,)
    assert np.isfinite(F).all()


def test_bins_of_mountain_car_are_twenty_by_twenty() -> None:
    training = pytest.importorskip("payback_lab.experiments.hosts.training")
    grid = np.stack(np.meshgrid(np.linspace(-1.2, 0.6, 200), np.linspace(-0.07, 0.07, 200)), axis=-1).reshape(-1, 2)
    assert {training.car_bin(obs) for obs in grid} == set(range(400))


def judged(step, seeds: int = 5, **more) -> dict[str, str]:
    """Judge made-up runs; `step` and what is in `more` are functions of the setting, the method and the seed."""
    finished: dict = {}
    for cell in cells_of(CHOSEN):
        for seed in range(cell.first_seed, cell.first_seed + min(cell.seeds, seeds)):
            at = (parse_setting(cell.setting), cell.method, seed)
            run = figures(cell, seed, step(*at), **{name: value(*at) for name, value in more.items()})
            finished.setdefault((cell.setting, cell.method), {})[seed] = run
    return {one.text: one.verdict for one in of_hosts(HostRuns(CHOSEN, finished))}


def predicted_step(setting, method: str, seed: int) -> int | None:
    if method == "none":
        return 300_000 if setting.task == "DoorKey-8x8" and seed < 2 else None
    lifetime = setting.bonus in LIFETIME
    return None if method == "grm-30" and (seed == 1 or lifetime) else 100_000 + seed


def predicted_length(setting, method: str, seed: int) -> float:
    return 20.0 if method == LONE else 40.0


def predicted_first(setting, method: str, seed: int) -> int:
    return 5000 + seed if setting.normalised else int(50_000 * setting.alpha) + seed


def test_predictions_are_decided_by_the_committed_rules() -> None:
    found = judged(predicted_step, length=predicted_length, first=predicted_first)
    assert len(found) == 10
    assert set(found.values()) == {"holds"}


def test_every_prediction_can_fail() -> None:
    found = judged(
        lambda setting, method, seed: None if method in (LONE, "im") and seed else 10,
        length=lambda setting, method, seed: 30.0 if method == LONE else 10.0,
        first=lambda setting, method, seed: int(1e6 * setting.alpha) if setting.normalised else 5000,
    )
    failed = {text for text, verdict in found.items() if verdict == "does not hold"}
    assert set(found) - failed == {"The advantage-side form is not better than the tuned raw bonus."}
    sooner = judged(lambda setting, method, seed: 10 if method == LONE else None)
    assert sooner["The advantage-side form is not better than the tuned raw bonus."] == "does not hold"


def test_a_missing_seed_leaves_predictions_undecided() -> None:
    found = judged(predicted_step, seeds=4, length=predicted_length, first=predicted_first)
    decided = {text for text, verdict in found.items() if verdict != "undecided"}
    assert decided == {text for text in found if "normalisation" in text or "default α" in text}  # three seeds each
    nothing = of_hosts(HostRuns(Choices(), {}))
    assert {one.verdict for one in nothing} == {"undecided"}


def test_a_summary_of_another_version_is_refused(tmp_path: Path) -> None:
    write_runs(tmp_path, "hosts", [])
    path = tmp_path / "hosts" / "summary.json"
    stored = json.loads(path.read_text())
    stored["groups"][0]["made"]["learner_version"] = 2
    path.write_text(json.dumps(stored))
    with pytest.raises(UserError, match="learner version 2, not 1"):
        EXPERIMENT.informed(tmp_path)
