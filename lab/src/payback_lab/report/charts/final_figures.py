"""A chart of one figure per run against the delay of the repayment."""

import altair as alt

from payback_lab.report.charts.style import Layered, scheme_colour

FINALS = {
    "greedy_return": "return without exploration",
    "greedy_length": "length without exploration (moves)",
    "sampled_length": "final length of an episode, acting as trained (steps)",
    "settled_step": "step from which episodes stay short (mean below 100)",
}
DELAYS = {"grm-1": 1, "grm-3": 3, "even-10": 5.5, "grm-10": 10, "geometric-0.9": 10, "grm-30": 30, "grm-100": 100}
"""Mean age at which a loan is repaid, for matchings with a fixed one, as long as the episode goes on."""


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
