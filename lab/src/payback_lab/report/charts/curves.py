"""Charts over training and over delays: learning curves, the small pictures of them, final figures by delay."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.report.charts.style import Layered, in_words, scheme_colour, scheme_dash
from payback_lab.report.summary import Group

LABELS = {
    "return": "return of an episode",
    "length": "length of an episode (moves)",
    "window_mean": "length of an episode (steps)",
}
LENGTHS = (20, 50, 100, 200, 500, 1000, 2000)
"""Ticks of a logarithmic axis of lengths."""
LONGEST = 700.0
"""The upper end of such an axis, unless a curve goes beyond: the 8×8 grid's limit is 640 steps."""
LOGARITHMIC = ("window_mean",)
"""Drawn on a logarithmic axis, because most of the progress lies in the lowest tenth of the range."""
POINTS = 80
"""Points of a small picture; more would not be visible."""
FINALS = {
    "greedy_return": "return without exploration",
    "greedy_length": "length without exploration (moves)",
    "sampled_length": "final length of an episode, acting as trained (steps)",
    "settled_step": "solved from (step): mean length stays below 100",
}
"""What the figures of a trained agent are called on an axis."""
DELAYS = {"grm-1": 1, "grm-3": 3, "even-10": 5.5, "grm-10": 10, "geometric-0.9": 10, "grm-30": 30, "grm-100": 100}
"""Mean age at which a loan is repaid, for matchings with a fixed one, as long as the episode goes on."""


def curve_chart(
    schemes: Sequence[str],
    label: str,
    axis: str = "episode",
    legend: bool = False,
    logarithmic: bool = False,
    longest: float = LONGEST,
    reference: tuple[str, float] | None = None,
) -> Layered:
    """Draw mean curves with a band, over the data named `rows`, with a reference line such as the optimum.

    The data named `beside`, which may be empty, are longer runs to compare with: thin pale lines.

    Two parameters are set from the page: `hidden` (schemes switched off) and `band` ("sd": mean ± standard
    deviation, as in the paper; "ci": 95 % bootstrap interval of the mean; "off").
    """
    hidden = alt.param(name="hidden", value=[])
    band = alt.param(name="band", value="sd")
    rows = alt.Chart(alt.NamedData("rows")).transform_filter("indexof(hidden, datum.scheme) < 0")
    ticks = alt.Axis(grid=False, tickCount=6, format="~s" if axis == "step" else ",d")
    x = alt.X("x:Q", title=axis, axis=ticks)
    scale = alt.Scale(type="log", domain=[12, longest], clamp=True, nice=False) if logarithmic else alt.Scale()
    lengths = alt.Axis(values=[n for n in LENGTHS if n <= longest], format="d") if logarithmic else alt.Axis()
    y = alt.Y("mean:Q", title=label, scale=scale, axis=lengths)
    ink = scheme_colour(schemes, legend)
    area = rows.transform_calculate(
        below="band == 'sd' ? datum.mean - datum.sd : band == 'ci' ? datum.low : datum.mean",
        above="band == 'sd' ? datum.mean + datum.sd : band == 'ci' ? datum.high : datum.mean",
    ).mark_area(opacity=0.08 if logarithmic else 0.14)
    bands = area.encode(x=x, y=alt.Y("below:Q", title=label, scale=scale, axis=lengths), y2="above:Q", color=ink)
    lines = rows.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=ink, strokeDash=scheme_dash(schemes))
    longer = alt.Chart(alt.NamedData("beside")).transform_filter("indexof(hidden, datum.scheme) < 0")
    pale = longer.mark_line(strokeWidth=1, opacity=0.45).encode(x=x, y=y, color=ink)
    near = alt.selection_point(name="near", on="pointermove", nearest=True, empty=False, clear="pointerout")
    dots = (
        rows.mark_point(filled=True, size=70)
        .encode(
            x=x, y=y, color=ink, opacity=alt.condition(near, alt.value(1), alt.value(0)), tooltip=_curve_tooltip(axis)
        )
        .add_params(near)
    )
    # Tooltips are for the page; a figure with a legend is static.
    return alt.layer(bands, *_reference(reference), pale, lines, *([] if legend else [dots])).add_params(hidden, band)


def _reference(line: tuple[str, float] | None) -> list[alt.Chart]:
    """Draw a horizontal line with its name, nothing for None."""
    if line is None:
        return []
    at = alt.Chart(alt.Data(values=[{"level": line[1], "name": f"{line[0]} {line[1]:.1f}"}]))
    rule = at.mark_rule(strokeDash=[2, 2], color="#555555").encode(y=alt.Y("level:Q"))
    name = at.mark_text(align="left", dx=4, dy=8, x=0, color="#555555", fontSize=11)
    return [rule, name.encode(y=alt.Y("level:Q"), text="name:N")]


def _curve_tooltip(axis: str) -> alt.TooltipValue:
    """Write the tooltip of a curve as an expression.

    An ordinary tooltip would show "undefined" for every scheme, because Vega-Lite wraps the datum of `nearest` points
    and does not unwrap it for text fields.
    """
    row = "(datum.datum || datum)"
    names = {"mean": "mean", "sd": "standard deviation", "low": "95 % from", "high": "95 % to", "iqm": "IQM"}
    parts = [f"title: {in_words(f'{row}.scheme')}", f"{axis}: format({row}.x, ',.0f')"]
    parts += [f"{json.dumps(title)}: format({row}[{json.dumps(name)}], '.1f')" for name, title in names.items()]
    return alt.TooltipValue(alt.ExprRef(expr="{" + ", ".join(parts) + "}"))  # pyright: ignore[reportArgumentType]


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


def delay_chart(label: str) -> Layered:
    """Draw one figure against the mean delay of repayment over the data named `rows`: seeds, mean and interval."""
    rows = alt.Chart(alt.NamedData("rows"))
    ages = sorted(DELAYS.values())
    # Room for the longest delay's name on the right.
    span = alt.Scale(type="log", domain=[0.8 * ages[0], 3 * ages[-1]], nice=False)
    ticks = alt.Axis(values=[1, 3, 10, 30, 100], format="d", grid=False)
    x = alt.X("delay:Q", title="mean delay of the repayment (steps)", scale=span, axis=ticks)
    ink = scheme_colour(list(DELAYS))
    y = alt.Scale(zero=False, padding=12)
    seeds = rows.mark_point(shape="stroke", size=90, opacity=0.5, strokeWidth=2)
    spans = rows.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q", scale=y), y2="high:Q", color=ink)
    means = rows.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=alt.Y("mean:Q"), color=ink, tooltip=_final_tooltip()
    )
    # Once each, not once for every seed.
    each = rows.transform_aggregate(seeds="count()", groupby=["scheme", "title", "delay", "mean"])
    names = each.mark_text(align="left", dx=8, dy=-6, fontSize=11).encode(
        x=x, y=alt.Y("mean:Q"), text="title:N", color=ink
    )
    values = alt.Y("value:Q", title=label, scale=y, axis=alt.Axis(format="~s", tickCount=6))
    return alt.layer(seeds.encode(x=x, y=values, color=ink), spans, means, names)


def _final_tooltip() -> list[alt.Tooltip]:
    names = {"mean": "mean", "low": "95 % from", "high": "95 % to", "iqm": "IQM"}
    return [alt.Tooltip("scheme:N"), *(alt.Tooltip(f"{k}:Q", title=v, format=".2f") for k, v in names.items())]
