"""What a method reaches, on made-up results whose verdicts are known."""

import numpy as np
import pytest

from payback_lab.environments.doorkey.optimum import optimal_length
from payback_lab.environments.doorkey.rules import make_doorkey
from payback_lab.experiments.reach import CELLS, CLAIMS, METHODS, OPTIMUM, row, rows, setting, steps
from payback_lab.runs import Result

PREDICTED = {("none", 8), ("none", 10), ("im", 8), ("grm-30", 8), *(("grm-30", size) for size in (10, 11, 12, 13, 14))}


def run(size: int, solved: float, length: float, settled: int | None = 800_000, total: int | None = None) -> Result:
    trained = steps(size) if total is None else total
    return Result(
        {},
        summary={
            "trained_steps": trained,
            "sampled_solved": solved,
            "sampled_length": length,
            "settled_step": settled,
        },
    )


def told(solving=frozenset(PREDICTED), seeds: int = 3, **changes) -> dict[str, str]:
    """Decide the sentences where these methods solve these sizes, and the others do not."""
    results = {}
    for size in OPTIMUM:
        for scheme in METHODS:
            good = (scheme, size) in solving
            figures = (1.0, 3 * OPTIMUM[size]) if good else (0.1, 9.0 * size**2)
            for seed in range(seeds):
                results[f"reach/{setting(size)}/{scheme}/seed{seed}"] = run(size, *figures, **changes)
    return {claim.statement: claim.verdict for claim in CLAIMS.decide(results)}


def test_the_prediction_is_told_back():
    found = told()
    assert len(found) == 14
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({("none", 11)}, "Training without a bonus does not reach DoorKey 11×11."),
        ({("im", 13)}, "The raw bonus does not reach DoorKey 13×13."),
        ({("grm-30", 13)}, "GRM D = 30 reaches DoorKey 13×13."),
        ({("grm-30", 16)}, "GRM D = 30 does not reach DoorKey 16×16."),
    ],
)
def test_another_outcome_is_judged_otherwise(changed, sentence):
    found = told(frozenset(PREDICTED ^ changed))
    assert [name for name, verdict in found.items() if verdict != "holds"] == [sentence]
    assert found[sentence] == "does not hold"


def test_two_seeds_decide_nothing_and_neither_do_runs_that_were_cut_short():
    assert set(told(seeds=2).values()) == {"undecided"}
    assert set(told(total=4096).values()) == {"undecided"}
    # 6 million steps are all of a run but at 16, where 20 million are.
    cut = {name for name, verdict in told(total=6_000_640).items() if verdict == "undecided"}
    assert cut == {name for name in told() if "16×16" in name}


def test_a_method_must_both_solve_and_be_short():
    figures = {"sampled_solved": 1.0, "sampled_length": 60.0, "settled_step": 700_000}
    runs = [{"scheme": "im", "seed": k, "trained_steps": 6_000_640, **figures} for k in range(3)]
    assert row(11, "im", runs).reaches is True
    assert row(11, "im", [{**r, "sampled_length": 200.0} for r in runs]).reaches is False
    assert row(11, "im", [{**r, "sampled_solved": 0.94} for r in runs]).reaches is False
    # The median decides: one seed of three may fail.
    assert row(11, "im", [*runs[:2], {**runs[2], "sampled_solved": 0.0, "sampled_length": 1210.0}]).reaches is True
    assert row(11, "im", runs[:2]).reaches is None
    assert row(11, "im", [*runs[:2], {**runs[2], "trained_steps": 2048}]).reaches is None


def test_a_row_sets_the_length_beside_the_optimum_and_says_who_never_settled():
    runs = [
        {
            "scheme": "none",
            "sampled_solved": 0.5 * k,
            "sampled_length": 23.221 * (1 + k),
            "settled_step": at,
            "trained_steps": 6_000_640,
        }
        for k, at in enumerate((None, 500_000, 700_000))
    ]
    (found,) = rows([(setting(11), runs), ("s11-a0.02-g0.995-l0.8", runs)])
    assert found.over_optimum is not None
    assert found.over_optimum.value == pytest.approx(2)
    assert (found.settled.median, found.settled.reached, found.settled.of) == (600_000, 2, 3)
    assert found.solved is not None
    assert found.solved.low < found.solved.value == 0.5 < found.solved.high


def test_every_planned_size_has_an_optimum():
    assert {cell.setting for cell in CELLS} == {setting(size) for size in OPTIMUM}


@pytest.mark.parametrize("size", [8, pytest.param(10, marks=pytest.mark.slow)])
def test_the_optimum_is_that_of_the_search(size: int):
    """The larger ones take up to minutes each: `payback_lab.environments.doorkey.optimum` makes them."""
    assert optimal_length(make_doorkey(size)) == pytest.approx(OPTIMUM[size], abs=1e-3)


def test_the_optima_grow_by_about_two_steps_a_row():
    sizes = sorted(OPTIMUM)
    growth = np.diff([OPTIMUM[size] for size in sizes]) / np.diff(sizes)
    assert np.all((growth > 2.0) & (growth < 2.2))
    assert np.all(np.diff(growth) < 0)
