"""Plan, batches and execution of the cliff experiments."""

from dataclasses import replace

import numpy as np
import pytest

from payback_lab.environments.cliff import DOWN, RIGHT, UP
from payback_lab.experiments import long_cliff
from payback_lab.experiments.cliff import experiment as cliff
from payback_lab.experiments.cliff.claims import ABLATIONS
from payback_lab.experiments.cliff.experiment import result
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.learners.q_learning.train import Tally
from payback_lab.methods import SCHEMES
from payback_lab.runs import Asked, Result, Run

BOTH = [cliff.EXPERIMENT, long_cliff.EXPERIMENT]


@pytest.mark.parametrize("experiment", BOTH)
def test_plan_is_the_papers(experiment):
    runs = experiment.plan(Asked(SCHEMES, 10))
    assert len({run.id for run in runs}) == 80
    (config,) = {run.config for run in runs}
    long = experiment is long_cliff.EXPERIMENT
    assert (config.columns, config.limit, config.episodes) == ((50, 100, 10_000) if long else (12, 50, 5_000))
    assert (config.gamma, config.epsilon_first, config.epsilon_last) == (0.99, 1.0, 0.1)
    assert config.epsilon_fall == (5e-4 if long else 5e-3)
    assert (config.rnd_rate, config.rnd_scale) == (1e-6, 1000)
    assert runs[13].id == f"{experiment.name}/im/seed3"


def test_ablations_and_steps_change_just_that():
    whole = cliff.EXPERIMENT.plan(Asked(("im",), 1))[0].config
    for name, fields in ABLATIONS.items():
        (run,) = cliff.EXPERIMENT.plan(Asked(("im",), 1, (), 7, name))
        assert run.config == replace(whole, episodes=7, **fields)
        assert run.id == f"cliff+{name}/im/seed0"
        assert run.config != replace(whole, episodes=7)


def test_batches_hold_every_run_once_and_one_scheme_each():
    runs = cliff.EXPERIMENT.plan(Asked(("none", "grm-10"), 23))
    batches = cliff.EXPERIMENT.batches(runs[::-1])
    assert sorted(run.id for batch in batches for run in batch) == sorted(run.id for run in runs)
    assert [len(batch) for batch in batches] == [10, 10, 3] * 2
    assert all(len({run.scheme for run in batch}) == 1 for batch in batches)


def test_a_batch_mixes_no_configs():
    runs = [
        run
        for steps, ablation in ((3, None), (4, None), (3, "wide-rnd"))
        for run in cliff.EXPERIMENT.plan(Asked(("im",), 2, (), steps, ablation))
    ]
    assert [len(batch) for batch in cliff.EXPERIMENT.batches(runs)] == [2, 2, 2]


@pytest.fixture(scope="module")
def executed() -> tuple[tuple[Run, ...], dict[str, Result], list[float]]:
    (batch,) = cliff.EXPERIMENT.batches(cliff.EXPERIMENT.plan(Asked(("grm-10",), 3, (), 40)))
    shares: list[float] = []
    return batch, cliff.EXPERIMENT.execute(batch, shares.append), shares


@pytest.mark.slow
def test_execute_gives_what_the_report_reads(executed):
    batch, results, shares = executed
    assert list(results) == [run.id for run in batch]
    assert (shares[0], shares[-1]) == (0, 1)
    for one in results.values():
        assert {name: len(column) for name, column in one.columns.items()} == {
            "return": 40,
            "length": 40,
            "intrinsic": 40,
        }
        assert one.arrays["q"].shape == (4, 12, 4)
        assert one.summary["steps"] == one.columns["length"].sum()
        assert one.summary["final_return"] == pytest.approx(one.columns["return"][-4:].mean())
        assert 0 < one.summary["law_residual"] < 1e-5
        assert one.summary["optimal"] == (one.summary["greedy_return"] == 88)
        assert one.summary["greedy_length"] <= 50


@pytest.mark.parametrize(
    ("arrows", "expected"),
    [
        ({36: UP, **dict.fromkeys(range(24, 35), RIGHT), 35: DOWN}, (88, 13, True)),
        ({36: UP, 24: UP, **dict.fromkeys(range(12, 23), RIGHT), 23: DOWN, 35: DOWN}, (86, 15, False)),
        # 13 moves as well, the last of them into the cliff
        ({36: UP, 24: UP, **dict.fromkeys(range(12, 21), RIGHT), 21: DOWN, 33: DOWN}, (-112, 13, False)),
    ],
)
def test_optimal_is_the_shortest_path_to_the_goal(arrows, expected):
    q = np.zeros((48, 4), np.float32)
    q[list(arrows), list(arrows.values())] = 1
    nothing = Tally(*np.zeros((5, 5000), np.float32))
    summary = result(QLearning(), nothing, q).summary
    assert tuple(summary[name] for name in ("greedy_return", "greedy_length", "optimal")) == expected
    assert summary["law_residual"] == 0


@pytest.mark.slow
def test_execute_again_in_another_batch_gives_the_same_bits(executed):
    batch, results, _ = executed
    (again,) = cliff.EXPERIMENT.execute(batch[2:], lambda _: None).values()
    for name, column in results[batch[2].id].columns.items():
        np.testing.assert_array_equal(again.columns[name], column)
    np.testing.assert_array_equal(again.arrays["q"], results[batch[2].id].arrays["q"])
    assert again.summary == results[batch[2].id].summary


def test_cost_ranks_batches():
    def cost(experiment, scheme, ablation=None):
        return experiment.cost(experiment.batches(experiment.plan(Asked((scheme,), 10, (), None, ablation)))[0])

    assert cost(BOTH[0], "none") < cost(BOTH[0], "im") < cost(BOTH[0], "im", "wide-rnd") < cost(BOTH[1], "im")


@pytest.mark.parametrize("experiment", BOTH)
def test_notes_say_how_the_settings_were_chosen(experiment):
    notes = " ".join(experiment.notes)
    assert "about 30 configurations with 3 to 10 seeds" in notes
    if experiment.name == "long-cliff":
        assert "51 moves" in notes
        assert "52 steps and 49" in notes
