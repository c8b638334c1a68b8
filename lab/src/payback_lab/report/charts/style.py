"""The style of all charts: one colour per scheme, one font, schemes named in words; and figures that stand alone."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from payback_lab.methods import TITLES, is_raw

Layered = alt.LayerChart | alt.FacetChart

# Okabe and Ito's palette for colour-blind readers, with a darker yellow for white paper. Raw schemes are also dashed,
# because colour alone does not distinguish them in print.
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
    "pies": "#9a9a00",
    "phased": "#009e73",
    "adops": "#56b4e9",
    "adopes": "#7a5195",
    "eipo": "#8b1a1a",
    "hepo": "#6b6b6b",
    "grm-adv-300-0.99": "#0072b2",
    "grm-adv-300-0.99-back": "#56b4e9",
    "two-critics-0.99": "#b5489a",
    "two-critics-0.99-back": "#d48ac3",
}
OTHER = "#777777"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif"

WORDS: dict[str, Any] = {"anchor": "start", "fontSize": 16, "subtitleFontSize": 13, "offset": 12}
"""The heading of a figure that stands alone."""


def colour(scheme: str) -> str:
    """Return a scheme's colour, grey for an unknown one."""
    return COLOURS.get(scheme, OTHER)


def finished(chart: alt.TopLevelMixin, **size: Any) -> dict[str, Any]:
    """Apply the common style to a chart and return it as a Vega-Lite specification."""
    # Not validated, because that takes most of a report's time; the tests validate every kind of chart.
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


def figure_of(chart: Any) -> dict[str, Any]:
    """Apply the common style in the sizes of a figure that stands alone."""
    spec = finished(chart)
    del spec["autosize"]
    spec["config"]["axis"] |= {"labelFontSize": 13, "titleFontSize": 13}
    spec["config"]["legend"] |= {"labelFontSize": 14, "symbolSize": 120}
    return spec


def as_svg(spec: dict[str, Any]) -> str:
    """Draw a figure on a white ground, so that it is readable on light and on dark pages."""
    # Wide at the sides, because a browser's fonts may be wider than those the layout is made with.
    padding = {"left": 18, "right": 18, "top": 14, "bottom": 14}
    return vl_convert.vegalite_to_svg({**spec, "background": "white", "padding": padding, "autosize": "pad"})


def scheme_colour(schemes: Sequence[str], legend: bool = False) -> alt.Color:
    """Encode a scheme as its colour, with a legend in words if asked for."""
    look = {"symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 2.5, "symbolSize": 300}
    shown = alt.Legend(title=None, labelExpr=in_words("datum.label"), **look) if legend else None
    return alt.Color("scheme:N", scale=scheme_scale(schemes), legend=shown)


def scheme_scale(schemes: Sequence[str]) -> alt.Scale:
    """Return the scale from schemes to their colours."""
    return alt.Scale(domain=list(schemes), range=[colour(scheme) for scheme in schemes])


def scheme_dash(schemes: Sequence[str]) -> alt.StrokeDash:
    """Dash the lines of raw schemes."""
    dashes = [[5, 3] if is_raw(scheme) else [1, 0] for scheme in schemes]
    return alt.StrokeDash("scheme:N", scale=alt.Scale(domain=list(schemes), range=dashes), legend=None)


def in_words(datum: str) -> str:
    """Return a Vega expression that names a scheme in words; it holds no text that comes from files."""
    words = " : ".join(f"{datum} == {json.dumps(s)} ? {json.dumps(title)}" for s, title in TITLES.items())
    return f"{words} : {datum}"
