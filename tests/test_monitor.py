"""The monitor: it warns once of what breaks the guarantee, counts it, logs what was paid, and is silent otherwise."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import payback
from payback import ShapingWarning
from payback.ledger import make
from payback.monitor import Monitor, changed

from .integrations.own_match import forgets_the_end

GAMMA, B = 0.9, 3
NO, YES = np.zeros(B, bool), np.ones(B, bool)
MATCH = payback.match_after(GAMMA, 3)


def monitored(match=MATCH, on_truncation="settle", **options):
    monitor = Monitor(make(match, on_truncation), **{"learner_gamma": GAMMA, **options})
    return monitor, monitor.ledger.init(np.zeros(B))


def play(monitor, state, steps=20, length=5, F=None):
    for t in range(steps):
        bonus = np.ones(B) if F is None else F[t]
        state, step = monitor.step(state, bonus, np.full(B, t % length == length - 1), NO)
    return state, step


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(warning.message) for warning in found if warning.category is ShapingWarning]


def test_a_right_match_is_counted_and_silent():
    monitor, state = monitored()
    assert caught(lambda: play(monitor, state)) == []
    assert (monitor.steps, monitor.finished, monitor.broken, monitor.drops) == (20, 4 * B, 0, 0)
    assert 0 <= monitor.take_residual() < 1e-12
    assert monitor.take_residual() == 0


def test_a_wrong_match_is_reported_once_with_numbers():
    monitor, state = monitored(forgets_the_end(MATCH))
    found = caught(lambda: play(monitor, state))
    assert len(found) == 1
    assert f"{B} of {B} finished episodes" in found[0]
    assert "check_transform" in found[0]
    assert (monitor.finished, monitor.broken) == (4 * B, 4 * B)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_a_debt_that_is_left_late_in_a_long_episode_is_not_hidden_by_the_discount(gamma):
    """γ^t of the last step is 0 in float64: the end is judged from the debt before it."""
    match, chance = payback.match_after(gamma, 3), np.random.default_rng(0)
    for right in (True, False):
        monitor, state = monitored(match if right else forgets_the_end(match), learner_gamma=gamma)
        caught(lambda m=monitor, s=state: play(m, s, 3000, 3000, chance.random((3000, B))))
        assert (monitor.finished, monitor.broken) == (B, 0 if right else B)


@pytest.mark.parametrize("match", [MATCH, payback.match_geometric(GAMMA, 0.7), payback.grm(GAMMA, 30)], ids=repr)
def test_rewards_of_very_different_size_are_not_accused(match):
    chance = np.random.default_rng(0)
    F = chance.normal(size=(1000, B)) * 10.0 ** chance.uniform(-9, 6, (1000, B))
    monitor, state = monitored(match)
    play(monitor, state, 1000, 500, F)
    assert (monitor.finished, monitor.broken) == (2 * B, 0)


def test_what_is_not_a_number_is_broken():
    monitor, _ = monitored()
    found = caught(lambda: monitor.judge(np.array([[0.0, np.nan], [np.inf, 1e-9]])))
    assert (monitor.finished, monitor.broken) == (4, 2)
    assert len(found) == 1


def test_the_learners_gamma_is_compared():
    with pytest.raises(ValueError, match=r"gamma 0\.95"):
        monitored(learner_gamma=0.95)
    monitor, state = monitored(learner_gamma=None)
    found = caught(lambda: play(monitor, state))
    assert len(found) == 1
    assert "learner_gamma=" in found[0]


def test_a_settled_time_limit_is_reported_once_a_carried_one_is_not():
    for mode, count in ((None, 1), ("settle", 0), ("carry", 0)):
        monitor, state = monitored(on_truncation=mode)

        def end(monitor=monitor, state=state):
            for _ in range(2):
                state, _ = monitor.step(state, np.ones(B), NO, YES)

        assert len(caught(end)) == count
        assert monitor.finished == (0 if mode == "carry" else 2 * B)


def test_the_first_dropped_debt_is_reported_and_all_are_counted():
    monitor, state = monitored()

    def drop():
        after = state
        for _ in range(2):
            after, _ = monitor.step(after, np.ones(B), None, None)
            after = monitor.reset(after, np.array([True, False, True]))
        monitor.reset(monitor.reset(after))

    found = caught(drop)
    assert len(found) == 1
    assert "environment 0 was reset in mid-episode, after step 1" in found[0]
    assert monitor.drops == 5
    np.testing.assert_allclose(monitor.dropped, [2 / GAMMA, 1 / GAMMA + 1 / GAMMA**2, 2 / GAMMA])


def test_what_the_hosts_dtype_cannot_hold_is_refused():
    monitor, state = monitored(payback.match_after(GAMMA, 1), pays=np.float32)
    before, _ = monitor.step(state, np.full(B, 3e38), None, None)
    with pytest.raises(OverflowError, match=r"environment 0 .* step 2 .*float32"):
        monitor.step(before, np.full(B, -3e38), None, None)


def test_a_transform_that_never_repays_is_reported():
    assert len(caught(lambda: monitored(payback.scale(0.5)))) == 1
    with pytest.warns(match="no match"), pytest.raises(ValueError, match="record="):
        monitored(payback.scale(0.5), record="log")


def test_the_bonus_hears_of_ends_and_resets():
    class Bonus:
        heard: list = []  # noqa: RUF012

        def reset(self, where):
            self.heard.append(where.tolist())

    monitor, state = monitored(bonus=Bonus())
    state, _ = monitor.step(state, np.ones(B), np.array([True, False, False]), NO)
    state, _ = monitor.step(state, np.ones(B), None, None)
    caught(lambda: monitor.reset(state, np.array([False, True, False])))
    assert Bonus.heard == [[True, False, False], [False, True, False]]


def test_a_state_is_loaded(tmp_path):
    monitor, state = monitored(payback.grm(GAMMA, 3))
    state, _ = monitor.step(state, np.ones(B), None, None)
    payback.save_state(tmp_path / "state.npz", state.loans)
    other, fresh = monitored(payback.grm(GAMMA, 3))
    loaded = other.load(tmp_path / "state.npz", fresh)
    np.testing.assert_array_equal(loaded.owed, state.owed)
    found = caught(lambda: play(other, loaded))
    assert len(found) == 1
    assert "call load() first" in found[0]
    assert other.broken == 0, "judged from the debts that were loaded"
    few = Monitor(make(payback.grm(GAMMA, 3)), learner_gamma=GAMMA)
    alone = few.load(tmp_path / "state.npz", few.ledger.init(np.zeros(1)))
    assert alone.loans[0].mean == state.loans[0].mean, "another number of environments keeps F̄"
    assert alone.owed.tolist() == [0]


@pytest.mark.parametrize("num_envs", [3, 2], ids=["as many environments", "fewer environments"])
def test_a_state_of_another_horizon_is_not_loaded(num_envs, tmp_path):
    """Its mean would stay the cumulative one for ever, because the state says how fast the old fades."""
    monitor, state = monitored(payback.grm(GAMMA, 2))
    state, _ = monitor.step(state, np.ones(B), None, None)
    payback.save_state(tmp_path / "state.npz", state.loans)
    other = Monitor(make(payback.grm(GAMMA, 2, center=payback.center(20))), learner_gamma=GAMMA)
    with pytest.raises(ValueError, match="another horizon"):
        other.load(tmp_path / "state.npz", other.ledger.init(np.zeros(num_envs)))


def test_a_loaded_state_is_read_by_the_transform(tmp_path):
    """The file is compared with the state at hand, which may be another transform's."""
    stranger = payback.match_at_end(0.999).init(np.zeros(B))
    payback.save_state(tmp_path / "state.npz", stranger)
    monitor, state = monitored()
    with pytest.raises((TypeError, ValueError), match="AtEndState"):
        monitor.load(tmp_path / "state.npz", state._replace(loans=stranger))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_it_can_be_copied_while_it_records(again, tmp_path):
    pytest.importorskip("pyarrow")
    monitor, state = monitored(record=tmp_path / "log")
    state, _ = play(monitor, state, 3)
    other = again(monitor)
    assert (other.steps, other.finished) == (3, 0)
    other.log = None
    play(other, state)
    monitor.close()


def test_changed_names_the_first_environment_that_was_given_another_reward():
    extrinsic, shaped = np.array([1.0, 1.0]), np.array([2.0, -1.0])
    assert changed((extrinsic + shaped).astype(np.float32), extrinsic, shaped) is None
    assert changed(np.array([3.0, 1e-3]), extrinsic, shaped) == 1
    assert changed(np.array([np.nan, 0.0]), extrinsic, shaped) == 0


@pytest.mark.parametrize("spoil", [lambda r: np.clip(r, -0.1, 0.1), lambda r: 0.5 * r, lambda r: r - r.mean()])
def test_a_reward_changed_after_the_shaping_is_warned_of_once(spoil):
    monitor = Monitor(make(payback.match_after(0.9, 2)), learner_gamma=0.9)
    state, no, extrinsic = monitor.ledger.init(np.zeros(2)), np.zeros(2, bool), np.ones(2)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(3):
            state, step = monitor.step(state, np.array([3.0, 1.0]), no, no)
            monitor.see_reward((extrinsic + step.shaped).astype(np.float32), extrinsic, step)
        assert not warned
        for _ in range(3):
            state, step = monitor.step(state, np.array([3.0, 1.0]), no, no)
            monitor.see_reward(spoil(extrinsic + step.shaped), extrinsic, step)
    assert ["changes rewards" in str(warning.message) for warning in warned] == [True]
