"""The small picture of learning curves on the first screen: mean lines of a few schemes."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.report.charts.curves import LABELS, LENGTHS, LOGARITHMIC
from payback_lab.report.charts.style import Layered, scheme_colour, scheme_dash
from payback_lab.report.summary import Group

POINTS = 80
"""More would not be seen at this size."""


def picture_chart(schemes: Sequence[str], column: str, axis: str) -> Layered:
    """Draw mean curves over the data named `rows`; the page names the schemes above."""
    rows = alt.Chart(alt.NamedData("rows"))
    x = alt.X("x:Q", title=None, axis=alt.Axis(grid=False, tickCount=4, format="~s" if axis == "step" else ",d"))
    logarithmic = column in LOGARITHMIC
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=False)
    ticks = alt.Axis(values=list(LENGTHS), format="d", title=None) if logarithmic else alt.Axis(tickCount=4, title=None)
    lines = rows.mark_line(strokeWidth=2, clip=True).encode(
        x=x,
        y=alt.Y("mean:Q", scale=scale, axis=ticks),
        color=scheme_colour(schemes),
        strokeDash=scheme_dash(schemes),
    )
    return alt.layer(lines)


def picture_rows(group: Group, schemes: Sequence[str], column: str) -> list[dict[str, Any]]:
    """List the mean curves of the schemes, thinned."""
    every = max(1, len(group.x) // POINTS)
    return [
        {"scheme": scheme, "x": round(float(x)), "mean": float(f"{mean:.4g}")}
        for scheme in schemes
        for x, mean in zip(group.x[::every], group.curves[scheme][column].mean(axis=0)[::every], strict=True)
        if np.isfinite(mean)
    ]


def first_column(group: Group) -> str | None:
    """Return the curve that says most: the first there is."""
    there = [column for column in LABELS if group.curves and all(column in own for own in group.curves.values())]
    return there[0] if there else None
