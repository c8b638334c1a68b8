"""Whole episodes: a matching and a potential are one shaping seen from two sides, both directions."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import payback
from payback import theory

from .cases import after, assert_close, at_end, calm, evenly, geometric

MATCHINGS = {
    "at_end": at_end(),
    "after-1": after(1),
    "after-3": after(3),
    "evenly": evenly(2),
    "geometric": geometric(0.5),
}
ratios = st.fractions(-4, 4, max_denominator=6)
discounts = st.fractions(Fraction(1, 4), 1, max_denominator=8)


@st.composite
def matrices(draw: st.DrawFn, N: int) -> np.ndarray:
    """Draw a fully matching matrix with m(t,t) ≠ 1 before the last step."""
    m = np.array([[Fraction(0)] * N] * N, dtype=object)
    for i in range(N):
        for t in range(i, N - 1):
            m[t, i] = draw(ratios)
        assume(i == N - 1 or m[i, i] != 1)
        m[N - 1, i] = 1 - sum(m[i : N - 1, i], Fraction(0))
    return m


def shaping_of(potential: Any, gamma: Any) -> list[Any]:
    return [gamma * after - before for before, after in pairwise(potential)]


@given(data=st.data(), N=st.integers(1, 6), gamma=discounts)
@calm
def test_from_rewards_to_a_potential_and_back(data: st.DataObject, N: int, gamma: Fraction):
    """The potential's differences are the matched rewards; back again gives all rewards but the last, which is free."""
    matching, rewards = data.draw(matrices(N)), [data.draw(ratios) for _ in range(N)]
    potential = theory.potential_of(rewards, matching, gamma).tolist()
    assert potential[0] == potential[N] == 0
    assert shaping_of(potential, gamma) == theory.match_episode(rewards, matching, gamma).tolist()
    assert theory.reward_of(potential, matching, gamma).tolist() == [*rewards[:-1], 0]


@given(data=st.data(), N=st.integers(1, 6), gamma=discounts)
@calm
def test_from_a_potential_to_rewards_and_back(data: st.DataObject, N: int, gamma: Fraction):
    """Exact iff Φ_0 = γᴺΦ_N; elsewhere it raises and names what is missing."""
    matching, potential = data.draw(matrices(N)), [data.draw(ratios) for _ in range(N + 1)]
    missing = gamma**N * potential[N] - potential[0]
    if missing:
        with pytest.raises(ValueError, match="over the episode") as caught:
            theory.reward_of(potential, matching, gamma)
        assert f"γᴺΦ_N − Φ_0 = {missing} " in str(caught.value)
        potential[N] = potential[0] / gamma**N
    rewards = theory.reward_of(potential, matching, gamma)
    assert theory.match_episode(rewards, matching, gamma).tolist() == shaping_of(potential, gamma)


@pytest.mark.parametrize("name", MATCHINGS)
def test_the_round_trip_in_floats(name: str):
    rewards, matching = np.random.default_rng(0).normal(size=(20, 9)), MATCHINGS[name]
    for F in rewards:
        back = theory.reward_of(theory.potential_of(F, matching, 0.9), matching, 0.9)
        assert_close(back, [*F[:-1], 0.0])


@pytest.mark.parametrize("name", MATCHINGS)
def test_a_constant_that_is_missing_is_not_taken_for_rounding(name: str):
    potential = theory.potential_of(np.ones(6), MATCHINGS[name], 0.9)
    with pytest.raises(ValueError, match="over the episode"):
        theory.reward_of(potential + 1e-3, MATCHINGS[name], 0.9)


@pytest.mark.parametrize("name", MATCHINGS)
def test_floats_agree_with_fractions(name: str):
    rewards = [1.5, -2.0, 0.25, 4.0, 3.0]
    exact = theory.match_episode([Fraction(f) for f in rewards], MATCHINGS[name], Fraction(9, 10))
    assert all(isinstance(x, Fraction) for x in exact)
    assert_close(theory.match_episode(rewards, MATCHINGS[name], 0.9), exact.astype(float))
    # A γ in fractions is enough to make all of it exact, and so are rewards.
    assert theory.match_episode(rewards, MATCHINGS[name], Fraction(9, 10)).tolist() == exact.tolist()
    assert theory.match_episode(rewards, MATCHINGS[name], 0.5).dtype == np.float64


def test_a_matrix_and_a_function_are_the_same():
    rewards, N = [1.0, 2.0, 3.0, 4.0], 4
    for matching in MATCHINGS.values():
        matrix = np.array([[float(matching(t, i, N)) for i in range(N)] for t in range(N)])
        assert_close(theory.match_episode(rewards, matrix, 0.9), theory.match_episode(rewards, matching, 0.9))
        assert_close(
            theory.match_episode(rewards, matrix.tolist(), 0.9),
            theory.match_episode(rewards, matching, 0.9),
        )


def test_integers_are_taken_for_numbers():
    assert theory.match_episode([1, 2, 3], np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]]), 1).tolist() == [
        1.0,
        1.0,
        -2.0,
    ]
    assert theory.match_episode(np.array([4]), [[1]], 0.9).tolist() == [0.0]


def test_check_matching_looks_at_the_lengths_it_is_given():
    """Fully matching up to 4 steps, not at 5: seen only where it is looked for."""

    def short(t: int, i: int, N: int) -> float:
        return float(t == N - 1) if N < 5 else 0.0

    theory.check_matching(short, lengths=[1, 2, 3, 4])
    with pytest.raises(payback.InvarianceError, match=r"column 0 adds up to 0\.0, not 1, in an episode of 5 steps"):
        theory.check_matching(short)
    with pytest.raises(payback.InvarianceError):
        theory.check_matching(short, lengths=[5])
