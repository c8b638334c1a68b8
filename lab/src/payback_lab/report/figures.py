"""Charts of learning curves and final returns, in Altair; one colour per scheme everywhere."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from payback_lab.methods import TITLES, in_order, title

Layered = alt.LayerChart | alt.FacetChart

# Okabe and Ito's colours for all kinds of colour vision, the yellow darkened for white paper; raw schemes are
# dashed too, so that nothing hangs on colour alone.
COLOURS = {
    "none": "#000000",
    "im": "#d55e00",
    "pbim": "#0072b2",
    "pbim-raw": "#56b4e9",
    "grm-1": "#009e73",
    "grm-1-raw": "#9a9a00",
    "grm-10": "#b5489a",
    "grm-10-raw": "#e69f00",
    "grm-3": "#56b4e9",
    "grm-30": "#e69f00",
    "grm-100": "#d55e00",
    "even-10": "#9a9a00",
    "geometric-0.9": "#7a5195",
    "when": "#000000",
}
OTHER = "#777777"
LABELS = {
    "return": "return of an episode",
    "length": "length of an episode (moves)",
    "window_mean": "length of an episode (steps)",
}
LOGARITHMIC = ("window_mean",)
"""Curves between a few steps and hundreds; all of a scheme's progress would lie in the lowest tenth."""
FINALS = {
    "greedy_return": "return without exploration",
    "greedy_length": "length without exploration (moves)",
    "sampled_length": "final length of an episode, acting as trained (steps)",
    "settled_step": "step from which episodes stay short (mean below 100)",
}
DELAYS = {"grm-1": 1, "grm-3": 3, "even-10": 5.5, "grm-10": 10, "geometric-0.9": 10, "grm-30": 30, "grm-100": 100}
"""Mean age at which a loan is repaid, for matchings with a fixed one, as long as the episode goes on."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif"


def titled(scheme: str) -> str:
    """Return a scheme's name in words."""
    try:
        return title(scheme)
    except ValueError:
        return scheme


def colour(scheme: str) -> str:
    """Return a scheme's colour, a grey for one we do not know."""
    return COLOURS.get(scheme, OTHER)


def curve_chart(
    schemes: Sequence[str],
    label: str,
    axis: str = "episode",
    legend: bool = False,
    logarithmic: bool = False,
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
    scale = alt.Scale(type="log", domain=[12, 700], clamp=True, nice=False) if logarithmic else alt.Scale()
    lengths = alt.Axis(values=[20, 50, 100, 200, 500], format="d") if logarithmic else alt.Axis()
    y = alt.Y("mean:Q", title=label, scale=scale, axis=lengths)
    ink = _ink(schemes, legend)
    area = rows.transform_calculate(
        below="band == 'sd' ? datum.mean - datum.sd : band == 'ci' ? datum.low : datum.mean",
        above="band == 'sd' ? datum.mean + datum.sd : band == 'ci' ? datum.high : datum.mean",
    ).mark_area(opacity=0.08 if logarithmic else 0.14)
    bands = area.encode(x=x, y=alt.Y("below:Q", title=label, scale=scale, axis=lengths), y2="above:Q", color=ink)
    lines = rows.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=ink, strokeDash=_dash(schemes))
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
    # What one points at is for the page; a picture with a legend is static.
    return alt.layer(bands, *_reference(reference), pale, lines, *([] if legend else [dots])).add_params(hidden, band)


def _reference(line: tuple[str, float] | None) -> list[alt.Chart]:
    """Draw a level line with its name, none if there is none."""
    if line is None:
        return []
    at = alt.Chart(alt.Data(values=[{"level": line[1], "name": f"{line[0]} {line[1]:.1f}"}]))
    rule = at.mark_rule(strokeDash=[2, 2], color="#555555").encode(y=alt.Y("level:Q"))
    name = at.mark_text(align="left", dx=4, dy=8, x=0, color="#555555", fontSize=11)
    return [rule, name.encode(y=alt.Y("level:Q"), text="name:N")]


def final_chart(schemes: Sequence[str], label: str) -> Layered:
    """Draw one figure by scheme over the data named `rows`: every seed a tick, the mean a dot with its interval."""
    hidden = alt.param(name="hidden", value=[])
    rows = alt.Chart(alt.NamedData("rows")).transform_filter("indexof(hidden, datum.scheme) < 0")
    axis = alt.Axis(labelExpr=_in_words("datum.value"), labelLimit=220, ticks=False, domain=False, grid=True)
    y = alt.Y("scheme:N", title=None, sort=list(schemes), axis=axis)
    ink = _ink(schemes, legend=False)
    scale = alt.Scale(zero=False, nice=True, padding=12)
    seeds = rows.mark_tick(thickness=2, height=9, opacity=0.6).encode(
        x=alt.X("value:Q", title=label, scale=scale, axis=alt.Axis(tickMinStep=1)),
        y=y,
        yOffset=alt.YOffset("seed:O"),
        color=ink,
        tooltip=[alt.Tooltip("scheme:N"), alt.Tooltip("seed:Q"), alt.Tooltip("value:Q", format=".4~f")],
    )
    spans = rows.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=ink)
    means = rows.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("mean:Q"), y=y, color=ink, tooltip=_final_tooltip()
    )
    return alt.layer(seeds, spans, means).add_params(hidden)


def delay_chart(label: str) -> Layered:
    """Draw one figure against the mean delay of repayment over the data named `rows`: seeds, mean and interval."""
    rows = alt.Chart(alt.NamedData("rows"))
    ages = sorted(DELAYS.values())
    # Room for the longest delay's name on the right.
    span = alt.Scale(type="log", domain=[0.8 * ages[0], 3 * ages[-1]], nice=False)
    ticks = alt.Axis(values=[1, 3, 10, 30, 100], format="d", grid=False)
    x = alt.X("delay:Q", title="mean delay of the repayment (steps)", scale=span, axis=ticks)
    ink = alt.Color("scheme:N", scale=alt.Scale(domain=list(DELAYS), range=[colour(s) for s in DELAYS]), legend=None)
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


def finished(chart: alt.TopLevelMixin, **size: Any) -> dict[str, Any]:
    """Give a chart the common look and return it as a Vega-Lite specification."""
    # Altair's validation costs most of a report's time; the tests validate every kind of chart.
    spec = chart.to_dict(validate=False)
    spec |= size | {"background": "transparent", "autosize": {"type": "fit-x", "contains": "padding"}}
    spec["config"] = {
        "font": FONT,
        "view": {"stroke": None},
        "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#e7e7e3",
                 "domainColor": "#b8b8b2", "tickColor": "#b8b8b2", "labelColor": "#44443f", "titleColor": "#44443f"},
        "legend": {"labelFontSize": 12, "titleFontSize": 12, "labelLimit": 240},
    }  # fmt: skip
    return spec


def _ink(schemes: Sequence[str], legend: bool) -> alt.Color:
    look = {"symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 2.5, "symbolSize": 300}
    shown = alt.Legend(title=None, labelExpr=_in_words("datum.label"), **look) if legend else None
    return alt.Color(
        "scheme:N", scale=alt.Scale(domain=list(schemes), range=[colour(s) for s in schemes]), legend=shown
    )


def _dash(schemes: Sequence[str]) -> alt.StrokeDash:
    dashes = [[5, 3] if scheme.endswith("-raw") else [1, 0] for scheme in schemes]
    return alt.StrokeDash("scheme:N", scale=alt.Scale(domain=list(schemes), range=dashes), legend=None)


def _in_words(datum: str) -> str:
    """Write a Vega expression that turns a scheme id into words; ids from files never become part of it."""
    words = " : ".join(f"{datum} == {json.dumps(s)} ? {json.dumps(title)}" for s, title in TITLES.items())
    return f"{words} : {datum}"


def _curve_tooltip(axis: str) -> alt.TooltipValue:
    """Write the tooltip of a curve as an expression.

    Vega-Lite puts `nearest` points into an overlay whose datum wraps ours, and forgets that for text fields: an
    ordinary tooltip would call every scheme "undefined".
    """
    row = "(datum.datum || datum)"
    names = {"mean": "mean", "sd": "standard deviation", "low": "95 % from", "high": "95 % to", "iqm": "IQM"}
    parts = [f"title: {_in_words(f'{row}.scheme')}", f"{axis}: format({row}.x, ',.0f')"]
    parts += [f"{json.dumps(title)}: format({row}[{json.dumps(name)}], '.1f')" for name, title in names.items()]
    return alt.TooltipValue(alt.ExprRef(expr="{" + ", ".join(parts) + "}"))  # pyright: ignore[reportArgumentType]


def _final_tooltip() -> list[alt.Tooltip]:
    names = {"mean": "mean", "low": "95 % from", "high": "95 % to", "iqm": "IQM"}
    return [alt.Tooltip("scheme:N"), *(alt.Tooltip(f"{k}:Q", title=v, format=".2f") for k, v in names.items())]


def known_first(schemes: Sequence[str]) -> list[str]:
    """Order schemes as the paper does, unknown ones last."""
    return in_order(schemes)
