"""The arena's study: what is chosen by the committed rules, and what `payback-lab run arena` plans when."""

from pathlib import Path

import pytest

from payback_lab import cli, experiments
from payback_lab.environments.minigrid.layouts import make_task
from payback_lab.experiments.arena.chosen import (
    CANDIDATES,
    FIRST,
    cell_of,
    chosen_alpha,
    chosen_alphas,
    chosen_tasks,
    most_spread,
    screened,
)
from payback_lab.experiments.arena.config import ADDED, METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.finished import finished_runs
from payback_lab.experiments.arena.study import parts_of, planned_runs, said
from payback_lab.experiments.reach import OPTIMUM
from payback_lab.running import local
from payback_lab.running.task import Event

from .arena_runs import made, screening, tuned, write_summary

EXPERIMENT = experiments.load("arena")
TASKS = (*FIRST, "DoorKey-13x13", "FourRooms")


def shares(low: float, middle: float, high: float) -> float | None:
    values = zip((0.005, 0.02, 0.08), (low, middle, high), strict=True)
    return chosen_alpha(finished_runs(made(cell_of("DoorKey-8x8", a), "im", 10, share=s) for a, s in values), "im")


def test_alpha_is_that_of_the_largest_share_and_the_smaller_of_two_alike() -> None:
    assert shares(0.5, 0.7, 0.6) == 0.02
    assert shares(0.5, 0.695, 0.7) == 0.02
    assert shares(0.691, 0.695, 0.7) == 0.005
    assert shares(0.5, 0.68, 0.7) == 0.08


def test_alpha_is_open_until_all_three_are_run_in_full() -> None:
    runs = [made(cell_of("DoorKey-8x8", a), "im", 10) for a in (0.005, 0.02)]
    assert chosen_alpha(finished_runs(runs), "im") is None
    short = made(cell_of("DoorKey-8x8", 0.08), "im", 10, trained_steps=2048)
    other_seed = made(cell_of("DoorKey-8x8", 0.08), "im", 0)
    assert chosen_alpha(finished_runs([*runs, short, other_seed]), "im") is None
    assert chosen_alpha(finished_runs([]), "none") == 0.02


def test_swept_delays_have_the_alpha_of_the_nearest_tuned_one() -> None:
    runs = [run for run in tuned(0.02) if run["scheme"] != "grm-30"]
    runs += [made(cell_of("DoorKey-8x8", a), "grm-30", 10, share=a) for a in (0.005, 0.02, 0.08)]
    found = chosen_alphas(finished_runs(runs))
    assert found is not None
    assert [found[d] for d in ("grm-1", "grm-10", "grm-30", "grm-100")] == [0.02, 0.02, 0.08, 0.08]
    assert chosen_alphas(finished_runs(runs[:-1])) is None


def test_how_a_candidate_tells_methods_apart() -> None:
    runs = [
        made(cell_of("FourRooms"), "none", share=0.0),
        made(cell_of("FourRooms"), "im", share=0.5, times=2.0, final_training_length=4 * FEWEST["FourRooms"]),
    ]
    (found,) = screened(finished_runs(runs))
    assert dict(found.found) == {"none": 0.0, "im": 0.5}
    assert dict(found.near) == {"none": 0.0, "im": pytest.approx(0.5 / 4)}
    assert found.separation == pytest.approx(0.5 * (1 - 0.125))


def test_the_four_tasks() -> None:
    assert chosen_tasks(finished_runs(screening("FourRooms"))) == TASKS
    assert chosen_tasks(finished_runs(screening("DoorKey-11x11")))[:3] == TASKS[:3]  # it is one of them already
    assert chosen_tasks(finished_runs(screening()[:-1])) is None


def test_a_long_candidate_comes_before_the_larger_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """No candidate but DoorKey-11x11 has a limit above 1,000 steps; the rule would take one that had."""
    monkeypatch.setitem(LIMITS, "UnlockPickup", 1001)  # pyright: ignore[reportArgumentType]
    assert chosen_tasks(finished_runs(screening("FourRooms"))) == (*FIRST, "UnlockPickup", "FourRooms")
    assert chosen_tasks(finished_runs(screening("UnlockPickup")))[2] == "UnlockPickup"
    rarely = [{**run, "final_training_solved": 0.1} if "Unlock" in run["id"] else run for run in screening()]
    assert chosen_tasks(finished_runs(rarely)) == TASKS


def test_the_limits_are_those_of_the_package() -> None:
    assert {task: make_task(task).max_steps for task in LIMITS} == LIMITS
    assert LIMITS.keys() == FEWEST.keys()
    assert {*CANDIDATES, "DoorKey-8x8", "DoorKey-13x13"} == LIMITS.keys()


def test_the_fewest_steps_on_the_evaluated_layouts_are_near_those_on_all() -> None:
    """Of DoorKey all starts have been searched by another program; a thousand layouts are a sample of them."""
    for size in (8, 11, 13):
        assert FEWEST[f"DoorKey-{size}x{size}"] == pytest.approx(OPTIMUM[size], rel=0.015)


def study(worst: dict[str, float], seeds: int = 3) -> list[dict]:
    """Return the study's runs; on a task the worst method solves this share. The screening chooses as before."""
    chosen = {"final_training_solved": 0.8, "final_training_length": 20 * FEWEST["FourRooms"]}
    return [
        made(
            cell_of(task),
            method,
            seed,
            share=worst.get(task, 0.9) if method == "none" else 1.0,
            **(chosen if task == "FourRooms" else {}),
        )
        for task in TASKS
        for method in METHODS
        for seed in range(seeds)
    ]


def test_more_seeds_go_where_the_scores_differ_most() -> None:
    worst = {"FourRooms": 0.1, "DoorKey-13x13": 0.3, "DoorKey-11x11": 0.4}
    runs = [*tuned(), *screening(), *study(worst)]
    assert most_spread(finished_runs(runs)) == ("FourRooms", "DoorKey-13x13")
    assert most_spread(finished_runs(runs[:-1])) is None


def test_the_plan_grows_with_what_is_known() -> None:
    def parts(runs):
        return {part.name: part.runs is not None for part in parts_of(finished_runs(runs))}

    early = parts([])
    assert [name for name, known in early.items() if known] == ["tuning", "screening", "added: α", "lava"]
    assert not parts([*tuned()])["study"]
    assert parts([*tuned()])["time limit"]
    both = parts([*tuned(), *screening()])
    assert [name for name, known in both.items() if not known] == ["more seeds", "added", "added: more"]
    finished = [*tuned(), *screening(), *study({"FourRooms": 0.1})]
    everything = parts_of(finished_runs([*finished, *added_tuned(0.08)]))
    assert said(everything) == ""
    assert all(part.runs is not None and len(part.runs) == part.size for part in everything)


def added_tuned(best: float) -> list[dict]:
    """Return the runs that choose this α for every added method."""
    shares = {alpha: 0.9 if alpha == best else 0.5 for alpha in (0.005, 0.02, 0.08)}
    return [made(cell_of("DoorKey-8x8", a), m, 10, share=s) for a, s in shares.items() for m in ADDED]


def test_what_is_added_comes_last_and_changes_no_choice() -> None:
    finished = [*tuned(), *screening(), *study({"FourRooms": 0.1, "DoorKey-13x13": 0.3})]
    before, after = (parts_of(finished_runs(runs)) for runs in (finished, [*finished, *added_tuned(0.08)]))
    assert before[:7] == after[:7]
    assert before[-1] == after[-1]
    old, new = planned_runs(before), planned_runs(after)
    assert new[: len(old)] == old
    assert {run.method for run in old[-32:-17]} == set(ADDED)
    assert [run.seed for run in old[-32:-17]] == [10] * 15
    assert {run.setting.split("_")[0] for run in old[-17:]} == {"LavaCrossingS9N2"}
    added = new[len(old) :]
    assert len(added) == 4 * 5 * 3 + 2 * 5 * 2
    assert {run.method for run in added} == set(ADDED)
    assert [run.seed for run in added] == sorted(run.seed for run in added)
    assert {run.setting.split("_")[0] for run in added if run.seed > 2} == {"FourRooms", "DoorKey-13x13"}
    assert all("_a0.08_g0.995" in run.setting for run in added)


def test_one_seed_of_everything_comes_before_the_next() -> None:
    parts = parts_of(finished_runs([*tuned(0.005), *screening(), *study({})]))
    runs = planned_runs(parts)
    assert len(runs) == len(set(runs))
    assert [run.seed for run in runs[:31]] == [10] * 31
    seeds = [run.seed for run in runs[31:] if run.method not in ADDED and "Lava" not in run.setting]
    assert seeds == sorted(seeds)
    first = [run for run in runs if run.seed == 1]
    assert [run.setting for run in first[:11]] == [
        "DoorKey-11x11_a0.02_g0.995",  # no bonus has no α
        *["DoorKey-11x11_a0.005_g0.995"] * 10,
    ]
    assert any(run.setting == "DoorKey-11x11_a0.005_g0.995_t4840" for run in first)
    assert any(run.setting == "MultiRoom-N4-S5-NoisyTV_a0.005_g0.995_rnd" for run in first)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of what `payback-lab run` would start, in order; nothing is trained."""
    names: list[str] = []

    def events(tasks, workers):
        names.extend(task.name for task in tasks)
        return iter([Event(task, "done") for task in tasks])

    monkeypatch.setattr(local, "events", events)
    return names


def test_the_command_says_what_comes_later(tmp_path: Path, capsys, started: list[str]) -> None:
    ask = ["run", "arena", "--out", str(tmp_path / "runs"), "--summaries", str(tmp_path)]
    assert cli.main(ask) == 0
    out = capsys.readouterr().out
    assert "arena: 81 runs planned" in out
    assert (
        "Planned now, in runs: tuning (31), screening (18), added: α (15), lava (18); the same command goes on "
        "with study" in out
    )
    assert "seed10" in started[0]
    assert "seed10" in started[45]  # all tuning runs share a seed, and seeds are run in turn
    assert "seed0" in started[46]
    started.clear()
    write_summary(tmp_path, [*tuned(), *screening()])
    assert cli.main(ask) == 0
    out = capsys.readouterr().out
    assert "49 more in" in out
    assert "goes on with more seeds (44), added (60), added: more (20) once" in out
    assert "seed0" in started[15]
    assert {name.split("/")[-2] for name in started if "seed10" in name} == set(ADDED)


def test_what_is_named_is_run_as_named(tmp_path: Path, capsys, started: list[str]) -> None:
    ask = ["run", "arena", "--schemes", "eipo", "--out", str(tmp_path / "runs"), "--summaries", str(tmp_path)]
    assert cli.main(ask) == 0
    assert "goes on with" not in capsys.readouterr().out
    assert len(started) == 3
    assert all("DoorKey-11x11_a0.02_g0.995/eipo" in name for name in started)


def test_the_list_says_that_more_is_planned(tmp_path: Path, capsys) -> None:
    assert cli.main(["list", "--summaries", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("arena")]
    assert "81" in line
    assert "then more" in line
