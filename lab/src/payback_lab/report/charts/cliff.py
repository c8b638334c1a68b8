"""Charts of the cliff: the grid with its two paths (`fig:cw`) and the final policies (`Q_values`)."""

from typing import Any

import altair as alt

from payback_lab.policy import ground
from payback_lab.report.charts.style import Layered

OPTIMAL, CAUTIOUS = "#c8102e", "#0b5cad"
NARROW = 20  # columns up to which maps stand two in a row
GROUND = {"floor": "#f3f1ea", "start": "#d9ead3", "goal": "#ffe29a", "cliff": "#4a4a48"}


def grid_chart(rows: int, columns: int) -> Layered:
    """Draw the cliff with its optimal path (red) and a cautious one (blue), as in `fig:cw`."""
    letters = [
        {"row": rows - 1, "column": 0, "text": "S"},
        {"row": rows - 1, "column": columns - 1, "text": "G"},
        {"row": rows - 1, "column": (columns - 1) / 2, "text": "the cliff"},
    ]
    ink = alt.condition("datum.text == 'the cliff'", alt.value("#ffffff"), alt.value("#222222"))
    names = _at(alt.Data(values=letters)).mark_text(fontSize=13, fontWeight=600).encode(text="text:N", color=ink)
    paths = [_path(_corners(rows, columns, height), ink) for height, ink in ((rows - 1, CAUTIOUS), (1, OPTIMAL))]
    return alt.layer(_boxes(alt.Data(values=ground(rows, columns))).encode(color=_ground()), names, *paths)


def moves(rows: int, columns: int, height: int) -> int:
    """Count the moves of a path that keeps `height` rows above the cliff's.

    >>> moves(4, 12, 1), moves(4, 12, 3), moves(4, 50, 1)
    (13, 17, 51)
    """
    return columns - 1 + 2 * height


def policy_chart(columns: int, cells: str = "cells") -> Layered:
    """Draw a policy: colour by Q (brighter is higher), an arrow for the most common action, red on the walk.

    `cells` names the data, made by `tables.policy_cells`.
    """
    data = alt.NamedData(cells)
    tip = [
        alt.Tooltip("action:N", title="most common action"),
        alt.Tooltip("share:Q", title="share of seeds", format=".0%"),
        alt.Tooltip("value:Q", title="mean Q of that action", format=".2f"),
    ]
    shade = alt.Color("value:Q", scale=alt.Scale(scheme="viridis"), legend=None)
    values = _boxes(data).transform_filter("isValid(datum.value)").encode(color=shade, tooltip=tip)
    grounds = _boxes(data).transform_filter("!isValid(datum.value)").encode(color=_ground())
    arrow = _at(data).transform_filter("isValid(datum.angle)").mark_point(
        shape="arrow", filled=True, strokeWidth=0.6, opacity=1, size=560 if columns <= NARROW else 190
    )  # fmt: skip
    arrows = arrow.encode(
        angle=alt.Angle("angle:Q", scale=None),
        fill=alt.condition("datum.walked", alt.value("#e8112d"), alt.value("#ffffff")),
        stroke=alt.condition("datum.walked", alt.value("#ffffff"), alt.value("#222222")),
        tooltip=tip,
    )
    return alt.layer(values, grounds, arrows).resolve_scale(color="independent")


def _corners(rows: int, columns: int, height: int) -> list[dict[str, Any]]:
    """List the corners of a path; the two paths keep a little apart where they share a column."""
    shift = 0.12 if height == 1 else -0.12
    bottom, top = rows - 1 - 0.3, rows - 1 - height
    points = [(bottom, shift), (top, shift), (top, columns - 1 - shift), (bottom, columns - 1 - shift)]
    return [{"row": row, "column": column, "order": i} for i, (row, column) in enumerate(points)]


def _path(corners: list[dict[str, Any]], ink: str) -> Layered:
    line = _at(alt.Data(values=corners)).mark_line(stroke=ink, strokeWidth=3, strokeJoin="round")
    tip = _at(alt.Data(values=corners[-1:])).mark_point(
        shape="triangle-down", filled=True, color=ink, size=140, opacity=1
    )
    return alt.layer(line.encode(order="order:Q"), tip)


def _boxes(data: Any) -> alt.Chart:
    """Draw cells: one at (row, column) reaches half a unit to each side, or half its `span`."""
    half = "(isValid(datum.span) ? datum.span : 1) / 2"
    return (
        alt.Chart(data)
        .transform_calculate(
            left=f"datum.column - {half}",
            right=f"datum.column + {half}",
            top="datum.row - 0.5",
            foot="datum.row + 0.5",
        )
        .mark_rect(stroke="#ffffff", strokeWidth=1)
        .encode(x=_scale("left", alt.X), x2="right:Q", y=_scale("top", alt.Y, reverse=True), y2="foot:Q")
    )


def _at(data: Any) -> alt.Chart:
    return alt.Chart(data).encode(x=_scale("column", alt.X), y=_scale("row", alt.Y, reverse=True))


def _scale(field: str, channel: Any, reverse: bool = False) -> Any:
    return channel(f"{field}:Q", axis=None, scale=alt.Scale(nice=False, zero=False, reverse=reverse))


def _ground() -> alt.Color:
    return alt.Color("kind:N", scale=alt.Scale(domain=list(GROUND), range=list(GROUND.values())), legend=None)
