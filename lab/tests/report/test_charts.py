"""Every kind of chart is valid Vega-Lite; the page itself does not ask again."""

import pytest

from payback_lab.methods import SCHEMES
from payback_lab.policy import ground
from payback_lab.report.charts.cliff import grid_chart, moves, policy_chart
from payback_lab.report.charts.curves import curve_chart, delay_chart, picture_chart
from payback_lab.report.charts.style import OTHER, colour


@pytest.mark.parametrize(
    "chart",
    [
        curve_chart(SCHEMES, "return"),
        curve_chart(SCHEMES[:1], "return", legend=True),
        curve_chart(SCHEMES, "length", "step", logarithmic=True, reference=("optimum", 16.8)),
        curve_chart(SCHEMES, "length", "step", logarithmic=True, longest=1300),
        picture_chart(SCHEMES, "return", "episode"),
        picture_chart(SCHEMES[:3], "window_mean", "step"),
        delay_chart("length"),
        grid_chart(4, 12),
        policy_chart(12),
        policy_chart(50),
    ],
)
def test_charts_are_valid(chart) -> None:
    spec = chart.to_dict(validate=True)  # raises where Vega-Lite's schema does not allow it
    assert "vega-lite" in spec["$schema"]
    assert {"mark", "layer", "hconcat", "vconcat"} & spec.keys(), "nothing is drawn"


def test_every_scheme_has_a_colour_of_its_own() -> None:
    colours = [colour(scheme) for scheme in SCHEMES]
    assert len(set(colours)) == len(SCHEMES)
    assert OTHER not in colours


def test_the_grid_has_the_shortest_path_of_the_paper() -> None:
    cells = ground(4, 12)
    assert [cell["kind"] for cell in cells if cell["row"] == 3] == ["start", "goal", "cliff"]
    assert len(cells) == 3 * 12 + 3
    assert moves(4, 12, 1) == 13
