"""Discounts, delays, rates and matchings that cannot be: one clear sentence each, when they are given."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import payback
from payback import theory

from .refusals import refuses

# ------------------------------------------------------------------ γ, delays, rates

WRONG_GAMMA = [0, 0.0, -0.5, 1.0000001, 2, float("nan"), float("inf")]
NO_NUMBER = ["0.9", None]
GAMMA_TAKERS: dict[str, Callable[[Any], Any]] = {
    "match_at_end": payback.match_at_end,
    "match_when": payback.match_when,
    "match_after": lambda gamma: payback.match_after(gamma, 3),
    "match_evenly": lambda gamma: payback.match_evenly(gamma, 3),
    "match_geometric": lambda gamma: payback.match_geometric(gamma, 0.25),
    "pbim": payback.pbim,
    "grm": lambda gamma: payback.grm(gamma, 3),
    "match_episode": lambda gamma: theory.match_episode([1.0], [[1.0]], gamma),
    "potential_of": lambda gamma: theory.potential_of([1.0], [[1.0]], gamma),
    "reward_of": lambda gamma: theory.reward_of([0.0, 0.0], [[1.0]], gamma),
}
OF_EPISODES = ("match_episode", "potential_of", "reward_of")


@pytest.mark.parametrize("taker", GAMMA_TAKERS)
@pytest.mark.parametrize("gamma", [*WRONG_GAMMA, *NO_NUMBER])
def test_gamma_outside_0_1(taker: str, gamma: Any):
    with refuses(ValueError, "gamma must lie in (0, 1], got", repr(gamma), "use the learner's own discount"):
        GAMMA_TAKERS[taker](gamma)


@pytest.mark.parametrize("taker", GAMMA_TAKERS)
@pytest.mark.parametrize("gamma", [1, 1.0, 0.5, np.float32(0.5), np.float64(1)])
def test_gamma_within(taker: str, gamma: Any):
    made = GAMMA_TAKERS[taker](gamma)
    if taker in OF_EPISODES:
        assert np.isfinite(made).all()
    else:
        assert made.gamma == float(gamma)
        assert type(made.gamma) is float


@pytest.mark.parametrize("delay", [-1, 1.5, 2.0, float("nan"), "3", None, True, np.float64(4)])
def test_a_delay_that_is_no_count(delay: Any):
    for build in (payback.match_after, payback.grm):
        with refuses(ValueError, "delay must be a whole number of steps, at least 0, got", repr(delay)):
            build(0.9, delay)
    with refuses(ValueError, "window must be a whole number of steps, at least 1, got", repr(delay)):
        payback.match_evenly(0.9, delay)


@pytest.mark.parametrize("steps", [10**12, 10**18, 10**30])
def test_more_loans_than_memory_holds(steps: int):
    for make, name, what in (
        (payback.grm, "match_after", "delay"),
        (payback.match_after, "match_after", "delay"),
        (payback.match_evenly, "match_evenly", "window"),
    ):
        sentence = f"{name}: {steps} numbers ({what}) are kept per environment, more than there is memory for; repay"
        with refuses(MemoryError, sentence, "sooner, or with match_at_end, which keeps one"):
            make(1.0, steps)


def test_more_environments_than_memory_holds():
    """The example is one number seen a million million times: it takes no memory, its loans would."""
    match = payback.match_after(1.0, 3)
    with refuses(
        MemoryError, "match_after: 3 numbers (the longest age) are kept per environment, more than there is memory for"
    ):
        match.init(np.broadcast_to(np.zeros(1), (10**12,)))


def test_a_window_of_nothing():
    with refuses(ValueError, "window must be a whole number of steps, at least 1, got 0"):
        payback.match_evenly(0.9, 0)
    payback.match_after(0.9, np.int64(0))


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, 1.5, float("nan"), "0.5", None, True])
def test_a_rate_outside_0_1(rate: Any):
    with refuses(ValueError, "rate must lie in [0, 1), got", repr(rate), "0 repays all at the next step"):
        payback.match_geometric(0.9, rate)


def test_a_rate_that_grows_is_warned_of():
    with pytest.warns(payback.InterestWarning, match=r"rate 0\.95 ≥ gamma 0\.9 the debt grows .* choose a rate below"):
        payback.match_geometric(0.9, 0.95)


# ------------------------------------------------------------------ matchings


def test_a_matching_that_leaves_a_loan_unpaid_names_its_column():
    matching = np.array([[0.5, 0, 0], [0.5, 0.25, 0], [0, 0.5, 1]])
    for use in (lambda m: theory.match_episode([1.0, 2.0, 3.0], m, 0.9), theory.check_matching):
        with refuses(payback.InvarianceError, "every loan exactly once (Condition1)", "column 1 adds up to 0.75"):
            use(matching)
    with refuses(payback.InvarianceError, "column 0 adds up to 2/3, not 1, in an episode of 1 steps"):
        theory.check_matching(lambda t, i, N: Fraction(2, 3))


def test_a_matching_that_looks_ahead_names_its_row():
    matching = np.array([[1, 0, 0], [0, 0, 0.5], [0, 1, 0.5]])
    for use in (lambda m: theory.match_episode([1.0, 2.0, 3.0], m, 0.9), theory.check_matching):
        sentence = ("looks ahead (Condition2): row 1 repays 0.5 of the loan of step 2", "must be 0 for i > t")
        with refuses(payback.InvarianceError, *sentence):
            use(matching)


def test_a_matching_that_depends_on_the_coming_end_names_where():
    def even(t: int, i: int, N: int) -> float:
        return 1 / (N - i) if t >= i else 0.0

    sentence = ("depends on the coming end: m(0, 0) is 0.5 in an episode of 2 steps and", "may not depend on N")
    with refuses(payback.InvarianceError, *sentence):
        theory.check_matching(even)
    for use in (theory.match_episode, theory.potential_of):
        with refuses(payback.InvarianceError, "depends on the coming end: m(0, 0) is", "in an episode of 3 steps"):
            use([1.0, 2.0, 3.0], even, 0.9)


def test_a_matching_of_another_size():
    with refuses(ValueError, "the matching has shape (2, 2), the episode 3 steps; pass an (N, N) array or a function"):
        theory.match_episode([1.0, 2.0, 3.0], np.eye(2), 0.9)


@pytest.mark.parametrize("rewards", [[], [[1.0]], 3.0])
def test_rewards_that_are_not_one_episode(rewards: Any):
    with refuses(ValueError, "rewards must be one episode's numbers, shape (N,) with N ≥ 1, got shape"):
        theory.match_episode(rewards, lambda t, i, N: float(t == i), 0.9)


def test_an_interest_that_overflows_in_a_whole_episode():
    last = (np.arange(400) == 399).astype(float)
    with refuses(OverflowError, "repayment at step 399 overflows float64", "γ = 0.1", "repay sooner", "Fraction"):
        theory.match_episode(np.ones(400), np.outer(last, np.ones(400)), 0.1)


def test_a_whole_episode_names_the_step_that_is_not_finite():
    with refuses(ValueError, "rewards: step 1 is nan"):
        theory.match_episode([0.0, np.nan], np.eye(2), 0.9)


def test_a_potential_that_no_matching_has_names_the_missing_constant():
    with refuses(ValueError, "γᴺΦ_N − Φ_0 = -2.0", "pay that constant at t = 0"):
        theory.reward_of([2.0, 1.0, 0.0], lambda t, i, N: float(t == N - 1), 0.5)


def test_a_matching_that_repays_at_once_has_no_reward():
    with refuses(ValueError, "m(0, 0) = 1 repays that loan at once", "choose m(t, t) ≠ 1"):
        theory.reward_of([0.0, 1.0, 0.0], np.eye(2), 0.5)
