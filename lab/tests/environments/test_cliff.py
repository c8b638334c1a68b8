"""The cliff: Gymnasium's rules where the paper keeps them, the paper's where it departs, and the shortest paths."""

from itertools import pairwise

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.environments.cliff import (
    ACTIONS,
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Cliff,
    Moves,
    cautious_path,
    moves,
    path_return,
    shortest_path,
    step,
)

SHORT, LONG = Cliff(), Cliff(columns=50, limit=100)


def test_lock_step_with_gymnasium():
    peer = gymnasium.make("CliffWalking-v1")
    rng, table = np.random.default_rng(0), moves(SHORT)
    falls = arrivals = 0
    cell, _ = peer.reset(seed=0)
    assert cell == SHORT.start
    for _ in range(40_000):
        # Mostly rightwards: a blind walk would hardly ever arrive.
        action = int(rng.choice(ACTIONS, p=[0.3, 0.4, 0.25, 0.05]))
        reached, reward, terminated, _ = step(table, 10**9, cell, 0, action)
        theirs, their_reward, their_end, _, _ = peer.step(action)
        if their_reward == -100:  # they go back to the start, the paper's walker is done
            assert (reward, terminated, theirs) == (-100, True, SHORT.start)
            assert SHORT.start < reached < SHORT.goal
            falls += 1
        elif their_end:  # they pay −1 for arriving
            assert (reward, terminated, reached) == (100, True, theirs)
            theirs, _ = peer.reset()
            arrivals += 1
        else:
            assert (reached, reward, terminated) == (theirs, their_reward, False)
        cell = theirs
    assert falls > 100
    assert arrivals > 10


@pytest.mark.parametrize("cliff", [SHORT, LONG])
def test_every_move_of_the_grid(cliff):
    table = moves(cliff)
    for cell in range(cliff.cells):
        row, column = divmod(cell, cliff.columns)
        for action, (down, right) in {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}.items():
            to_row = min(max(row + down, 0), 3)
            to_column = min(max(column + right, 0), cliff.columns - 1)
            bottom, last = to_row == 3, to_column == cliff.columns - 1
            reward = 100 if bottom and last else -100 if bottom and to_column > 0 else -1
            assert table.cell[cell, action] == to_row * cliff.columns + to_column
            assert table.reward[cell, action] == reward
            assert table.terminal[cell, action] == (reward != -1)


@pytest.mark.parametrize(("cliff", "length", "total"), [(SHORT, 13, 88.0), (LONG, 51, 50.0)])
def test_shortest_path(cliff, length, total):
    path = shortest_path(cliff)
    assert (len(path) - 1, path_return(cliff, path)) == (length, total)
    assert _walk(cliff, path) == total
    assert _walk(cliff, cautious_path(cliff)) == total - 4


def test_time_limit_ends_an_episode_that_has_not_ended():
    table = moves(SHORT)
    ends = [step(table, SHORT.limit, SHORT.start, time, LEFT)[2:] for time in range(SHORT.limit)]
    assert ends == [(False, False)] * (SHORT.limit - 1) + [(False, True)]
    assert step(table, SHORT.limit, SHORT.start, SHORT.limit - 1, RIGHT)[2:] == (True, False)


def test_same_under_jit():
    table = moves(SHORT)
    on_device = Moves(*map(jnp.asarray, table))
    cells, actions = map(np.ravel, np.meshgrid(np.arange(SHORT.cells), np.arange(ACTIONS)))
    times = cells % 51
    ours = jax.jit(lambda *x: step(on_device, SHORT.limit, *x))(cells, times, actions)
    for got, expected in zip(ours, step(table, SHORT.limit, cells, times, actions), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_refuses_a_grid_without_a_cliff():
    with pytest.raises(ValueError, match="at least 2 rows, 2 columns and 1 move"):
        moves(Cliff(columns=1))


def _walk(cliff: Cliff, path: list[int]) -> float:
    """Follow a path by moves that exist; return what they pay."""
    table, total = moves(cliff), 0.0
    assert path[0] == cliff.start
    for here, there in pairwise(path):
        (action,) = np.flatnonzero(table.cell[here] == there)
        total += float(table.reward[here, action])
        assert table.terminal[here, action] == (there == cliff.goal)
    return total
