"""DoorKey's table over seeds, and the tests behind its marks, on known numbers."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import ttest_ind

from payback_lab.experiments.doorkey.measures import HIGH, LOW, MIDDLE, SETTINGS, TABLE
from payback_lab.experiments.doorkey.table import Reached, Row, table_rows
from payback_lab.methods import SCHEMES
from payback_lab.statistics import Estimate, improvement, interval_of_improvement, welch


def runs(setting: str, scheme: str, lengths, times=None, settled=None) -> list[dict]:
    """Make the runs of one cell, one per length."""
    times = [None] * len(lengths) if times is None else times
    settled = times if settled is None else settled
    return [
        {
            "setting": setting,
            "scheme": scheme,
            "seed": seed,
            "mean_length": length,
            "length_deviation": 10.0,
            "convergence_step": time,
            "settled_step": there,
            "sampled_length": length - 1,
            "greedy_length": length + 5,
            "truncated_share": 0.25,
            "converged": time is not None,
        }
        for seed, (length, time, there) in enumerate(zip(lengths, times, settled, strict=True))
    ]


def rows(told: list[dict]) -> dict[tuple[str, str], Row]:
    return {(row.setting, row.scheme): row for row in table_rows(told)}


def test_the_printed_table():
    assert [len(TABLE[setting]) for setting in SETTINGS] == [8, 8, 8]
    assert all(sorted(TABLE[k]) == sorted(SCHEMES) for k in SETTINGS)
    assert [s for s in SCHEMES if TABLE[MIDDLE][s].time is None] == ["none", "pbim-raw", "grm-1-raw"]
    # The bold T is the least, and the lowest N̄ is bold.
    for column in TABLE.values():
        assert [s for s in column if column[s].fastest] == [min(column, key=lambda s: column[s].time or np.inf)]
        assert column[min(column, key=lambda s: column[s].length)].tied


def test_no_runs_leave_the_papers_figures_alone():
    empty = table_rows([])
    assert [(row.setting, row.scheme) for row in empty] == [(k, s) for k in SETTINGS for s in SCHEMES]
    assert {row.length for row in empty} == {None}
    assert not any(row.fastest or row.tied for row in empty)
    assert empty[1].time == Reached(None, None, None, 0, 0)
    assert empty[1].paper.length == 37.3


def test_figures_of_a_cell():
    row = rows(runs(MIDDLE, "im", [250.0, 260.0, 240.0], [None, 3e6, 2e6], [None, 9e6, None]))[MIDDLE, "im"]
    assert (row.seeds, row.time) == (3, Reached(2.5e6, 2e6, 3e6, 2, 3))
    assert row.settled == Reached(9e6, 9e6, 9e6, 1, 3)
    assert row.length == Estimate(250, 240, 260)
    assert (row.sampled, row.greedy) == (Estimate(249, 239, 259), Estimate(255, 245, 265))
    assert (row.deviation, row.truncated) == (Estimate(10, 10, 10), Estimate(0.25, 0.25, 0.25))
    assert json.dumps(asdict(row), allow_nan=False)


def test_no_im_is_shown_at_both_settings_of_its_gamma():
    told = rows(runs("g0.995", "none", [600.0, 610.0]) + runs("g0.99", "none", [37.0, 38.0]))
    assert told[MIDDLE, "none"].length == told[HIGH, "none"].length == Estimate(605, 600, 610)
    assert told[LOW, "none"].seeds == 2
    assert (told[MIDDLE, "none"].paper.length, told[LOW, "none"].paper.time) == (634.8, 2.95)


def test_other_matchings_are_passed_over():
    told = table_rows(runs(MIDDLE, "even-10", [1.0, 2.0]) + runs(MIDDLE, "im", [50.0]))
    assert [row.scheme for row in told if row.seeds] == ["im"]


def test_marks():
    told = rows(
        runs(LOW, "im", [60.0, 61.0, 62.0], [3e6, 3e6, 3e6])
        + runs(LOW, "grm-10", [36.0, 37.0, 38.0], [2e6, 2e6, 9e6])
        + runs(LOW, "grm-1", [36.5, 37.5, 38.5], [1e6, None, None])
        + runs(LOW, "pbim", [36.4], [4e6])
    )
    # PBIM has the lowest mean, by a single seed: no test can be made of it.
    assert {told[LOW, s].tied for s in ("im", "grm-10", "grm-1", "pbim")} == {None}
    told = rows(
        runs(LOW, "im", [60.0, 61.0, 62.0], [3e6, 3e6, 3e6])
        + runs(LOW, "grm-10", [36.0, 37.0, 38.0], [2e6, 2e6, 9e6])
        + runs(LOW, "grm-1", [36.5, 37.5, 38.5], [1e6, None, None])
    )
    assert [told[LOW, s].tied for s in ("im", "grm-10", "grm-1")] == [False, True, True]
    # The fastest of a single seed is not the fastest of its cell.
    assert [s for s in SCHEMES if told[LOW, s].fastest] == ["grm-10"]
    assert told[LOW, "grm-10"].p is None
    assert told[LOW, "grm-1"].p == pytest.approx(
        ttest_ind([36.0, 37, 38], [36.5, 37.5, 38.5], equal_var=False, alternative="less").pvalue
    )


def test_probability_of_improvement_over_both_baselines():
    told = rows(
        runs("g0.99", "none", [30.0, 30.0], [1e6, 1e6])
        + runs(LOW, "im", [60.0, 62.0], [None, None])
        + runs(LOW, "grm-10", [37.0, 62.0], [None, 5e5])
    )[LOW, "grm-10"]
    assert told.better_than_im is not None
    assert told.better_than_im.value == (2 + 0.5) / 4
    assert told.better_than_none == Estimate(0, 0, 0)


def test_welch_is_scipys():
    rng = np.random.default_rng(0)
    for n, m, gap in ((2, 2, 1.0), (3, 5, -1.0), (5, 5, 3.0), (10, 3, 0.1)):
        one, other = rng.normal(size=n), gap + 3 * rng.normal(size=m)
        expected = ttest_ind(one, other, equal_var=False, alternative="less").pvalue
        assert welch(one, other) == pytest.approx(expected, abs=1e-12)
    same = np.full(3, 5.0)
    assert [welch(same, same), welch(same, same + 1), welch(same + 1, same)] == [0.5, 0.0, 1.0]
    assert np.isnan(welch(np.array([1.0]), same))


def test_improvement_is_bounded_over_seeds():
    one, other = np.array([1.0, 2.0, 3.0, 10.0]), np.array([4.0, 5.0, 6.0, 7.0])
    assert improvement(one, other) == 0.75
    low, high = interval_of_improvement(one, other)
    assert (low, high) == (0.25, 1.0)
