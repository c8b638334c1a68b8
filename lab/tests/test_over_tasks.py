"""Statistics over several tasks, against brute force and closed forms."""

from itertools import product

import numpy as np
import pytest

from payback_lab.over_tasks import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from payback_lab.statistics import interval_of_improvement, iqm

RNG = np.random.default_rng(0)


def test_the_interquartile_mean_is_the_usual_one_where_tasks_have_as_many_seeds() -> None:
    tasks = [RNG.normal(size=3) for _ in range(4)]
    found = interquartile_mean(tasks)
    assert found.value == pytest.approx(float(iqm(np.stack(tasks))))
    assert found.low < found.value < found.high


def test_a_task_with_more_seeds_weighs_no_more() -> None:
    few, many = np.array([0.0, 4.0, 8.0]), np.array([1.0, 2.0, 3.0, 5.0, 6.0])
    # Brute force: as many copies of every seed that both tasks have 15.
    copies = np.concatenate([np.repeat(few, 5), np.repeat(many, 3)])
    fine = np.sort(np.repeat(copies, 4))  # 120 values, a quarter of them is whole
    assert interquartile_mean([few, many]).value == pytest.approx(fine[30:90].mean())
    assert interquartile_mean([few, many]).value != pytest.approx(float(iqm(np.concatenate([few, many]))))


def test_the_profile_against_counting() -> None:
    tasks = [np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.5]), np.array([0.0])]
    thresholds = np.array([-0.1, 0.0, 0.3, 0.5, 0.7, 1.0])
    counted = [np.mean([np.mean([score > at for score in task]) for task in tasks]) for at in thresholds]
    value, low, high = performance_profile(tasks, thresholds)
    np.testing.assert_allclose(value, counted)
    assert (low <= value).all()
    assert (value <= high).all()
    assert (value[0], value[-1]) == (1, 0)


def test_the_probability_of_improvement_against_counting() -> None:
    ones = [np.round(RNG.normal(size=3), 1), np.round(RNG.normal(size=5), 1)]
    others = [np.round(RNG.normal(size=4), 1), np.array([ones[1][0], -9.0])]
    pairs = [
        np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(one, other)])
        for one, other in zip(ones, others, strict=True)
    ]
    assert probability_of_improvement(ones, others).value == pytest.approx(np.mean(pairs))
    turned = probability_of_improvement(others, ones)
    assert turned.value == pytest.approx(1 - np.mean(pairs))


def test_its_interval_is_that_of_drawing_the_seeds_themselves() -> None:
    one, other = RNG.normal(size=6), RNG.normal(loc=0.3, size=5)
    found = probability_of_improvement([one], [other])
    low, high = interval_of_improvement(-one, -other)  # there lower is better; the draws are the same
    assert (found.low, found.high) == pytest.approx((low, high))


def test_its_interval_over_two_tasks_against_all_draws() -> None:
    """Two seeds each of two tasks: 4 × 4 × 4 × 4 equally likely draws, of which the interval takes the quantiles."""
    ones, others = [np.array([1.0, 3.0]), np.array([5.0, 0.0])], [np.array([2.0, 0.5]), np.array([1.0, 4.0])]
    draws = list(product((0, 1), repeat=2))
    every = [
        np.mean(
            [
                np.mean([[float(a > b) for b in others[m][list(second)]] for a in ones[m][list(first)]])
                for m, (first, second) in enumerate(((i, j), (k, n)))
            ]
        )
        for i, j, k, n in product(draws, repeat=4)
    ]
    found = probability_of_improvement(ones, others)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(every, [0.025, 0.975])), abs=0.07)
    assert found.value == pytest.approx(np.mean(every))


def test_always_better_and_exactly_alike() -> None:
    better = probability_of_improvement([np.array([2.0, 3.0, 4.0])] * 2, [np.array([0.0, 1.0])] * 2)
    assert (better.value, better.low, better.high) == (1, 1, 1)
    alike = probability_of_improvement([np.ones(3)], [np.ones(3)])
    assert (alike.value, alike.low, alike.high) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="compared task by task"):
        probability_of_improvement([np.ones(3)], [])
