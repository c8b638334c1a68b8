"""The first screen's table and curves are those of the committed runs."""

from pathlib import Path

import altair as alt
import numpy as np
import pytest

from payback_lab.report.docs import Committed
from payback_lab.report.headline import LONGEST, METHODS, arena_figure, sb3_figure, table

pytestmark = pytest.mark.slow

OF = Committed(Path(__file__).parents[2] / "results")


def layers(spec: dict) -> list[list[dict]]:
    """Return the rows of every layer, in the order in which they are drawn."""
    alt.Chart.from_dict(spec, validate=True)
    return [layer["data"]["values"] for layer in spec["layer"]]


def test_every_method_has_a_row_and_the_untrained_never_solves() -> None:
    lines = table(OF.arena).splitlines()[2:]
    assert [line.split(" | ")[0].strip("|* ") for line in lines] == list(METHODS.values())
    assert "| never |" in lines[0]
    assert "| never |" not in lines[-1]


def test_the_curves_are_at_each_methods_own_coefficient() -> None:
    means = next(
        rows
        for rows in layers(arena_figure(OF.arena, OF.summaries["arena"]))
        if "seed" not in rows[0] and "step" in rows[0]
    )
    for method in METHODS:
        group = next(
            g for g in OF.summaries["arena"].groups if g.setting == f"DoorKey-11x11_a{OF.arena.alpha(method):g}_g0.995"
        )
        own = [row["value"] for row in means if row["method"] == method]
        expected = np.exp(np.log(group.curves[method]["window_mean"]).mean(0))
        np.testing.assert_allclose(own, expected, atol=1e-4)


def test_names_stand_in_the_order_of_the_curves_ends() -> None:
    for spec in (arena_figure(OF.arena, OF.summaries["arena"]), sb3_figure(OF.summaries["curiosity"])):
        ends = next(rows for rows in layers(spec) if "down" in rows[0])
        assert [row["down"] for row in ends] == sorted(row["down"] for row in ends)
        assert [row["value"] for row in ends] == sorted((row["value"] for row in ends), reverse=True)


def test_the_curves_of_stable_baselines3_are_without_the_bonus() -> None:
    rows = [row for part in layers(sb3_figure(OF.summaries["curiosity"])) for row in part]
    assert max(row["step"] for row in rows) <= LONGEST
    assert all(0 <= row["value"] <= 1 for row in rows)
