"""The arena: what is planned, what is refused in one sentence, and a run that stops and goes on to the bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from payback_lab import cli, experiments, records
from payback_lab.environments.minigrid import layouts
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.figures import single_figures
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.report import store
from payback_lab.report.summary import summarise
from payback_lab.running import local
from payback_lab.runs import Asked, Run, checkpoint_of

EXPERIMENT = experiments.load("arena")


@pytest.fixture(autouse=True)
def no_run_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that is wrongly accepted fails a test at once, instead of being trained on for an hour."""
    monkeypatch.setattr(local, "events", lambda tasks, workers: pytest.fail(f"{tasks[0].name} was started"))


def planned(schemes=(), seeds=None, settings=(), steps=None, first_seed=0) -> list[Run]:
    return EXPERIMENT.plan(Asked(schemes, seeds, settings, steps, None, first_seed))


def test_run_ids_name_task_method_alpha_and_seed() -> None:
    runs = planned(
        ("adopes", "phased"), 2, ("KeyCorridorS3R1_a0.010", "DoorKey-9x9_rnd_a0.05_g0.99_t90_z0-0.50"), 4096, 3
    )
    assert [run.id for run in runs[:4]] == [
        "arena/KeyCorridorS3R1_a0.01_g0.995/adopes/seed3",
        "arena/KeyCorridorS3R1_a0.01_g0.995/phased/seed3",
        "arena/DoorKey-9x9_a0.05_g0.99_t90_rnd_z0-0.5/adopes/seed3",
        "arena/DoorKey-9x9_a0.05_g0.99_t90_rnd_z0-0.5/phased/seed3",
    ]
    config = runs[2].config
    assert (config.task, config.alpha, config.gamma, config.max_steps) == ("DoorKey-9x9", 0.05, 0.99, 90)
    assert (config.bonus, config.fade_start, config.fade_end, config.adopes_end) == ("rnd", 0.0, 0.5, 0.5)
    assert config.total_steps == 4096
    for run in runs:
        assert Run.parse(run.id).id == run.id
        assert parse_setting(run.setting or "").name == run.setting


def test_every_method_seed_by_seed() -> None:
    runs = planned(seeds=3)
    assert len(runs) == 3 * len(METHODS)
    assert [run.scheme for run in runs[: len(METHODS)]] == list(METHODS)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert runs[0].config.total_steps % runs[0].config.samples == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--settings", "DorKey-8x8_a0.02"), 'there is no task "DorKey-8x8"; choose among DoorKey-5x5'),
        (("--settings", "DoorKey-8x8"), 'The setting "DoorKey-8x8" has no α: write task, α and γ like DoorKey-11x11'),
        (("--settings", "DoorKey-8x8_a0.02_g0.99_g0.995"), "γ is given twice in the setting"),
        (("--settings", "DoorKey-8x8_a0.02_t0"), "The time limit is 0 steps in DoorKey-8x8_a0.02_t0: an episode has"),
        (("--settings", "DoorKey-8x8_a0.02_t-5"), "The time limit is -5 steps"),
        (("--settings", "DoorKey-8x8_a0.02_t3000000000"), "The time limit is 3,000,000,000 steps"),
        (("--settings", "DoorKey-8x8_a0.02_z0.2-1.5"), "ζ rises from 0.2 to 1.5 of the training; give two shares"),
        (("--settings", "DoorKey-8x8_a0.02_z0.6-0.5"), "ζ rises from 0.6 to 0.5"),
        (
            ("--settings", "DoorKey-8x8_a0.02_z0.2-0.5", "--schemes", "pies", "im"),
            "im has no ζ, which the setting DoorKey-8x8_a0.02_g0.995_z0.2-0.5 gives: leave _z and what follows out",
        ),
        (("--settings", "DoorKey-0008x0008_a0.02"), 'there is no task "DoorKey-0008x0008"'),
        (
            ("--settings", "DoorKey-8x8_a0.02_g0.85", "--schemes", "pbim"),
            "pbim cannot be run in DoorKey-8x8_a0.02_g0.85: over 640 steps the interest at γ = 0.85 is more than "
            "float32 holds; take a shorter time limit",
        ),
        (("--settings", "DoorKey-8x8_a0.02_l0.9"), '"l0.9" is not understood in the setting'),
        (("--settings", "DoorKey-8x8_a0"), "α is 0 in DoorKey-8x8_a0"),
        (("--settings", "DoorKey-8x8_a0.02_g1.5"), "γ is 1.5"),
        (("--schemes", "eppo"), 'There is no method "eppo": choose among none, im, pies, phased'),
        (("--schemes", "when"), 'There is no method "when"'),
        (("--steps", "3000"), "--steps 3,000 is not a whole number of updates of 2,048 steps: give 2,048 or 4,096"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(arguments, words: str, tmp_path: Path, capsys) -> None:
    assert cli.main(["run", "arena", *arguments, "--out", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("payback-lab: ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_rivals_are_refused_elsewhere(tmp_path: Path, capsys) -> None:
    assert cli.main(["run", "doorkey", "--schemes", "eipo", "--out", str(tmp_path / "runs")]) == 2
    assert 'There is no scheme "eipo"' in capsys.readouterr().err


def test_layouts_of_another_version_are_refused_before_runs_are_started(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pool = layouts.cache_folder() / f"Empty-5x5-{layouts.POOL}.npz"
    pool.parent.mkdir(parents=True)
    none = layouts.Layouts(np.zeros((0, 25), np.uint16), *(np.zeros(0, np.int32) for _ in range(3)))
    np.savez(pool, version=np.str_("0.0.1"), **none._asdict())
    content = pool.read_bytes()
    ask = ("run", "arena", "--settings", "Empty-5x5_a0.02", "--schemes", "none", "--out", str(tmp_path / "runs"))
    assert cli.main(ask) == 2
    said = capsys.readouterr().err
    assert "were drawn by minigrid 0.0.1" in said
    assert "delete the file" in said
    assert said.count("\n") == 1
    assert pool.read_bytes() == content
    assert not (tmp_path / "runs").exists()


def curve(episodes: list[int], solved: list[int]) -> dict[str, np.ndarray]:
    n = len(episodes)
    return {
        "steps": 2048 * np.arange(1, n + 1),
        "episodes": np.array(episodes),
        "solved": np.array(solved),
        "length": np.linspace(100, 10, n),
        "multiplier": np.full(n, np.nan),
        "residual": np.linspace(1, 0, n),
    }


def test_figures_of_a_curve() -> None:
    found = single_figures(curve([60, 60, 100, 100, 100], [60, 60, 50, 91, 95]))
    assert found == {
        "trained_steps": 5 * 2048,
        "solved_step": 4 * 2048,
        "first_solved_step": 2 * 2048,
        "mean_training_solved": round((1 + 1 + 0.5 + 0.91 + 0.95) / 5, 6),
        "final_training_solved": 0.95,
        "final_training_length": 10.0,
        "final_multiplier": None,
        "final_law_residual": 0.0,
    }
    never = single_figures(curve([0, 2, 0], [0, 2, 0]))
    assert (never["solved_step"], never["first_solved_step"], never["final_training_solved"]) == (None, None, None)


class StoppedError(Exception):
    """Stands for a kill."""


@pytest.mark.slow
def test_a_run_that_stops_goes_on_to_the_bit_and_is_summarised(tmp_path: Path, monkeypatch, compiles_fast) -> None:
    """EIPO with RND, so that every kind of state is saved: two policies, a multiplier, networks of the bonus."""
    from payback_lab.experiments import resumable
    from payback_lab.experiments.arena import training

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for module, name, value in (
        (resumable, "CHECKPOINT", 0.0),
        (resumable, "CHUNK", 1),
        (training, "EVALUATION", 20),
        (layouts, "POOL", 50),
    ):
        monkeypatch.setattr(module, name, value)
    (run,) = planned(("eipo",), 1, ("Empty-5x5_a0.02_t10_rnd",), 3 * 2048)
    told: list[float] = []
    straight = EXPERIMENT.execute((run,), told.append, None)[run.id]
    assert told == pytest.approx([0, 1 / 3, 2 / 3, 1])

    def stop(share: float) -> None:
        if share > 0.6:
            raise StoppedError

    with pytest.raises(StoppedError):
        EXPERIMENT.execute((run,), stop, tmp_path)
    assert checkpoint_of(tmp_path, run).exists()
    shares: list[float] = []
    resumed = EXPERIMENT.execute((run,), shares.append, tmp_path)[run.id]
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])
    for name in straight.columns:
        np.testing.assert_array_equal(straight.columns[name], resumed.columns[name])
    np.testing.assert_array_equal(straight.arrays["parameters"], resumed.arrays["parameters"])
    assert straight.summary == resumed.summary
    assert straight.columns["steps"].tolist() == [2048, 4096, 6144]
    # Episodes count while the agent acts, not while EIPO's second policy does.
    assert set(straight.columns["second"].tolist()) == {0.0, 1.0}
    np.testing.assert_array_equal(straight.columns["episodes"] > 0, straight.columns["second"] == 0)
    assert (straight.columns["bonus"][1:] > 0).all()
    assert len(np.unique(straight.columns["multiplier"])) > 1

    made = {"created": "2026-01-01T00:00:00+00:00", "commit": None, "command": "", "python": "", "platform": ""}
    records.write(tmp_path / "runs", run, resumed, EXPERIMENT.learner_version, {**made, "packages": {}, "seconds": 1.0})
    record = records.read(tmp_path / "runs" / run.id)
    store.save(tmp_path / "results", summarise(EXPERIMENT, {run.id: record}))
    (summary,) = store.load(tmp_path / "results")
    (group,) = summary.groups
    assert group.runs[0]["trained_steps"] == 6144
    assert set(group.curves["eipo"]) == {"return", "length", "window_mean"}
    size = sum(path.stat().st_size for path in (tmp_path / "results" / "arena").iterdir())
    assert size < 20_000
    assert json.loads((tmp_path / "results" / "arena" / "summary.json").read_text())["experiment"] == "arena"


@pytest.mark.slow
def test_the_optimum_is_that_of_the_episodes_that_are_played(tmp_path: Path, monkeypatch) -> None:
    """On an empty 5×5 grid from one corner to the other: two steps, a turn, two steps."""
    from payback_lab.experiments.arena import optimum

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(layouts, "POOL", 4)
    assert optimum.optimum("Empty-5x5", episodes=3) == (5.0, 0)
    pool = layouts.draw_layouts("DoorKey-5x5", 30)
    chosen = optimum.evaluated_layouts("DoorKey-5x5", pool, episodes=8)
    rows = {row.tobytes() for row in pool.grid}
    assert all(row.tobytes() in rows for row in chosen.grid)
    assert len({row.tobytes() for row in chosen.grid}) > 2
