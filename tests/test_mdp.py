from fractions import Fraction

import pytest

from payback.mdp import MDP, Shaping, compare, episodes, matched, potential_difference, solve
from payback.theory import check_boundary
from payback_lab.prior_work.procrastination import DOORKEY, doorkey_table, procrastination, procrastination_condition

HALF = Fraction(1, 2)
LOOP = MDP(
    {
        "a": {"go": ((1, "b", 0),), "exit": ((1, "end", 1),)},
        "b": {"go": ((1, "a", 0),), "exit": ((HALF, "end", 0), (HALF, "win", 2))},
    },
    start="a",
    horizon=5,
)


def visits(history, ended):
    """Strehl's count bonus: depends on the whole history."""
    return Fraction(1, 1 + history[:-1:2].count(history[-1]))


def delayed(D):
    return lambda t, i, N: int(t == min(i + D, N - 1))


def test_values_are_exact() -> None:
    q = solve(LOOP, HALF).q
    assert q[("a",)] == {"go": HALF, "exit": 1}
    assert q[("a", "go", "b")] == {"go": HALF, "exit": 1}
    assert len(q) == 5


def test_a_raw_bonus_changes_the_optimal_actions_and_the_first_history_is_shown() -> None:
    verdict = compare(LOOP, HALF, Shaping(bonus=lambda h, e: 3 * visits(h, e)))
    assert not verdict.preserved
    assert verdict.history == ("a",)
    assert (verdict.before, verdict.after) == ({"exit"}, {"go"})
    assert "exit" in str(verdict)


@pytest.mark.parametrize("matching", [delayed(1), delayed(2), delayed(9), lambda t, i, N: int(t == i)])
def test_a_matched_bonus_never_does(matching) -> None:
    bonus = matched(lambda h, e: 100 * visits(h, e) - 7 * len(h), matching, HALF)
    verdict = compare(LOOP, HALF, Shaping(bonus=bonus), tolerance=0)
    assert verdict.preserved
    assert verdict.histories == 5


def test_a_matching_that_sees_the_end_coming_does() -> None:
    def bonus(history, ended):
        """F = 50 for every step, repaid by m(t, i, N) = 1/(N − i): ending early is favoured."""
        N = len(history) // 2 if ended else 5
        t = len(history) // 2 - 1
        return 50 - 50 * sum(HALF ** (i - t) * Fraction(1, max(N, t + 1) - i) for i in range(t + 1))

    assert not compare(LOOP, HALF, Shaping(bonus=bonus)).preserved


def test_partial_observation() -> None:
    hidden = MDP(
        {
            "s": {"look": ((HALF, "left", 0), (HALF, "right", 0))},
            "left": {"l": ((1, "end", 1),), "r": ((1, "end", 0),), "wait": ((1, "left*", 0),)},
            "right": {"l": ((1, "end", 0),), "r": ((1, "end", 2),), "wait": ((1, "right*", 0),)},
            "left*": {"l": ((1, "end", 1),), "r": ((1, "end", 0),)},
            "right*": {"l": ((1, "end", 0),), "r": ((1, "end", 2),)},
        },
        start="s",
        horizon=3,
        observe=lambda s: s if s.endswith("*") or s == "s" else "?",
    )
    q = solve(hidden, Fraction(9, 10)).q
    assert q[("s", "look", "?")] == {"l": HALF, "r": 1, "wait": Fraction(27, 20)}
    assert ("s", "look", "?", "wait", "left*") in q
    bonus = matched(lambda h, e: Fraction(h[-1].startswith("left")), delayed(1), Fraction(9, 10))
    assert compare(hidden, Fraction(9, 10), Shaping(bonus=bonus), tolerance=0).preserved
    assert not compare(
        hidden, Fraction(9, 10), Shaping(bonus=lambda h, e: -2 * Fraction(h[-1].endswith("*")))
    ).preserved


def test_the_boundary_condition_holds_for_what_the_solver_says_is_preserved() -> None:
    def phi(history, ended):
        return 0 if ended else len(history) + (history[-1] == "a")

    verdict = compare(LOOP, 0.9, Shaping(bonus=potential_difference(phi, 0.9)))
    assert verdict.preserved
    check_boundary(lambda e, t: phi(e[: 2 * t + 1], 2 * t == len(e) - 1), episodes(LOOP), 0.9)


def test_too_large_is_refused() -> None:
    wide = MDP({0: dict.fromkeys(range(4), ((1, 0, 0),))}, start=0, horizon=12)
    with pytest.raises(ValueError, match="more than 1,000 histories"):
        solve(wide, 0.9, limit=1000)
    with pytest.raises(ValueError, match="more than 500 histories"):
        list(episodes(wide, limit=500))


@pytest.mark.parametrize(
    ("mdp", "message"),
    [
        (MDP({}, 0, 3), "start"),
        (MDP({0: {0: ((1, 0, 0),)}}, 0, 0), "horizon"),
        (MDP({0: {}}, 0, 3), "no actions"),
        (MDP({0: {0: ((0.5, 0, 0),)}}, 0, 3), "add up to 1"),
    ],
)
def test_bad_input_gets_a_sentence(mdp, message) -> None:
    with pytest.raises(ValueError, match=message):
        solve(mdp, 0.9)


def corridor(distance: int, visits: int, horizon: int) -> tuple[MDP, object]:
    transitions = {
        k: {"wait": ((1, k, 0),), "go": ((1, k - 1, 1.0 if k == 1 else 0.0),)} for k in range(distance, 0, -1)
    }

    def bonus(history, ended):
        here = history[-1]
        before = history[:-1:2].count(here) + (visits - 1) * (here == distance)
        return 1 / (before + 1)

    return MDP(transitions, distance, horizon), bonus


@pytest.mark.parametrize("alpha", [0.005, 0.02, 0.025, 0.2])
@pytest.mark.parametrize("visits", [1, 3])
@pytest.mark.parametrize("distance", [1, 2])
def test_the_corridor_agrees_with_the_exact_solver(alpha, visits, distance) -> None:
    """With room to wait, whether waiting once is optimal at the start does not depend on the horizon much."""
    mdp, count = corridor(distance, visits, horizon=11)
    q = solve(mdp, 0.98, Shaping(bonus=lambda h, e: alpha * count(h, e))).q[(distance,)]
    found = procrastination(alpha, 0.98, visits, distance)
    assert found.exact == (q["wait"] > q["go"])
    if not found.exact:
        assert q["go"] == pytest.approx(found.value)


def test_the_three_settings() -> None:
    table = doorkey_table(visits=(1,), distances=(1, 20))
    assert [row.paper is not None for row in table[::2]] == [False, True, True]
    assert len(table) == 2 * len(DOORKEY)
    # Far from the goal its value is discounted, so waiting is cheaper than the inequality says.
    assert all(row.value < 1 or row.distance == 1 or row.alpha * 20 > 0.05 for row in table)


def test_the_inequality_at_one_step() -> None:
    assert procrastination_condition(0.02, 0.995, 2, 1) is (1 - 0.995 < 0.02 / 3)
