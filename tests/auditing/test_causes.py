"""The cause of a leak is named: a quick form of benchmarks/audit_causes.py, which prints the whole confusion matrix."""

import sys
from pathlib import Path

import numpy as np
import pytest

from payback import audit
from payback.auditing.hypotheses import Cause

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from audit_causes import PLANTED, confusion, planted_log, share_right


@pytest.mark.parametrize(("noise", "goal"), [(0.0, 0.85), pytest.param(0.001, 0.75, marks=pytest.mark.slow)])
def test_most_planted_causes_are_named(noise, goal) -> None:
    assert share_right(confusion(3, noise, first_seed=1000)) >= goal


RARE = (Cause.UNSETTLED_TRUNCATION, Cause.ONE_STEP_EPISODE, Cause.INVALID_ROW_PAID)


@pytest.mark.parametrize("planted", [p for p in PLANTED if p.cause in RARE], ids=lambda planted: planted.cause.value)
def test_what_leaks_in_few_episodes_is_named_beside_noise(planted) -> None:
    named = confusion(7, 0.001, first_seed=2000, planted=[planted])[planted.cause]
    assert named[planted.cause] >= 4


def test_loans_of_the_episode_before_do_not_pass_for_a_mean() -> None:
    """If the state is never reset, first rows are paid less than F − F̄: F̄ is what fits all rows."""
    planted = next(p for p in PLANTED if p.cause is Cause.NEVER_RESET)
    named = confusion(5, 0.0, first_seed=47, planted=[planted])[planted.cause]
    assert named[planted.cause] >= 4


def test_one_step_episodes_do_not_crowd_the_rest_out() -> None:
    """Half of the episodes have one step, where every cause looks alike."""
    planted = next(p for p in PLANTED if p.cause is Cause.WRONG_GAMMA)
    columns, gamma = planted_log(planted, 2, 0.0)
    shaped, dones = (columns[k].T.reshape(-1) for k in ("shaped", "dones"))
    ids = np.repeat(np.arange(columns["shaped"].shape[1]), len(columns["shaped"]))
    extra = int(2 * dones.sum())
    shaped, dones = np.append(shaped, np.ones(extra)), np.append(dones, np.ones(extra, bool))
    found = audit(shaped, dones, gamma, environments=np.append(ids, np.zeros(extra, int)))
    assert found.causes.most_common(1)[0][0] is Cause.WRONG_GAMMA


def test_two_environments_can_have_two_causes() -> None:
    columns = {}
    for b, cause in enumerate((Cause.WRONG_GAMMA, Cause.CONSTANT_ADDED)):
        planted = next(p for p in PLANTED if p.cause is cause)
        seed = next(s for s in range(99) if planted_log(planted, s, 0.0)[1] == 0.99)
        log, _ = planted_log(planted, seed, 0.0)
        columns[b] = (log["shaped"][:, 0], log["dones"][:, 0])
    shaped, dones = (np.stack([columns[b][k] for b in (0, 1)], axis=1) for k in (0, 1))
    found = audit(shaped, dones, 0.99)
    assert found.causes.keys() == {Cause.WRONG_GAMMA, Cause.CONSTANT_ADDED}


def test_what_fits_nothing_is_called_unknown() -> None:
    rng = np.random.default_rng(0)
    paid = [rng.normal(size=20) * 10.0 ** rng.integers(-2, 3, 20) for _ in range(20)]
    dones = np.tile(np.arange(20) == 19, 20)
    found = audit(np.concatenate(paid), dones, 0.9, rewards=rng.random(400))
    assert found.causes.keys() <= {Cause.UNKNOWN, Cause.CHANGED_AFTER_MATCHING}
    assert found.causes.total() == 20


def test_every_cause_has_an_explanation() -> None:
    assert all(cause.explanation for cause in Cause)
