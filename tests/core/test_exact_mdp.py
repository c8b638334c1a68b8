"""(d) A small MDP solved exactly over histories: the raw bonus moves the optimal policy, no matching does."""

from fractions import Fraction

import numpy as np
import pytest

from .cases import after, at_end, evenly, geometric, when
from .mutants import depends_on_the_end
from .small_mdp import GAMMA, LIMIT, action_values, best_of, matched_exactly, nothing, raw_bonus

EXACT = Fraction(0)
WITHOUT = action_values(nothing)

MATCHINGS = {
    "at_end": at_end(),
    "after-0": after(0),
    "after-1": after(1),
    "after-2": after(2),
    "after-9": after(9),
    "evenly": evenly(3),
    "geometric": geometric(0.25),
    "when": when(np.array([False, False, True, False, True])),
}


def test_the_mdp_is_solved_as_by_hand():
    """With one step left in cell 1, going pays ¾; with two left in cell 0, two moves in a row pay γ·9/16."""
    by_length = {len(h): v for h, v in WITHOUT.items() if h and h[-1].cell == 1 and h[0].action == "go"}
    assert by_length[LIMIT - 1] == {"go": Fraction(3, 4), "play": 0, "quit": Fraction(3, 8)}
    waiting = next(v for h, v in WITHOUT.items() if len(h) == LIMIT - 2 and all(step.action == "play" for step in h))
    assert waiting["go"] == GAMMA * (Fraction(3, 4) * Fraction(3, 4) + Fraction(1, 4) * Fraction(3, 8))
    assert best_of(WITHOUT[()], EXACT) == {"go"}


def test_the_raw_bonus_changes_the_optimal_policy():
    raw = action_values(raw_bonus)
    assert best_of(raw[()], EXACT) == {"play"}
    assert sum(best_of(raw[h], EXACT) != best_of(WITHOUT[h], EXACT) for h in WITHOUT) > len(WITHOUT) / 4


@pytest.mark.parametrize("name", MATCHINGS)
def test_every_matching_leaves_it(name: str):
    """After every history the best actions are the same, and every value is lower by the debt, exactly."""
    shaped = action_values(matched_exactly(MATCHINGS[name]))
    assert shaped.keys() == WITHOUT.keys()
    for history, values in WITHOUT.items():
        assert best_of(shaped[history], EXACT) == best_of(values, EXACT)
        debts = {values[action] - shaped[history][action] for action in values}
        assert len(debts) == 1, "the debt depends on the action"
    assert shaped[()] == WITHOUT[()]


def test_a_matching_that_depends_on_the_end_does_not():
    """It meets both of the paper's Conditions, and makes another action best."""

    def added(episode):
        F, N = [step.bonus for step in episode], len(episode)
        m = depends_on_the_end
        return [F[t] - sum(GAMMA ** (i - t) * F[i] * m(t, i, N) for i in range(t + 1)) for t in range(N)]

    shaped = action_values(added)
    moved = [history for history in WITHOUT if best_of(shaped[history], EXACT) != best_of(WITHOUT[history], EXACT)]
    assert moved
