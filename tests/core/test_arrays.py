"""The short cuts that look at few numbers and at many give the same answers."""

import math

import numpy as np
import pytest

from payback.core.arrays import FEW, all_finite, any_of, first_not_finite, size_of


@pytest.mark.parametrize("n", [1, 2, FEW, FEW + 1, 100])
def test_a_flag_anywhere_is_seen(n: int):
    assert not any_of(np.zeros(n, dtype=bool))
    assert any_of(np.arange(n) == n - 1)


@pytest.mark.parametrize("shape", [(2,), (FEW + 1,), (2, 2)])
def test_large_numbers_are_finite_and_others_are_not(shape: tuple[int, ...]):
    x = np.full(shape, 1e308)
    assert all_finite(x)
    for wrong in (np.nan, np.inf, -np.inf):
        x[-1] = wrong
        assert not all_finite(x)
        assert first_not_finite(np, x) == (len(x) - 1, *(0,) * (x.ndim - 1))
    assert not all_finite(np.array([np.inf, -np.inf]))


def test_the_size_bounds_every_number():
    assert size_of(np.array([3.0, -4.0])) == 5
    assert size_of(np.append(np.zeros(FEW), [3.0, -4.0])) == 4
    for few in (1, FEW + 1):
        assert math.isnan(size_of(np.array([1e308] * few + [np.nan])))
