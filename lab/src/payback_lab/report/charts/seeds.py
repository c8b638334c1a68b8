"""A panel with one row per method: every seed, the mean and its interval."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.report.charts.style import Layered, scheme_colour
from payback_lab.statistics import mean_estimate


def seed_rows(scheme: str, name: str, values: np.ndarray, solved: np.ndarray) -> list[dict[str, Any]]:
    """Return a row per seed of a method: its value and whether it solved the task, the mean and its interval.

    >>> seed_rows("im", "raw bonus", np.array([2.0]), np.array([False]))[0]["mark"]
    'not solved'
    """
    over = mean_estimate(values)
    shared = {"scheme": scheme, "name": name, "mean": over.value, "low": over.low, "high": over.high}
    marks = ("solved" if done else "not solved" for done in solved.tolist())
    return [shared | {"value": value, "mark": mark} for value, mark in zip(values.tolist(), marks, strict=True)]


def seeds_panel(
    rows: Sequence[Mapping[str, Any]],
    schemes: Sequence[str],
    names: Sequence[str],
    label: str,
    *,
    labelled: bool = True,
    size: tuple[int, int] = (300, 230),
    **scale: Any,
) -> Layered:
    """Draw the rows of `seed_rows`, method by method in the order of `names`; `scale` is for the values."""
    table = alt.Chart(alt.Data(values=list(rows)))
    ink = scheme_colour(list(schemes))
    # Room for the longest name in whatever font the reader's browser has.
    room = 200 if labelled else 0
    shown = alt.Axis(labels=labelled, labelLimit=220, minExtent=room, ticks=False, domain=False, grid=True)
    y = alt.Y("name:N", title=None, sort=list(names), scale=alt.Scale(domain=list(names)), axis=shown)
    x = alt.X(
        "value:Q",
        title=label,
        axis=alt.Axis(format="~s", tickCount=4),
        scale=alt.Scale(zero=True, nice=False, padding=14, **scale),
    )
    shape = alt.Shape(
        "mark:N", scale=alt.Scale(domain=["solved", "not solved"], range=["circle", "cross"]), legend=None
    )
    seeds = table.mark_point(size=60, opacity=0.5, yOffset=9).encode(x=x, y=y, color=ink, shape=shape)
    spans = table.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=ink)
    means = table.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("mean:Q"), y=y, color=ink)
    return alt.layer(seeds, spans, means).properties(width=size[0], height=size[1])
