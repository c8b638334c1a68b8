"""Small charts: where dots, intervals and the paper's marks are placed, worked by hand."""

import numpy as np
import pytest

from payback_lab.claims.claim import Figure
from payback_lab.report.dots import Measured, panel, panel_of_group, panels_of_claim
from payback_lab.report.summary import Group, Summary


def group(*runs: dict) -> Group:
    return Group("fake", {}, {}, list(runs), "episode", np.zeros(0), {}, {})


def summary(*groups: Group) -> Summary:
    return Summary("fake", "Fake", (), {"mean_length": {"im": "60", "none": "N/A"}}, {}, {}, (), groups)


def test_the_axis_runs_from_the_least_mark_to_the_largest() -> None:
    found = panel("x", [Measured("im", 20, 10, 30, paper=50), Measured("none", 40, 40, 40)])
    im, none = found.rows
    assert (found.least, found.most, found.logarithmic) == ("10", "50", False)
    assert (im.low, im.at, im.paper) == (3.0, 26.5, 97.0)  # 3 % of room on both sides: 3 + 94 · (20 − 10) / 40
    assert im.width == 47.0
    assert (none.at, none.width, none.paper) == (73.5, 0.0, None)


def test_a_wide_range_is_logarithmic() -> None:
    found = panel("x", [Measured("im", 1, 1, 1), Measured("none", 10, 10, 10), Measured("pbim", 100, 100, 100)])
    assert found.logarithmic
    assert [row.at for row in found.rows] == [3.0, 50.0, 97.0]


@pytest.mark.parametrize("measured", [[], [Measured("im", None)], [Measured("im", 7, 7, 7)]])
def test_what_has_no_range_is_placed_all_the_same(measured: list[Measured]) -> None:
    assert [row.at for row in panel("x", measured).rows] in ([], [None], [50.0])


def test_a_group_is_set_beside_the_paper() -> None:
    own = group(
        *({"scheme": "im", "seed": s, "mean_length": v, "converged": v < 60} for s, v in enumerate((50, 70))),
        {"scheme": "none", "seed": 0, "mean_length": None, "converged": False},
    )
    im, none = panel_of_group(summary(own), own, "mean_length").rows
    assert (im.text, im.printed, none.text, none.printed, none.at) == ("60", "60", "in no seed", "N/A", None)
    assert im.at == im.paper
    assert none.paper is None
    counted = panel_of_group(summary(own), own, "converged")
    assert [row.text for row in counted.rows] == ["1 of 2", "0 of 1"]
    assert (counted.least, counted.most) == ("0", "1")


def test_a_claim_has_a_chart_for_each_measure_at_each_setting_on_one_axis() -> None:
    figures = [
        Figure("N̄", setting, "im", mean, mean - 1, mean + 1, 3, paper=60.0)
        for setting, mean in (("(low)", 40.0), ("(high)", 80.0))
    ]
    low, high, settled = panels_of_claim([*figures, Figure("settled", "(low)", "im", 10.0, 10.0, 10.0, 3, never=3)])
    assert [p.title for p in (low, high, settled)] == ["N̄ (low)", "N̄ (high)", "settled (low)"]
    assert (low.least, low.most) == (high.least, high.most) == ("39", "81")
    assert low.rows[0].paper == high.rows[0].paper
    assert (settled.rows[0].text, settled.rows[0].at) == ("never", None)
