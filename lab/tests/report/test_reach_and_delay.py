"""The figures of `reach` and `delay`: from whatever runs there are, with the number of seeds."""

from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.report import store
from payback_lab.report.charts.style import as_svg
from payback_lab.report.reach import reach_figure, speed_figure
from payback_lab.report.summary import Summary
from payback_lab.report.which_delay import NEVER, delay_figure, delay_points, felt_figure

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def summaries() -> dict[str, Summary]:
    return {summary.experiment: summary for summary in store.load(RESULTS)}


def of_seeds(summary: Summary, seeds: int) -> Summary:
    """Keep the first seeds of every cell."""
    groups = [replace(g, runs=[run for run in g.runs if run["seed"] < seeds]) for g in summary.groups]
    return replace(summary, groups=tuple(groups))


@pytest.mark.parametrize("draw", [reach_figure, speed_figure])
def test_the_picture_of_the_reach_says_how_many_seeds_there_are(summaries, draw):
    svg = as_svg(draw(of_seeds(summaries["reach"], 1)))
    assert "Seeds per point: 1 at 8" in svg
    assert 'fill="white"' in svg  # its own ground, so that it is read on dark pages


def test_the_three_methods_are_named_in_the_picture(summaries):
    svg = as_svg(reach_figure(summaries["reach"]))
    for name in ("no bonus", "raw bonus", "GRM (repaid bonus), D = 30"):
        assert name in svg


def test_a_cell_that_never_learns_is_drawn_above_all(summaries):
    points = delay_points(summaries["delay"])
    never = {point["median"] for point in points if not point["learns"]}
    assert never == {NEVER}
    assert all(point["median"] < 3.01 for point in points if point["learns"])
    assert "of 26 cells, seeds per cell: 1." in as_svg(delay_figure(of_seeds(summaries["delay"], 1)))
    assert "0 of 26 cells" in as_svg(delay_figure(replace(summaries["delay"], groups=())))


def test_the_effective_share_is_drawn_for_every_lambda():
    rows = felt_figure()["hconcat"][0]["data"]["values"]
    assert {row["λ"] for row in rows} == {"0.8", "0.95", "0.99", "1"}
    assert all(0 <= row["felt"] <= 1 for row in rows)
