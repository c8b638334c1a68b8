"""The interquartile mean and the bootstrap, against scipy and hand-worked values."""

import numpy as np
import pytest
from scipy import stats

from payback_lab.statistics import bootstrap_interval, iqm, stratified_interval


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 10, 13])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_iqm_is_scipys_trimmed_mean(n: int, axis: int | None) -> None:
    x = np.random.default_rng(n).normal(size=(n, n + 1))
    np.testing.assert_allclose(iqm(x, axis=axis), stats.trim_mean(x, 0.25, axis=axis), rtol=1e-12)


def test_iqm_by_hand() -> None:
    # Ten values: ⌊10/4⌋ = 2 go at each end; (3 + 4 + 5 + 6 + 7 + 8) / 6 = 5.5 whatever the outliers are.
    assert iqm(np.array([1e9, 3, 4, 5, 6, 7, 8, -1e9, 2, 9])) == pytest.approx(5.5)


@pytest.mark.parametrize("statistic", [np.mean, np.median, iqm])
def test_interval_agrees_with_scipy(statistic) -> None:
    x = np.random.default_rng(0).exponential(size=20)
    low, high = bootstrap_interval(x, statistic, resamples=20_000)
    theirs = stats.bootstrap(
        (x,), statistic, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    spread = theirs.high - theirs.low
    assert low == pytest.approx(theirs.low, abs=0.05 * spread)
    assert high == pytest.approx(theirs.high, abs=0.05 * spread)


def test_interval_of_two_seeds_by_hand() -> None:
    # Two seeds, 0 and 1: the mean of a resample is 0, ½ or 1 with chance ¼, ½, ¼.
    x = np.array([0.0, 1.0])
    assert bootstrap_interval(x, level=0.95) == (0.0, 1.0)
    assert bootstrap_interval(x, level=0.4) == (0.5, 0.5)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    x = np.random.default_rng(3).normal(size=(40, 500))  # 500 experiments of 40 seeds, true mean 0
    low, high = bootstrap_interval(x, resamples=500)
    assert 0.90 < np.mean((low < 0) & (high > 0)) < 0.98


def test_one_draw_serves_every_column() -> None:
    x = np.random.default_rng(4).normal(size=(10, 1))
    low, high = bootstrap_interval(np.concatenate([x, x, 2 * x], axis=1))
    assert low[0] == low[1]
    assert high[0] == high[1]
    np.testing.assert_allclose(2 * low[0], low[2])


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(5).normal(size=(10, 7))
    whole = bootstrap_interval(x)
    monkeypatch.setattr("payback_lab.statistics._CHUNK", 700)
    np.testing.assert_array_equal(bootstrap_interval(x), whole)


def test_strata_are_never_mixed() -> None:
    # Each stratum is constant: resampling within it cannot move the difference.
    low, high = stratified_interval([np.full(5, 1.0), np.full(7, 4.0)], lambda d: d[1].mean(1) - d[0].mean(1))
    assert (low, high) == (3.0, 3.0)


def test_strata_are_drawn_independently() -> None:
    x = np.random.default_rng(6).normal(size=30)
    low, high = stratified_interval([x, x], lambda d: d[1].mean(1) - d[0].mean(1))
    expected = 2 * 1.96 * np.sqrt(2) * x.std() / np.sqrt(30)  # 0 if both strata shared their draw
    assert high - low == pytest.approx(expected, rel=0.1)


def test_same_seed_same_interval() -> None:
    x = np.random.default_rng(7).normal(size=10)
    assert bootstrap_interval(x, seed=1) == bootstrap_interval(x, seed=1)
    assert bootstrap_interval(x, seed=1) != bootstrap_interval(x, seed=2)


@pytest.mark.parametrize("bad", [np.zeros((0, 3)), np.array(1.0)])
def test_no_seed_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        bootstrap_interval(bad)


def test_an_impossible_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1, got 95"):
        bootstrap_interval(np.arange(3.0), level=95)


def test_iqm_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        iqm(np.zeros((0, 2)), axis=0)
