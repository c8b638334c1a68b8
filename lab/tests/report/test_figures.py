"""Every kind of chart is valid Vega-Lite; the page itself does not ask again."""

import pytest

from payback_lab.methods import SCHEMES
from payback_lab.report import figures, grids


@pytest.mark.parametrize(
    "chart",
    [
        figures.curve_chart(SCHEMES, "return"),
        figures.curve_chart(SCHEMES[:1], "return", legend=True),
        figures.curve_chart(SCHEMES, "length", "step", logarithmic=True, reference=("optimum", 16.8)),
        figures.final_chart(SCHEMES, "return"),
        figures.delay_chart("length"),
        grids.grid_chart(4, 12),
        grids.policy_chart(12),
        grids.policy_chart(50),
    ],
)
def test_charts_are_valid(chart) -> None:
    chart.to_dict(validate=True)


def test_every_scheme_has_a_colour_of_its_own() -> None:
    colours = [figures.colour(scheme) for scheme in SCHEMES]
    assert len(set(colours)) == len(SCHEMES)
    assert figures.OTHER not in colours


def test_the_grid_has_the_shortest_path_of_the_paper() -> None:
    cells = grids.ground(4, 12)
    assert [cell["kind"] for cell in cells if cell["row"] == 3] == ["start", "goal", "cliff"]
    assert len(cells) == 3 * 12 + 3
    assert grids.moves(4, 12, 1) == 13
