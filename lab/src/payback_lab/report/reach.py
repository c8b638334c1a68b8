"""The tables and figures of docs/reach.md: how far each method gets as the DoorKey grid grows."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.doorkey.table import Reached
from payback_lab.experiments.reach import METHODS, Row, rows, setting
from payback_lab.report import markdown
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.doorkey import animation
from payback_lab.report.charts.style import WORDS, Layered, figure_of
from payback_lab.report.doorkey_tables import format_mean, format_reached
from payback_lab.report.summary import Summary
from payback_lab.statistics import Estimate

HEADER = ("grid", "method", "seeds", "solved", "solved from", "length relative to the shortest path", "reaches it")
NAMES = {"none": "no bonus", "im": "raw bonus", "grm-30": "GRM (repaid bonus), D = 30"}
INK = {"none": "#4d4d4d", "im": "#d55e00", "grm-30": "#0072b2"}
SHAPES = {"none": "square", "im": "triangle-up", "grm-30": "circle"}
APART = {"none": -0.13, "im": 0.0, "grm-30": 0.13}
"""How far the methods stand beside the size, so that no interval hides another."""
WIDTH, HEIGHT = 380, 280
SIZES = [8, 10, 11, 12, 13, 14, 16]
_WORDS: dict[str, Any] = {
    **WORDS,
    "fontWeight": 600,
    "color": "#222222",
    "subtitleColor": "#44443f",
}


def reach_rows(summary: Summary) -> list[Row]:
    """Return what was measured of every method and size."""
    return rows([(group.setting or "", group.runs) for group in summary.groups if group.ablation is None])


def table(summary: Summary) -> str:
    """Write what was measured of every method on every grid."""
    return markdown.rows(HEADER, map(_line, reach_rows(summary)))


def moving(summary: Summary) -> str:
    """Draw one episode of each method's agent on the 11×11 grid, on one layout."""
    group = next(g for g in summary.groups if g.ablation is None and g.setting == setting(11))
    named = {"none": "no bonus", "im": f"raw bonus, α = {group.config['alpha']:g}", "grm-30": "GRM, D = 30"}
    return animation({name: group.films[scheme] for scheme, name in named.items()}, 11)


def _line(row: Row) -> tuple[str, ...]:
    return (
        f"{row.size}×{row.size}",
        name_of(row.scheme),
        f"{row.seeds}",
        format_mean(row.solved, ".0%"),
        format_reached(row.settled),
        format_mean(row.over_optimum, unit=" ×"),
        {True: "yes", False: "no", None: "too few seeds"}[row.reaches],
    )


def solved_chart(found: Sequence[Row], legend: bool = False) -> Layered:
    """Draw the share of episodes that the trained agents solve against the size."""
    return _panel(_points(found, "solved"), "episodes solved by the trained agent", alt.Axis(format="%"), legend=legend)


def length_chart(found: Sequence[Row], legend: bool = False) -> Layered:
    """Draw the final length, relative to the shortest path, against the size."""
    scale = alt.Scale(type="log", domain=[1, 100], nice=False)
    ticks = alt.Axis(values=[1, 2, 3, 5, 10, 20, 50, 100], format="d", labelExpr="datum.label + '×'")
    points = _points(found, "over_optimum")
    return _panel(points, "length relative to the shortest path", ticks, scale, legend)


def speed_chart(found: Sequence[Row], legend: bool = False) -> Layered:
    """Draw the step from which the task is solved against the size: median and range of the seeds that get there."""
    points = [point for row in found if (point := _reached(row, row.settled))]
    scale = alt.Scale(type="log", domain=[2e5, 2.2e7], nice=False)
    ticks = alt.Axis(values=[2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7], format="~s")
    return _panel(points, "solved from (step)", ticks, scale, legend)


def reach_figure(summary: Summary) -> dict[str, Any]:
    """Draw share solved and final length against the size, as a Vega-Lite specification that holds its data."""
    found = [row for row in reach_rows(summary) if row.scheme in METHODS]
    solved, length = solved_chart(found, legend=True), length_chart(found)
    heading = alt.TitleParams(
        "How far each method reaches: MiniGrid DoorKey, larger and larger",
        subtitle=f"Mean and 95 % bootstrap interval over seeds. {_seeds(found)}",
        **_WORDS,
    )
    return figure_of(alt.hconcat(solved, length, spacing=36).properties(title=heading))


def speed_figure(summary: Summary) -> dict[str, Any]:
    """Draw the step from which the task is solved against the size: median and range of the seeds that get there."""
    found = [row for row in reach_rows(summary) if row.scheme in METHODS]
    subtitle = ["Median and range of the seeds that get there.", _seeds(found)]
    heading = alt.TitleParams("When each grid is solved", subtitle=subtitle, **_WORDS)
    return figure_of(speed_chart(found, legend=True).properties(title=heading))


def _seeds(found: Sequence[Row]) -> str:
    """Say how many seeds each point has."""
    sizes: dict[str, list[str]] = {}
    for size in sorted({row.size for row in found}):
        many = least_to_most([row.seeds for row in found if row.size == size])
        sizes.setdefault(many, []).append(str(size))
    many = "; ".join(f"{count} at {', '.join(those)}" for count, those in sizes.items())
    return f"Seeds per point: {many}."


def _points(found: Sequence[Row], measure: str) -> list[dict[str, Any]]:
    points = []
    for row in found:
        value: Estimate | None = getattr(row, measure)
        if value is not None:
            points.append(_at(row) | {"mean": value.value, "low": value.low, "high": value.high})
    return points


def _reached(row: Row, value: Reached) -> dict[str, Any] | None:
    if value.median is None:
        return None
    return _at(row) | {"mean": value.median, "low": value.least, "high": value.most}


def _at(row: Row) -> dict[str, Any]:
    name = NAMES[row.scheme]
    return {"size": row.size, "place": row.size + APART[row.scheme], "scheme": name, "seeds": row.seeds}


def _panel(
    points: list[dict[str, Any]], label: str, axis: alt.Axis, scale: alt.Scale | None = None, legend: bool = False
) -> Layered:
    """Draw one measure of the methods against the size: a line through the means, and their intervals."""
    shown = alt.Legend(title=None, orient="bottom", direction="horizontal", columns=3) if legend else None
    order = list(NAMES.values())
    data = alt.Chart(alt.Data(values=points))
    x = alt.X(
        "place:Q",
        title="side of the grid",
        scale=alt.Scale(domain=[7.5, 16.5], nice=False),
        axis=alt.Axis(values=SIZES, format="d", grid=False),
    )
    extent = scale or alt.Scale(domain=[0, 1])
    y = alt.Y("mean:Q", title=label, scale=extent, axis=axis)
    ink = alt.Color("scheme:N", scale=alt.Scale(domain=order, range=list(INK.values())), legend=shown)
    shape = alt.Shape("scheme:N", scale=alt.Scale(domain=order, range=list(SHAPES.values())), legend=shown)
    tip = [alt.Tooltip(n, format=".3~g") for n in ("mean:Q", "low:Q", "high:Q")]
    tip = [alt.Tooltip("scheme:N"), alt.Tooltip("size:Q"), alt.Tooltip("seeds:Q"), *tip]
    line = data.mark_line(strokeWidth=2).encode(x=x, y=y, color=ink)
    spans = data.mark_rule(strokeWidth=2.5).encode(x=x, y=alt.Y("low:Q", scale=extent), y2="high:Q", color=ink)
    dots = data.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, color=ink, shape=shape, tooltip=tip)
    return alt.layer(line, spans, dots).properties(width=WIDTH, height=HEIGHT)
