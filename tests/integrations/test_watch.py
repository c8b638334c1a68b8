"""The live watch: it agrees with a plain loop, says once that episodes do not cancel, and is quiet otherwise."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

import payback
from payback.integrations.gymnasium import ShapeVectorReward
from payback.integrations.ledger import Ledger, ShapingWarning
from payback.integrations.watch import Watch

GAMMA, B = 0.9, 3


def plain(stream):
    """Judge each finished episode by adding up, step by step."""
    total, size, weight, finished, broken = np.zeros(B), np.zeros(B), np.ones(B), 0, 0
    for shaped, valid, ends, judged in stream:
        total, size = total + weight * shaped, size + weight * abs(shaped)
        weight = np.where(valid, weight * GAMMA, weight)
        for k in np.flatnonzero(ends):
            finished += judged
            broken += judged and abs(total[k]) > 1e-5 * size[k] + 1e-12
            total[k], size[k], weight[k] = 0, 0, 1
    return finished, broken


@pytest.mark.filterwarnings("ignore:.*finished episodes did not cancel")
@pytest.mark.parametrize("seed", range(6))
def test_it_counts_what_a_plain_loop_counts(seed):
    chance, match, stream = np.random.default_rng(seed), payback.match_after(GAMMA, 4), []
    state, watch = match.init(np.zeros(B)), Watch(GAMMA, B)
    for _ in range(900):
        valid, ends, judged = chance.random(B) < 0.9, chance.random(B) < 0.1, bool(chance.random() < 0.7)
        ends &= valid
        state, shaped = match.update(state, chance.normal(size=B), ends, valid)
        shaped = shaped + (chance.random(B) < 0.005) * valid
        watch.add(shaped, valid)
        watch.end(ends, judged)
        stream.append((shaped, valid, ends, judged))
    watch.sum_up()
    assert (watch.finished, watch.broken) == plain(stream)
    assert watch.finished > watch.broken > 3


def never_settles(gamma):
    """A user's match that is wrong: it repays one step later, but forgets the end."""

    def update(paid, reward, done, valid=None, settle=None):
        return np.where(done, 0.0, reward), reward - paid / gamma

    return payback.Match(
        np.zeros_like, update, gamma=gamma,
        owed=lambda paid: paid / gamma, drop=lambda paid, where: np.where(where, 0.0, paid),
    )  # fmt: skip


def play(ledger):
    for t in range(1000):
        ledger.step(np.ones(B), np.full(B, t % 5 == 4), None)


def test_a_wrong_match_is_said_once_with_numbers():
    ledger = Ledger(never_settles(GAMMA), B, learner_gamma=GAMMA)
    with pytest.warns(ShapingWarning, match=r"of \d+ finished episodes did not cancel.*check_transform") as said:
        play(ledger)
    assert len(said) == 1


@pytest.mark.filterwarnings("ignore:a truncated episode", "ignore:environment . was reset")
@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_right_matches_are_never_accused(walk, mode, on_truncation):
    envs = gym.vector.SyncVectorEnv([walk] * B, autoreset_mode=mode)
    envs = ShapeVectorReward(envs, "novelty", payback.grm(GAMMA, 3), on_truncation)
    envs.reset(seed=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*did not cancel")
        for t in range(600):
            _, _, terminated, truncated, _ = envs.step(np.zeros(B, int))
            if mode is gym.vector.AutoresetMode.DISABLED and (terminated | truncated).any():
                envs.reset(options={"reset_mask": terminated | truncated})
            if t % 100 == 50:
                envs.reset()
        envs.ledger.watch.sum_up()
    assert envs.ledger.watch.broken == 0
    assert envs.ledger.watch.finished > 100


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_a_debt_that_is_left_late_in_a_long_episode_is_not_hidden_by_the_discount(gamma):
    """γ^t of the last step is 0 in float64: the end is judged from the debt before it."""
    length, match = 8000, payback.match_after(gamma, 3)
    for settles in (True, False):
        ledger, chance = Ledger(never_settles(gamma) if not settles else match, B, learner_gamma=gamma), None
        chance = np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapingWarning)
            for t in range(2 * length):
                ledger.step(chance.random(B), np.full(B, t % length == length - 1), None)
            ledger.watch.sum_up()
        assert (ledger.watch.finished, ledger.watch.broken) == (2 * B, 0 if settles else 2 * B)


@pytest.mark.parametrize("seed", range(3))
def test_rewards_of_very_different_size_are_not_accused(seed):
    chance = np.random.default_rng(seed)
    for match in (payback.match_after(GAMMA, 7), payback.match_geometric(GAMMA, 0.7), payback.grm(GAMMA, 30)):
        ledger = Ledger(match, B, learner_gamma=GAMMA)
        for t in range(3000):
            ledger.step(chance.normal(size=B) * 10.0 ** chance.uniform(-9, 6, B), np.full(B, t % 1000 == 999), None)
        ledger.watch.sum_up()
        assert (ledger.watch.finished, ledger.watch.broken) == (3 * B, 0)
