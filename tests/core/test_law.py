"""(b) The law at every step, exact over whole episodes, and of the debt that streaming code reports."""

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import payback
from payback import theory

from .cases import (
    Match,
    Stream,
    after,
    assert_close,
    at_end,
    calm,
    evenly,
    gammas,
    geometric,
    matches,
    quiet,
    random_stream,
    step_through,
    streams,
    when,
)

pytestmark = quiet

ratios = st.fractions(-3, 3, max_denominator=7)


@st.composite
def lower_triangles(draw: st.DrawFn, N: int) -> list[list[Fraction]]:
    """Draw any fully matching matrix: each column is split over its own and later rows, with signs as they come."""
    columns = []
    for i in range(N):
        shares = [draw(ratios) for _ in range(N - 1 - i)]
        columns.append([Fraction(0)] * i + shares + [1 - sum(shares, Fraction(0))])
    return [list(row) for row in zip(*columns, strict=True)]


@st.composite
def exact_episodes(draw: st.DrawFn) -> tuple[list[Fraction], Any, Fraction]:
    """Draw rewards, a matching and γ, all exact."""
    N = draw(st.integers(1, 8))
    events = np.array(draw(st.lists(st.booleans(), min_size=N, max_size=N)))
    named = [at_end(), after(draw(st.integers(0, 9))), evenly(draw(st.integers(1, 9))), geometric(0.25), when(events)]
    matching = draw(st.sampled_from([*named, None]))
    rewards = [draw(ratios) for _ in range(N)]
    return rewards, matching or draw(lower_triangles(N)), draw(st.fractions(Fraction(1, 9), 1, max_denominator=9))


def matrix(matching: Any, N: int) -> list[list[Fraction]]:
    return [[Fraction(matching(t, i, N)) for i in range(N)] for t in range(N)] if callable(matching) else matching


def debt(F: list[Fraction], m: list[list[Fraction]], gamma: Fraction, t: int) -> Fraction:
    """Debt_t = Σ_{i<t} γ^(i−t) F_i (1 − Σ_{j<t} m(j,i))."""
    return sum((gamma ** (i - t) * F[i] * (1 - sum(m[j][i] for j in range(t))) for i in range(t)), Fraction(0))


def law_breaks_at(shaped: list[Fraction], F: list[Fraction], m: list[list[Fraction]], gamma: Fraction) -> int | None:
    """Return the first t at which Σ_{n≥t} γ^(n−t) F'_n ≠ −Debt_t."""
    for t in range(len(F)):
        if sum((gamma ** (n - t) * shaped[n] for n in range(t, len(F))), Fraction(0)) != -debt(F, m, gamma, t):
            return t
    return None


@given(episode=exact_episodes())
@calm
def test_the_law_holds_exactly_at_every_step(episode: tuple[list[Fraction], Any, Fraction]):
    rewards, matching, gamma = episode
    shaped = theory.match_episode(rewards, matching, gamma).tolist()
    assert all(isinstance(x, Fraction) for x in shaped)
    m = matrix(matching, len(rewards))
    assert law_breaks_at(shaped, rewards, m, gamma) is None
    # The potential is that debt, and 0 at the end.
    potential = theory.potential_of(rewards, matching, gamma).tolist()
    assert potential == [debt(rewards, m, gamma, t) for t in range(len(rewards))] + [0]


def test_the_exact_check_can_fail():
    """One payment in the wrong place or size is seen, at the first step from which the rest is wrong."""
    F, gamma, m = [Fraction(1), Fraction(2), Fraction(3)], Fraction(1, 2), matrix(after(1), 3)
    shaped = theory.match_episode(F, after(1), gamma).tolist()
    assert law_breaks_at(shaped, F, m, gamma) is None
    for wrong in (Fraction(1, 10**30), Fraction(-1)):
        assert law_breaks_at([shaped[0], shaped[1] + wrong, shaped[2]], F, m, gamma) == 0
        moved = [shaped[0] - wrong, shaped[1] + wrong / gamma, shaped[2]]
        assert law_breaks_at(moved, F, m, gamma) == 1


# ------------------------------------------------------------------ owed, drop


def rest_of_episode(transform: payback.RewardTransform, state: Any, B: int, gamma: float, seed: int) -> np.ndarray:
    """Return Σ_n γ^n F'_n over whatever still comes until each environment's end."""
    rng = np.random.default_rng(seed)
    dones = np.zeros((6, B), bool)
    dones[rng.integers(0, 6, B), np.arange(B)] = True
    over = (np.cumsum(dones, axis=0) - dones).astype(bool)
    stream = Stream(rng.normal(size=(6, B)), dones, ~over, rng.random((6, B)) < 0.3)
    shaped = step_through(transform, stream, state)[1]
    return (gamma ** np.arange(6.0) @ shaped)[:B]


@given(match=matches(longest=6), stream=streams(), gamma=gammas, seed=st.integers(0, 99), c=st.sampled_from([1, -0.5]))
@calm
def test_what_is_owed_is_what_the_rest_takes_back(match: Match, stream: Stream, gamma: float, seed: int, c: float):
    transform = payback.chain(payback.scale(2.0), match.make(gamma), payback.scale(c))
    state, _ = step_through(transform, stream)
    owed = payback.owed(transform, state)
    B = owed.shape[0]
    assert_close(rest_of_episode(transform, state, B, gamma, seed), -owed, 1e-9)
    where = np.arange(B) == 0
    left, dropped = payback.drop(transform, state, where)
    assert_close(dropped, np.where(where, owed, 0.0))
    assert_close(payback.owed(transform, left), np.where(where, 0.0, owed))
    assert_close(rest_of_episode(transform, left, B, gamma, seed), np.where(where, 0.0, -owed), 1e-9)


def test_owed_is_zero_after_the_end_and_drop_leaves_the_mean():
    shaping = payback.grm(0.9, 3)
    stream = random_stream(0, 10, 2, ends=0.0)
    stream.dones[-1, 0] = True
    state, _ = step_through(shaping, stream)
    owed = payback.owed(shaping, state)
    assert owed[0] == 0
    assert owed[1] != 0
    left, _ = payback.drop(shaping, state, np.array([True, True]))
    assert left[0] is state[0]
