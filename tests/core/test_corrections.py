"""(h) The paper's slips, one test for each row of the table of corrections: as printed it fails, corrected it holds.

All in fractions. Labels are those of the paper's TeX source.
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import payback
from payback import theory

from .cases import Stream as Rewards
from .cases import after, at_end, evenly, quiet, step_through
from .mutants import rereads_the_mean
from .properties import GAMMA as FLOAT_GAMMA
from .properties import check_drawer, check_zero_sum, shaper_of

pytestmark = quiet
GAMMA = Fraction(9, 10)
F = [Fraction(n) for n in (3, -1, 4, 1, 5, 9, 2)]
ONE = Fraction(1)


def discounted(rewards: Sequence[Fraction], first: int = 0) -> Fraction:
    """Σ_{n≥t} γ^(n−t) R_n."""
    return sum((GAMMA**n * r for n, r in enumerate(rewards[first:])), Fraction(0))


def drawer(rewards: Sequence[Fraction], m: Any) -> list[Fraction]:
    """F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i), for any m, valid or not."""
    N = len(rewards)
    return [
        rewards[t] - sum((GAMMA ** (i - t) * rewards[i] * m(t, i, N) for i in range(t + 1)), Fraction(0))
        for t in range(N)
    ]


def shaping_of(potential: Sequence[Fraction]) -> list[Fraction]:
    """γΦ_{t+1} − Φ_t."""
    return [GAMMA * after - before for before, after in pairwise(potential)]


def test_condition2_must_also_forbid_a_look_at_the_coming_end():
    """1/(N−i) meets both Conditions and sums to zero, yet what is left from t = 1 depends on when the episode ends."""

    def even(t: int, i: int, N: int) -> Fraction:
        return Fraction(t >= i, N - i)

    rest = {}
    for N in (2, 6):
        assert all(sum(even(t, i, N) for t in range(N)) == 1 for i in range(N))
        assert all(even(t, i, N) == 0 for t in range(N) for i in range(t + 1, N))
        shaped = drawer([ONE] * N, even)
        assert discounted(shaped) == 0
        rest[N] = discounted(shaped, 1)
        theory.check_matching(np.array([[even(t, i, N) for i in range(N)] for t in range(N)]))  # a bare matrix passes
    assert [round(float(rest[N]), 3) for N in (2, 6)] == [-0.556, -0.926]
    with pytest.raises(payback.InvarianceError, match="depends on the coming end"):
        theory.check_matching(even)
    # Corrected: the same loan, and the rest is the same debt whenever the episode ends.
    for matching in (at_end(), after(1), after(3), evenly(2)):
        theory.check_matching(matching)
        assert len({discounted(theory.match_episode([ONE] * N, matching, GAMMA), 1) for N in (2, 3, 6)}) == 1


def test_hyperparam_m_is_off_by_one():
    """t' > N − D leaves F_{N−D} unpaid, for every 1 ≤ D ≤ N; t' ≥ N − D is right."""
    for N in range(1, 8):
        for D in range(1, N + 1):

            def printed(t: int, i: int, N: int, D: int = D) -> int:
                return int(t - i == D or (t == N - 1 and i > N - D))

            def corrected(t: int, i: int, N: int, D: int = D) -> int:
                return int(t - i == D or (t == N - 1 and i >= N - D))

            columns = [sum(printed(t, i, N) for t in range(N)) for i in range(N)]
            assert columns == [int(i != N - D) for i in range(N)]
            with pytest.raises(payback.InvarianceError, match=f"column {N - D} adds up to 0"):
                theory.match_episode([ONE] * N, printed, GAMMA)
            theory.check_matching(corrected)
            assert drawer(F[:N], corrected) == drawer(F[:N], after(D))


def test_hyperparam_tuning_puts_short_episodes_into_the_wrong_case():
    """The three cases in the printed order, with F outside the episode read as 0."""

    def at(i: int, N: int) -> Fraction:
        return F[i] if 0 <= i < N else Fraction(0)

    def printed(t: int, N: int, D: int) -> Fraction:
        if t < D:
            return F[t]
        if t < N - 1:
            return F[t] - GAMMA**-D * F[t - D]
        return sum((-(GAMMA ** (i - D)) * at(N - 1 - D + i, N) for i in range(D)), Fraction(0))

    def corrected(t: int, N: int, D: int) -> Fraction:
        if t == N - 1:
            return -sum((GAMMA ** (i - t) * F[i] for i in range(max(0, N - 1 - D), N - 1)), Fraction(0))
        return F[t] if t < D else F[t] - GAMMA**-D * F[t - D]

    for N in range(1, 8):
        for D in range(1, 10):
            right = drawer(F[:N], after(D))
            assert [corrected(t, N, D) for t in range(N)] == right
            as_printed = [printed(t, N, D) for t in range(N)]
            assert (as_printed == right) == (N > D), f"N = {N}, D = {D}"
            assert (discounted(as_printed) == 0) == (N > D)


def test_proof_m_condition_cannot_hold_at_the_last_step():
    """m(t,t) ≠ 1 for all t contradicts Condition1; for t < N−1 it is enough, up to a constant paid at t = 0."""
    matching, N = evenly(2), 4
    for m in (at_end(), after(3), matching):
        assert m(N - 1, N - 1, N) == 1  # all that is left to repay F_{N−1} is its own step
    # Round trip: exact where Φ_0 = γᴺΦ_N, with F_{N−1} free.
    potential = [Fraction(2), Fraction(-1), Fraction(5), Fraction(3), 2 / GAMMA**N]
    rewards = theory.reward_of(potential, matching, GAMMA)
    assert rewards[-1] == 0
    assert theory.match_episode(rewards, matching, GAMMA).tolist() == shaping_of(potential)
    assert theory.match_episode([*rewards[:-1], Fraction(7)], matching, GAMMA).tolist() == shaping_of(potential)
    # Elsewhere a constant is missing: it is named, and paying it at t = 0 is all that is needed.
    potential[-1] = Fraction(1)
    missing = GAMMA**N * potential[-1] - potential[0]
    with pytest.raises(ValueError, match=f"γᴺΦ_N − Φ_0 = {missing} over the episode.*at t = 0"):
        theory.reward_of(potential, matching, GAMMA)
    matched = theory.match_episode(
        theory.reward_of([potential[0] + missing, *potential[1:]], matching, GAMMA), matching, GAMMA
    )
    assert [matched[0] + missing, *matched[1:]] == shaping_of(potential)


def test_f_from_m_phi_has_its_indices_swapped():
    """γ^i F_{i−t} reaches before the episode (read as 0 here); γ^(i−t) F_i is what (drawer) takes back."""
    matching, N = after(1), 4
    potential = [Fraction(0), Fraction(2), Fraction(-3), Fraction(5), Fraction(0)]
    target = shaping_of(potential)

    def rewards(taken_back: Any) -> list[Fraction]:
        F: list[Fraction] = []
        for t in range(N - 1):
            repaid = sum((taken_back(F, i, t) * matching(t, i, N) for i in range(t)), Fraction(0))
            F.append((target[t] + repaid) / (1 - matching(t, t, N)))
        return [*F, Fraction(0)]

    printed = rewards(lambda F, i, t: GAMMA**i * (F[i - t] if i >= t else 0))
    corrected = rewards(lambda F, i, t: GAMMA ** (i - t) * F[i])
    assert drawer(printed, matching) != target
    assert drawer(corrected, matching) == target
    assert theory.reward_of(potential, matching, GAMMA).tolist() == corrected


def test_phi_set_misses_a_term_at_the_end():
    """Φ_N = −U'_0/γᴺ leaves the last reward off by γF̄/(γ−1); it needs − F̄/(γ−1) too."""
    N, mean = len(F), Fraction(7, 3)
    centred = [f - mean for f in F]
    wanted = drawer(centred, at_end())
    before_end = [-discounted(F, n) - mean / (GAMMA - 1) for n in range(N)]
    printed_end = -discounted(centred) / GAMMA**N
    printed = shaping_of([*before_end, printed_end])
    corrected = shaping_of([*before_end, printed_end - mean / (GAMMA - 1)])
    assert corrected == wanted
    assert printed[:-1] == wanted[:-1]
    assert printed[-1] - wanted[-1] == GAMMA * mean / (GAMMA - 1) != 0


def test_the_potential_of_delay_one_is_one_step_behind():
    """F'_t = F_t − F_{t−1}/γ is γΦ_{t+1} − Φ_t with Φ_t = F_{t−1}/γ, not F_t/γ."""
    shaped, inner = theory.match_episode(F, after(1), GAMMA).tolist(), range(1, len(F) - 1)
    printed = [GAMMA * F[t + 1] / GAMMA - F[t] / GAMMA for t in inner]
    corrected = [GAMMA * F[t] / GAMMA - F[t - 1] / GAMMA for t in inner]
    assert printed != shaped[1:-1]
    assert corrected == shaped[1:-1]
    assert theory.potential_of(F, after(1), GAMMA).tolist()[1:-1] == [f / GAMMA for f in F[:-1]]


def test_the_proof_of_theorem_2_has_another_power_of_gamma():
    """U_t − U_0/γᵗ = −Σ_{n<t} γ^(n−t) F_n with γ^(n−t) inside U_t; with the printed γ^n only at t = 0."""
    N, u_0 = len(F), discounted(F)
    for t in range(N):
        wanted = -sum((GAMMA ** (n - t) * F[n] for n in range(t)), Fraction(0))
        printed = sum((GAMMA**n * F[n] for n in range(t, N)), Fraction(0)) - u_0 / GAMMA**t
        corrected = sum((GAMMA ** (n - t) * F[n] for n in range(t, N)), Fraction(0)) - u_0 / GAMMA**t
        assert corrected == wanted
        assert (printed == wanted) == (t == 0)


def test_q_discounts_the_next_value():
    """R_t + V_{t+1} prefers 21/20 one step later to 1 now; R_t + γV_{t+1} agrees with the return."""
    now, later = [ONE, Fraction(0)], [Fraction(0), Fraction(21, 20)]
    printed = {name: path[0] + discounted(path, 1) for name, path in (("now", now), ("later", later))}
    corrected = {name: path[0] + GAMMA * discounted(path, 1) for name, path in (("now", now), ("later", later))}
    assert max(printed, key=printed.__getitem__) == "later"
    assert max(corrected, key=corrected.__getitem__) == "now"
    assert corrected == {"now": discounted(now), "later": discounted(later)}


def test_the_mean_has_two_documented_choices():
    """A running mean here and a cumulative one there are not the same; both are to be had, and both keep the law."""
    rewards = Rewards(np.array([[8.0], [0.0], [0.0], [0.0]]), np.array([[False], [False], [False], [True]]))
    cumulative = step_through(payback.center(), rewards)[1][:, 0]
    running = step_through(payback.center(2), rewards)[1][:, 0]
    np.testing.assert_allclose(cumulative, [8, -8, -4, -8 / 3])
    np.testing.assert_allclose(running, [8, -8, -8 / 3, -8 / 7])
    for mean in (payback.center(), payback.center(2)):
        check_zero_sum(shaper_of(payback.pbim(FLOAT_GAMMA, center=mean)))
        check_zero_sum(shaper_of(payback.grm(FLOAT_GAMMA, 2, center=mean)))
    assert "cumulative" in (payback.center.__doc__ or "")
    assert "running mean" in (payback.center.__doc__ or "")


def test_normalised_grm_repays_what_was_paid():
    """(drawer) of G_t = F_t − F̄_t with F̄_t frozen at receipt; a mean read anew at repayment breaks the law."""
    check_drawer(shaper_of(payback.grm(FLOAT_GAMMA, 2)), after(2), centered=True)
    check_zero_sum(shaper_of(payback.grm(FLOAT_GAMMA, 2)))
    with pytest.raises(AssertionError):
        check_zero_sum(rereads_the_mean)


def test_the_long_cliff_takes_51_moves_and_returns_50():
    """4 × 50 cells, start and goal at the ends of the bottom row, all between them cliff: not 52 and 49."""
    rows, columns = 4, 50
    start, goal = (3, 0), (3, 49)
    moves, queue = {start: 0}, deque([start])
    while queue:
        row, column = queue.popleft()
        for to in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = 0 <= to[0] < rows and 0 <= to[1] < columns
            cliff = to[0] == 3 and to not in (start, goal)
            if inside and not cliff and to not in moves:
                moves[to] = moves[row, column] + 1
                queue.append(to)
    assert moves[goal] == 51 != 52
    assert 100 - (moves[goal] - 1) == 50 != 49
