"""The curiosity experiment: what is planned, how a run is made, and what is read out of a curve."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from payback_lab import experiments
from payback_lab.experiments.curiosity.comparison import single_figures
from payback_lab.experiments.curiosity.experiment import BONUSES
from payback_lab.runs import Asked, Run
from payback_lab.user_error import UserError

EXPERIMENT = experiments.load("curiosity")


def planned(schemes=(), seeds=None, settings=(), steps=None, first_seed=0) -> list[Run]:
    return EXPERIMENT.plan(Asked(schemes, seeds, settings, steps, None, first_seed))


def test_eight_seeds_of_rnd_and_three_of_the_others_one_seed_after_the_other() -> None:
    runs = planned()
    cells = {(run.setting, run.scheme) for run in runs}
    assert len(runs) == len({run.id for run in runs}) == 5 * 8 + 9 * 2 * 3
    assert {scheme for bonus, scheme in cells if bonus == "rnd"} == {"none", "im", "pbim", "grm-10", "grm-30"}
    assert all({s for b, s in cells if b == bonus} == {"im", "grm-30"} for bonus in BONUSES[1:])
    seeds = [run.seed for run in runs]
    assert seeds == sorted(seeds)
    assert len([seed for seed in seeds if seed == 0]) == len(cells)


def test_named_cells_alone() -> None:
    runs = planned(schemes=("grm-30", "none"), seeds=2, settings=("e3b", "rnd"), steps=2048, first_seed=4)
    assert [run.id for run in runs[:3]] == [
        "curiosity/e3b/grm-30/seed4",
        "curiosity/rnd/grm-30/seed4",
        "curiosity/rnd/none/seed4",
    ]
    assert {run.config.total_steps for run in runs} == {2048}
    assert runs[0].config.bonus == "e3b"


def test_what_cannot_be_planned() -> None:
    with pytest.raises(UserError, match='There is no setting "rdn": it names a bonus, one of rnd, episodic-count'):
        planned(settings=("rdn",))
    with pytest.raises(UserError, match="--steps 3,000 is not a whole number of rollouts of 1,024 steps: give 2,048"):
        planned(steps=3000)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid", None)
    monkeypatch.delitem(sys.modules, "payback_lab.experiments.curiosity.training", raising=False)
    with pytest.raises(UserError, match=r"curiosity needs minigrid.*: pip install 'payback-lab\[sb3\]'"):
        EXPERIMENT.execute((planned()[0],), lambda share: None, None)


def curve(*solved: float) -> dict[str, np.ndarray]:
    return {"steps": 10 * np.arange(1, len(solved) + 1), "solved": np.array(solved)}


def test_a_seed_solves_the_task_from_the_step_on_from_which_it_goes_on_doing_so() -> None:
    found = single_figures(curve(np.nan, 0.95, 0.89, 0.9, 1.0))
    assert (found["solved_step"], found["first_solved_step"], found["trained_steps"]) == (40, 20, 50)
    never = single_figures(curve(np.nan, 0.95, 1.0, 0.5))
    assert (never["solved_step"], never["first_solved_step"]) == (None, 20)
    nothing = single_figures(curve(np.nan, np.nan))
    assert (nothing["solved_step"], nothing["final_training_solved"]) == (None, None)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch):
    """The module that trains, with an evaluation of sixteen episodes."""
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minigrid")
    from payback_lab.experiments.curiosity import training

    monkeypatch.setattr(training, "EVALUATION", 16)
    return training


@pytest.mark.slow
def test_a_short_run_repeats_itself_and_depends_on_its_scheme(training) -> None:
    shares: list[float] = []
    runs = planned(schemes=("grm-30", "im", "none"), settings=("rnd",), seeds=1, steps=2048)
    # On the smallest grid untrained agents reach the goal now and then, so that lengths tell agents apart.
    runs = [replace(run, config=replace(run.config, size=5)) for run in runs]
    results = [EXPERIMENT.execute((run,), shares.append, None)[run.id] for run in (runs[0], *runs)]
    one, again, raw, none = results
    assert shares[:3] == [0.0, 0.5, 1.0]
    assert one.summary == again.summary
    assert one.columns["steps"].tolist() == [1024, 2048]
    assert {"solved_step", "sampled_length", "sampled_solved", "trained_steps"} <= one.summary.keys()
    assert 1 <= one.summary["sampled_length"] <= 250
    lengths = {result.summary["sampled_length"] for result in (one, raw, none)}
    assert len(lengths) == 3, "another reward makes another agent"


@pytest.mark.parametrize("name", BONUSES)
def test_every_bonus_is_there(training, name: str) -> None:
    env = training.grid(5)
    obs = np.stack([env.reset(seed=seed)[0] for seed in range(2)])
    bonus = training.bonus_of(name, env.action_space, 0)
    F = [bonus(obs, np.array([0, 2]), obs[::-1].copy(), [{}, {}]) for _ in range(2)]
    assert F[1].shape == (2,)
    assert np.isfinite(F).all()


def test_no_bonus_is_paid_like_any_other(training) -> None:
    run = planned(schemes=("none",), settings=("rnd",))[0]
    bonus, transform = training.paid(run, None)
    assert bonus(None, None, np.ones((3, 4)), {}).tolist() == [0, 0, 0]
    assert transform.update(transform.init(np.zeros(3)), np.zeros(3), np.ones(3, bool))[1].tolist() == [0, 0, 0]
