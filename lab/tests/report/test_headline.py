"""The first screen's table and curves are those of the committed runs."""

from pathlib import Path

import altair as alt
import numpy as np
import pytest

from payback_lab.report.docs import Committed
from payback_lab.report.headline import FARTHER, IN_SB3, KEEPS, METHODS, headline_figure, sb3_figure, table

pytestmark = pytest.mark.slow

OF = Committed(Path(__file__).parents[2] / "results")


def panels() -> list[dict]:
    """Return the two grids of the first picture."""
    spec = headline_figure(OF.arena, OF.summaries["arena"], OF.summaries["depth"])
    alt.HConcatChart.from_dict(spec, validate=True)
    return spec["hconcat"]


def layers(spec: dict) -> list[list[dict]]:
    """Return the rows of every layer, in the order in which they are drawn."""
    return [layer["data"]["values"] for layer in spec["layer"]]


def test_every_method_has_a_row_and_the_untrained_never_solves() -> None:
    lines = table(OF.arena, OF.summaries["depth"]).splitlines()[2:]
    assert [line.split(" | ")[0].strip("|* ") for line in lines] == [
        METHODS.get(method) or FARTHER[method] for method in KEEPS
    ]
    assert "| never |" in lines[0]
    assert "| never |" not in lines[4]


def test_the_curves_are_at_each_methods_own_coefficient() -> None:
    means = next(rows for rows in layers(panels()[0]) if "seed" not in rows[0] and "step" in rows[0])
    for method in METHODS:
        group = next(
            g for g in OF.summaries["arena"].groups if g.setting == f"DoorKey-11x11_a{OF.arena.alpha(method):g}_g0.995"
        )
        own = [row["value"] for row in means if row["method"] == method]
        expected = np.exp(np.log(group.curves[method]["window_mean"]).mean(0))
        np.testing.assert_allclose(own, expected, atol=1e-4)


def test_the_larger_grid_shows_the_runs_with_counts() -> None:
    means = next(rows for rows in layers(panels()[1]) if "seed" not in rows[0] and "step" in rows[0])
    deep = [g for g in OF.summaries["depth"].groups if g.setting and g.setting.startswith("DoorKey-16x16")]
    at = [(method, g.setting) for g in deep if not g.setting.endswith("views") for method in g.curves]
    assert len({method for method, _ in at}) == len(at), "a method at two α: table and curves would mix them"
    for group in OF.summaries["depth"].groups:
        if "DoorKey-16x16" in group.name and not group.name.endswith("views"):
            for method in FARTHER.keys() & group.curves.keys():
                own = [row["value"] for row in means if row["method"] == method]
                expected = np.exp(np.log(group.curves[method]["window_mean"]).mean(0))
                np.testing.assert_allclose(own, expected, atol=1e-3)


def test_names_stand_in_the_order_of_the_curves_ends() -> None:
    for spec in (*panels(), sb3_figure(OF.hosts, OF.summaries["hosts"])):
        ends = next(rows for rows in layers(spec) if "down" in rows[0])
        assert [row["down"] for row in ends] == sorted(row["down"] for row in ends)
        assert [row["value"] for row in ends] == sorted((row["value"] for row in ends), reverse=True)


def test_the_curves_of_stable_baselines3_leave_out_the_seeds_that_tune() -> None:
    spec = sb3_figure(OF.hosts, OF.summaries["hosts"])
    rows = [row for part in layers(spec) for row in part]
    assert all(0 <= row["value"] <= 1 for row in rows)
    for method in IN_SB3:
        drawn = {row["seed"] for row in rows if "seed" in row and row["method"] == method}
        assert len(drawn) == len(OF.hosts.cell("DoorKey-8x8", "episodic-count", method))
