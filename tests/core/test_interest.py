"""The interest of a repayment, and the smallest delay that is felt so much."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import payback

from .cases import quiet
from .one_loan import GAMMA, OURS, THEIRS, own_geometric

pytestmark = quiet


def after(delay: int) -> payback.Match:
    return payback.match_after(0.995, delay)


def test_the_interest_of_the_tables():
    for delay, factor in {1: 1.01, 3: 1.02, 10: 1.05, 30: 1.16, 100: 1.65}.items():
        assert round(payback.interest(after(delay)), 2) == factor
    assert round(payback.interest(after(640))) == 25


def test_interest():
    for bounded, last in [("at once", 0), ("after 7", 7), ("evenly 5", 5), ("ages", 4), ("geometric 0", 1), ("grm", 4)]:
        assert payback.interest(OURS[bounded]) == pytest.approx(GAMMA**-last)
    for name in ("at end", "when", "geometric"):
        assert payback.interest(OURS[name]) == math.inf
    assert payback.interest(payback.match_at_end(1.0)) == payback.interest(payback.match_geometric(1.0, 0.5)) == 1
    assert payback.interest(payback.match_from_ages(GAMMA, [1 - 1e-12, 1e-12])) == pytest.approx(GAMMA**-2)
    assert payback.interest(payback.match_after(0.5, 2000)) == math.inf  # more than a float holds


def test_interest_of_ones_own():
    for name, last in {"own halves": 2, "own after 7": 7, "own in a chain": 3}.items():
        assert payback.interest(THEIRS[name]) == pytest.approx(GAMMA**-last)
    assert payback.interest(own_geometric(0.6)) == math.inf
    assert payback.interest(own_geometric(0.999)) == math.inf
    assert payback.interest(own_geometric(0.0, np.float32)) == pytest.approx(1 / GAMMA)
    assert payback.interest(own_geometric(0.6, np.float32)) == math.inf


def test_the_smallest_delay_that_is_felt_so_much():
    for lam in (0.0, 0.5, 0.8, 0.95, 0.99):
        for felt_at_least in (0.0, 0.05, 0.4, 0.8, 0.99):
            delay = payback.delay_for(0.9999, lam, felt_at_least)
            assert payback.felt_share(payback.match_after(0.9999, delay), lam) >= felt_at_least - 1e-12
            if delay:
                assert payback.felt_share(payback.match_after(0.9999, delay - 1), lam) < felt_at_least
    assert payback.delay_for(0.995, 0.95) == 32
    for delay in range(1, 60):  # a share that a delay has exactly asks for that delay, however it is rounded
        assert payback.delay_for(1.0, 0.95, payback.felt_share(after(delay), 0.95)) == delay


def test_the_bound_on_interest_is_met_exactly():
    assert payback.delay_for(0.9, 0.5, felt=1 - 0.5**7, interest=0.9**-7) == 7
    assert payback.delay_for(0.9, 0.99, felt=0.99, interest=math.inf) == 459
    with pytest.raises(ValueError, match=r"needs a delay of 7, whose .* above 2.0\d*; a delay of 6"):
        payback.delay_for(0.9, 0.5, felt=1 - 0.5**7, interest=0.9**-6.9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: payback.delay_for(0.99, 0.99), "needs a delay of 161, whose interest at gamma = 0.99 is 5.04"),
        (lambda: payback.delay_for(0.99, 1.0), "lower lam"),
        (lambda: payback.delay_for(0.99, 0.9, felt=1.0), "lower felt"),
        (lambda: payback.delay_for(0.5, 0.9999, felt=0.9), "is inf, above 2; a delay of 1 stays"),
        (lambda: payback.delay_for(1.5, 0.9), r"gamma must lie in \(0, 1\], got 1.5"),
        (lambda: payback.delay_for(0.99, -0.1), r"lam must lie in \[0, 1\], got -0.1"),
        (lambda: payback.delay_for(0.99, 0.9, felt=2), r"felt must lie in \[0, 1\], got 2"),
        (lambda: payback.delay_for(0.99, 0.9, interest=0.5), "interest must be at least 1"),
        (lambda: payback.delay_for(0.99, 0.9, interest=math.nan), "interest must be at least 1"),
        (lambda: payback.felt_share(after(3), math.nan), r"lam must lie in \[0, 1\], got nan"),
        (lambda: payback.felt_share(after(3), True), r"lam must lie in \[0, 1\], got True"),
        (lambda: payback.felt_share(after(3), 0.9, rollout=0), "rollout must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(after(3), 0.9, n_steps=1.5), "n_steps must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(after(3), 0.9, length=-2), "length must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(3, 0.9), "3 is not a transform such as"),  # type: ignore[arg-type]
        (lambda: payback.interest(payback.scale(1)), "repays nothing"),
    ],
)
def test_bad_input_gets_one_sentence(call: Callable[[], Any], sentence: str):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()
