"""The most common action over seeds, and where it leads."""

import numpy as np
import pytest

from payback_lab.policy import NONE, Policy, majority, outcome, walk


def q_of(*actions: int) -> np.ndarray:
    """One cell; one seed per action, which it prefers with Q = 10 × (its index + 1)."""
    q = np.zeros((len(actions), 1, 1, 4))
    for seed, action in enumerate(actions):
        if action != NONE:
            q[seed, 0, 0, action] = 10.0 * (seed + 1)
    return q


@pytest.mark.parametrize(
    ("actions", "action", "share", "value"),
    [
        ((2, 2, 0), 2, 2 / 3, 10.0),  # (10 + 20 + 0) / 3
        ((0, 3), 3, 1 / 2, 10.0),  # one vote each: the higher mean Q, 20 / 2
        ((NONE, NONE, 1), 1, 1 / 3, 10.0),
        ((NONE, NONE), NONE, 0.0, 0.0),
    ],
)
def test_majority_by_hand(actions, action, share, value) -> None:
    policy = majority(q_of(*actions))
    assert policy.action[0, 0] == action
    assert policy.share[0, 0] == pytest.approx(share)
    assert policy.value[0, 0] == pytest.approx(value)


def test_two_equal_best_actions_are_no_vote() -> None:
    q = np.zeros((2, 1, 1, 4))
    q[0, 0, 0, [0, 1]] = 100.0
    q[1, 0, 0, 3] = 1.0
    assert majority(q).action[0, 0] == 3


SHORTEST = np.array([[1, 1, 1, 2], [1, 1, 1, 2], [0, NONE, NONE, NONE]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "reaches the goal in 5 moves"),
        ({(1, 0): 0}, "reaches the goal in 7 moves"),
        ({(2, 0): 1}, "falls off the cliff after 1 move"),
        ({(1, 2): 2}, "falls off the cliff after 4 moves"),
        ({(1, 2): 3}, "goes round in circles"),
        ({(2, 0): 3}, "goes round in circles"),  # into the wall
        ({(1, 1): NONE}, "stops where no seed has a preference"),
    ],
)
def test_the_walk_in_words(changes, words) -> None:
    action = SHORTEST.copy()
    for cell, change in changes.items():
        action[cell] = change
    assert outcome(action) == words


def test_the_walk_starts_bottom_left() -> None:
    assert walk(SHORTEST)[:3] == [(2, 0), (1, 0), (1, 1)]


def test_a_policy_is_what_majority_returns() -> None:
    assert isinstance(majority(np.zeros((2, 4, 12, 4))), Policy)
