"""The bonus α/n against a count kept by hand."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.environments.doorkey import rules as doorkey
from payback_lab.intrinsic.counts import first_visit, visit


def test_bonus_equals_a_dictionary_of_visits():
    cells = np.random.default_rng(0).integers(6, size=(40, 3))
    counts = first_visit(jnp.asarray(cells[0]), 6)
    seen = [Counter([cell]) for cell in cells[0]]
    for row in cells[1:]:
        counts, bonus = visit(counts, jnp.asarray(row), alpha=0.02)
        for counter, cell in zip(seen, row, strict=True):
            counter[cell] += 1
        expected = [0.02 / counter[cell] for counter, cell in zip(seen, row, strict=True)]
        np.testing.assert_allclose(bonus, expected, rtol=1e-6)
    assert (counts.sum(axis=1) == len(cells)).all()


@pytest.mark.parametrize("size", [5, 8])
def test_what_is_counted_is_place_and_key_not_direction_nor_door(size):
    """Each (x, y, carrying) has its own number, whatever the agent looks at and the door does."""
    task = doorkey.make_doorkey(size)
    inner = np.arange(1, size - 1)
    x, y, carrying, direction, door = (a.ravel() for a in np.meshgrid(inner, inner, [0, 1], range(4), range(3)))
    key_x = np.where(carrying, -1, 1)
    state = doorkey.State(np.full_like(x, 2), np.full_like(x, 1), door, x, y, direction, key_x, key_x, 0 * x)
    index = np.asarray(doorkey.cell_index(task, jax.tree.map(jnp.asarray, state)))
    names = {}
    for number, *what in zip(index, x, y, carrying, strict=True):
        assert names.setdefault(int(number), tuple(what)) == tuple(what)
    assert sorted(names) == list(range(task.cells))
    assert len(set(names.values())) == task.cells


def test_staying_at_the_start_pays_a_half_first():
    """The place where the episode began has been visited once when it is paid for the first time."""
    counts = first_visit(jnp.array([4]), 8)
    _, bonus = visit(counts, jnp.array([4]), alpha=1.0)
    assert bonus.tolist() == [0.5]
