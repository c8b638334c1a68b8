"""The single figures of a DoorKey curve, against curves whose answers are known."""

import numpy as np
import pytest

from payback_lab.experiments.doorkey.figures import moving_mean, single_figures, stays
from payback_lab.learners.ppo.train import Record

UPDATE = 2048


def curve(length, **others) -> dict[str, np.ndarray]:
    """Make up a run's columns with these mean lengths; four episodes per update, none truncated, unless told."""
    length = np.asarray(length, np.float32)
    points = len(length)
    columns = {name: np.zeros(points, np.float32) for name in Record._fields}
    columns["steps"] = UPDATE * np.arange(1, points + 1, dtype=np.int32)
    columns["episodes"] = np.full(points, 4, np.int32)
    columns["truncated"] = np.zeros(points, np.int32)
    columns["window_mean"] = columns["length_mean"] = length
    columns["window_std"] = length / 4
    return columns | {name: np.asarray(values) for name, values in others.items()}


def falling(points: int, learnt: int) -> np.ndarray:
    """Give 600 steps per episode until update `learnt`, then 50, and in the last 1,000 updates 40 and 42 in turn."""
    length = np.full(points, 600.0)
    length[learnt:] = 50.0
    length[-1000:] = np.where(np.arange(1000) % 2, 42.0, 40.0)
    return length


def test_the_papers_figures():
    """N̄ and σ are means over the last 1,000 points; T is where the length first falls below N̄."""
    one = single_figures(curve(falling(3000, learnt=500)))
    assert one["mean_length"] == 41.0
    assert one["length_deviation"] == pytest.approx(41 / 4)
    assert one["converged"] is True
    assert one["convergence_step"] == 2001 * UPDATE
    # The mean of any 100 of them is N̄ itself.
    assert one["smooth_convergence_step"] is None
    assert one["truncated_share"] == 0.0


def test_the_figures_know_the_last_1000_points_alone():
    length = falling(3000, learnt=500)
    length[-1001], length[-1000] = 10_000.0, 1040.0
    one = single_figures(curve(length))
    assert one["mean_length"] == 42.0


def test_one_lucky_point_is_enough_for_the_papers_t_but_not_for_the_smooth_one():
    length = falling(3000, learnt=500)
    length[100] = 30.0
    length[-500:] -= 1
    one = single_figures(curve(length))
    assert one["mean_length"] == 40.5
    assert one["convergence_step"] == 101 * UPDATE
    # Smooth, it falls below where x of 100 points lie 1 lower: 41 − x/100 < 40.5.
    assert one["smooth_convergence_step"] == (2500 + 51) * UPDATE


def test_one_stray_truncation_in_the_last_1000_points_is_no_convergence():
    for place, converged in ((-1000, False), (-1, False), (-1001, True)):
        truncated = np.zeros(3000, np.int32)
        truncated[place] = 1
        one = single_figures(curve(falling(3000, learnt=500), truncated=truncated))
        assert one["converged"] is converged
        assert one["convergence_step"] == (2001 * UPDATE if converged else None)
        assert (one["smooth_convergence_step"] is None) or converged
        assert one["truncated_share"] == (0.0 if converged else 1 / 4000)
        # What does not hang on a single episode stays as it was.
        assert one["mean_length"] == 41.0
        assert one["settled_step"] == 591 * UPDATE


def test_settled_is_where_the_smooth_length_falls_below_100_for_good():
    length = falling(3000, learnt=500)
    # With x of 100 points at 50 and the others at 600, the mean is below 100 from x = 91 on.
    assert single_figures(curve(length))["settled_step"] == (500 + 91) * UPDATE
    forgotten = length.copy()
    forgotten[1500:1600] = 600.0
    assert single_figures(curve(forgotten))["settled_step"] == (1600 + 91) * UPDATE
    forgotten[-100:] = 600.0
    assert single_figures(curve(forgotten))["settled_step"] is None
    assert single_figures(curve(np.full(3000, 100.0)))["settled_step"] is None
    assert single_figures(curve(np.full(3000, 99.0)))["settled_step"] == UPDATE


def test_updates_before_the_first_episode_count_for_nothing():
    length = falling(3000, learnt=500)
    length[:7] = np.nan
    assert single_figures(curve(length)) == single_figures(curve(falling(3000, learnt=500)))
    early = single_figures(curve([np.nan] * 7 + [50.0] * 9))
    assert (early["mean_length"], early["settled_step"], early["convergence_step"]) == (50.0, 8 * UPDATE, None)
    # Half of them are the last points, the first of which are still without.
    late = single_figures(curve([np.nan] * 6 + [60.0, 40.0]))
    assert (late["mean_length"], late["convergence_step"], late["settled_step"]) == (50.0, 8 * UPDATE, 7 * UPDATE)


@pytest.mark.parametrize(
    ("length", "mean", "step"), [([70.0], 70, None), ([90.0, 70.0], 70, None), ([9, 5, 4, 2], 3, 4)]
)
def test_of_a_short_curve_the_last_half_counts(length, mean, step):
    one = single_figures(curve(length))
    assert (one["mean_length"], one["length_deviation"]) == (mean, mean / 4)
    assert one["convergence_step"] == (None if step is None else step * UPDATE)
    assert one["settled_step"] == UPDATE


def test_without_an_ended_episode_no_share_is_truncated():
    """Of long episodes some updates see no end; the lengths are then those of the last 16 that ended before."""
    one = single_figures(curve(np.full(10, 640.0), episodes=np.arange(10) < 5, truncated=np.arange(10) < 5))
    assert one["truncated_share"] is None
    assert single_figures(curve(np.full(10, 640.0), truncated=np.full(10, 3)))["truncated_share"] == 0.75


def test_what_was_paid_and_repaid_is_that_of_the_whole_run():
    paid = {
        "bonus": np.array([0.25, 0.75], np.float32),
        "shaped": np.array([0.5, -1.5], np.float32),
        "repaid": np.array([-4.0, -50.0], np.float32),
        "residual": np.array([3e-7, 1e-7], np.float32),
    }
    one = single_figures(curve([600.0, 600.0], **paid))
    assert (one["mean_bonus"], one["mean_shaped"], one["largest_repayment"]) == (0.5, -0.5, -50.0)
    assert one["law_residual"] == pytest.approx(3e-7)


def test_the_moving_mean_is_that_of_each_window():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(50) < 0.3, np.nan, rng.random(50))
    values[:3] = np.nan
    with np.errstate(invalid="ignore"):
        windows = [values[max(0, i - 6) : i + 1] for i in range(50)]
        expected = [np.nanmean(w) if (~np.isnan(w)).any() else np.nan for w in windows]
    np.testing.assert_allclose(moving_mean(values, points=7), expected)
    np.testing.assert_allclose(moving_mean(values, points=70)[-1], np.nanmean(values))
    assert stays(np.array([False, True, False])).tolist() == [False] * 3


def test_without_any_ended_episode_nothing_was_reached():
    columns = {name: np.zeros(4, np.float32) for name in Record._fields}
    columns["steps"] = 2048 * np.arange(1, 5)
    for name in ("window_mean", "window_std", "length_mean", "length_std", "reward"):
        columns[name] = np.full(4, np.nan, np.float32)
    one = single_figures(columns)
    assert one["converged"] is False
    for name in ("mean_length", "length_deviation", "convergence_step", "settled_step", "truncated_share"):
        assert one[name] is None
    assert all(value is None or np.isfinite(value) for value in one.values())
