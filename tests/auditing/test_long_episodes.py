"""γ^N hides what is never repaid in a long episode: seen from its end it is found, or said to be out of sight."""

import numpy as np
import pytest

import payback
from payback import audit
from payback.auditing.audit import AuditOptions, audit_log
from payback.auditing.hypotheses import Cause
from payback.auditing.rows import Log

MATCHINGS = {
    "after 1": lambda gamma: payback.match_after(gamma, 1),
    "after 10": lambda gamma: payback.match_after(gamma, 10),
    "after 100": lambda gamma: payback.match_after(gamma, 100),
    "evenly": lambda gamma: payback.match_evenly(gamma, 10),
    "geometric": lambda gamma: payback.match_geometric(gamma, 0.85),
    "centred": lambda gamma: payback.grm(gamma, 10),
}


def long_log(matching, gamma, steps, dtype=np.float64, episodes=6):
    rng = np.random.default_rng(0)
    F = np.abs(rng.normal(1, 0.5, (steps * episodes, 1))).astype(dtype)
    dones = np.zeros(F.shape, dtype=bool)
    dones[steps - 1 :: steps] = True
    match = MATCHINGS[matching](gamma)
    return F, payback.shape_rollout(match, match.init(F[0]), F, dones)[1], dones


@pytest.mark.parametrize("matching", ["after 1", "after 10", "after 100", "evenly", "geometric"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unsettled_episodes_of_1000_steps_are_broken(matching, dtype) -> None:
    F, shaped, dones = long_log(matching, 0.99, 1000, dtype)
    unsettled = np.where(dones, F, shaped)
    for rewards in (None, F):
        assert audit(unsettled, dones, 0.99, rewards=rewards).broken == 6
    assert audit(shaped, dones, 0.99, rewards=F).ok
    assert audit(shaped, dones, 0.99).broken == 0
    assert audit(unsettled, dones, 0.99, rewards=F).causes.keys() == {Cause.UNPAID_END}


@pytest.mark.parametrize("matching", ["after 10", "evenly", "geometric"])
def test_no_length_hides_an_end_where_f_is_given(matching) -> None:
    F, shaped, dones = long_log(matching, 0.95, 6000, np.float32, episodes=3)
    assert audit(shaped, dones, 0.95, rewards=F).ok
    assert audit(np.where(dones, F, shaped), dones, 0.95, rewards=F).broken == 3


def test_without_f_a_hidden_end_cannot_be_judged() -> None:
    F, shaped, dones = long_log("after 10", 0.9, 2000, np.float32)
    for paid in (shaped, np.where(dones, F, shaped)):
        found = audit(paid, dones, 0.9)
        assert (found.ok, found.broken, found.unjudged) == (False, 0, 6)


def test_a_centred_bonus_is_judged_by_what_was_lent() -> None:
    F, shaped, dones = long_log("centred", 0.95, 3000)
    center = payback.center()
    lent = payback.shape_rollout(center, center.init(F[0]), F, dones)[1]
    assert audit(shaped, dones, 0.95, rewards=F, lent=lent).ok
    assert audit(np.where(dones, lent, shaped), dones, 0.95, rewards=F, lent=lent).broken == 6
    assert audit(shaped, dones, 0.95, rewards=F).broken == 0


def test_a_matching_that_cannot_be_found_is_not_judged() -> None:
    """Repaid on events: no age tells when, so that the debt before the last steps is unknown."""
    rng = np.random.default_rng(0)
    F, events = rng.random((8000, 1)), rng.random((8000, 1)) < 0.05
    dones = np.zeros(F.shape, dtype=bool)
    dones[3999::4000] = True
    match = payback.match_when(0.9)
    shaped = payback.shape_rollout(match, match.init(F[0]), F, dones, settle=events)[1]
    found = audit(shaped, dones, 0.9, rewards=F)
    assert (found.broken, found.unjudged) == (0, 2)


def test_long_episodes_of_zeros_are_judged() -> None:
    dones = np.zeros(5000, dtype=bool)
    dones[-1] = True
    assert audit(np.zeros(5000), dones, 0.9).ok


@pytest.mark.parametrize("batch", [100, 999, 1000, 1700])
def test_batches_do_not_change_what_is_seen_from_the_end(batch) -> None:
    F, shaped, dones = (x.reshape(-1) for x in long_log("after 10", 0.95, 3000, np.float32))
    table = {"shaped": np.where(dones & (np.arange(len(F)) > 9000), F, shaped), "done": dones, "reward": F}
    cuts = range(0, len(F), batch)
    log = Log("log", lambda: ((a, {k: x[a : a + batch] for k, x in table.items()}) for a in cuts))
    found = audit_log(log, AuditOptions(0.95))
    assert found.episodes.verdict.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("batch", [1, 43])
def test_a_short_rounded_episode_is_judged_alike_however_the_log_is_cut(batch) -> None:
    F, shaped, dones = (x.reshape(-1) for x in long_log("after 1", 0.9, 43, episodes=2))
    columns = {"shaped": shaped.round(3), "done": dones}
    log = Log("log", lambda: ((a, {k: x[a : a + batch] for k, x in columns.items()}) for a in range(0, len(F), batch)))
    assert audit_log(log, AuditOptions(0.9)).unjudged == 0
