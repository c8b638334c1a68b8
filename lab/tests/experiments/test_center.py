"""`center` and `center-cliff`: what is planned, which mean a run subtracts, and how the two are compared."""

import numpy as np
import pytest

import payback
from payback_lab.experiments import center as doorkey_claims
from payback_lab.experiments.center import CELLS, HORIZON, CenterConfig, setting
from payback_lab.experiments.center_cliff import CLAIMS as CLIFF
from payback_lab.experiments.doorkey import training
from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.running.request import Request
from payback_lab.running.run import planned
from payback_lab.runs import Result


def plan(name: str, **asked) -> list:
    return planned(Request(name, **asked))[1]


def test_both_means_are_planned_for_the_same_cells():
    cumulative, recent = plan("center"), plan("center", ablation="recent-mean")
    assert len(cumulative) == len(recent) == 3 * len(CELLS) == 12
    assert {(r.setting, r.scheme, r.seed) for r in cumulative} == {(r.setting, r.scheme, r.seed) for r in recent}
    assert {r.config.mean_horizon for r in cumulative} == {None}
    assert {r.config.mean_horizon for r in recent} == {HORIZON}
    assert recent[0].id == f"center+recent-mean/{setting(8)}/grm-10/seed0"
    assert [r.scheme for r in plan("center-cliff", seeds=1)] == ["none", "pbim", "grm-10", "grm-30"]
    assert [r.scheme for r in plan("center-cliff", seeds=1, ablation="cumulative-mean")] == ["pbim", "grm-10", "grm-30"]


class Built(Exception):  # noqa: N818 - ends a training that need not be made
    """Carries the transform that a run would be trained with."""


def shaped(transform, rewards: np.ndarray, done: np.ndarray) -> np.ndarray:
    return payback.shape_rollout(transform, transform.init(rewards[0]), rewards, done)[1]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (DoorKeyConfig(), payback.center()),
        (CenterConfig(), payback.center()),
        (CenterConfig(mean_horizon=HORIZON), payback.center(HORIZON)),
    ],
)
def test_a_run_subtracts_the_mean_of_its_config(monkeypatch, config: DoorKeyConfig, expected):
    def stop(config, environment, transform, **more):
        raise Built(transform)

    monkeypatch.setattr(training, "make_train", stop)
    (run, *_) = plan("center", seeds=1)
    with pytest.raises(Built) as stopped:
        training.train(type(run)("center", None, run.setting, "grm-3", 0, config), 1, lambda share: None, None)
    rewards, done = np.random.default_rng(0).random((4000, 16)), np.zeros((4000, 16), bool)
    built = shaped(stopped.value.args[0], rewards, done)
    wanted = payback.chain(expected, payback.match_after(config.shaping_gamma, 3))
    assert np.array_equal(built, shaped(wanted, rewards, done))


def told(steps: dict[str, float | None]) -> list[str]:
    """Decide DoorKey's four sentences where each mean settles after so many million steps in every cell."""
    results = {
        f"{group}/{cell.setting}/{cell.scheme}/seed{seed}": Result(
            {},
            summary={
                "trained_steps": 3_000_320,
                "settled_step": None if at is None else int(at * 1e6) + 1000 * seed,
            },
        )
        for group, at in steps.items()
        for cell in CELLS
        for seed in range(3)
    }
    return [claim.verdict for claim in doorkey_claims.CLAIMS.decide(results)]


@pytest.mark.parametrize(
    ("recent", "cumulative", "verdict"),
    [
        (0.5, 0.8, "holds"),
        (0.8, 0.5, "does not hold"),
        (0.5, 0.5005, "undecided"),
        (None, 0.5, "does not hold"),
        (None, None, "undecided"),
    ],
)
def test_the_two_means_are_compared_cell_by_cell(recent, cumulative, verdict):
    assert told({"center": cumulative, "center+recent-mean": recent}) == [verdict] * 4


def test_what_was_not_run_is_not_decided():
    assert told({"center": 0.5}) == []
    assert told({"center+recent-mean": 0.5}) == ["undecided"] * 4


def test_the_cliff_s_convergence_is_compared_with_no_im_at_hand():
    def runs(group: str, scheme: str, at: int) -> dict[str, Result]:
        total = np.where(np.arange(5000) < at, 0.0, 88.0)
        return {f"{group}/{scheme}/seed{k}": Result({"return": np.roll(total, k), "length": total}) for k in range(3)}

    results = runs("center-cliff", "none", 500)
    for scheme, recent in (("pbim", 800), ("grm-10", 3000), ("grm-30", 2000)):
        results |= runs("center-cliff", scheme, recent) | runs("center-cliff+cumulative-mean", scheme, 2000)
    claims = CLIFF.decide(results)
    assert [claim.verdict for claim in claims] == ["holds", "does not hold", "undecided"]
    assert all(claim.ablation == "cumulative-mean" and not claim.plain for claim in claims)
