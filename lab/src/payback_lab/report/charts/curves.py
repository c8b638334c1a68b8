"""Charts of learning curves: the mean over seeds with a band."""

import json
from collections.abc import Sequence

import altair as alt

from payback_lab.report.charts.style import Layered, in_words, scheme_colour, scheme_dash

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
