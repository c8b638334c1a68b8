"""The charts of the arena over all tasks: the one picture, interquartile mean, profile, probability of improvement."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.measures import over_fewest, shares
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.methods import title
from payback_lab.over_tasks import Estimate, performance_profile
from payback_lab.report.charts.labels import placed_labels
from payback_lab.report.charts.reach import figure_of
from payback_lab.report.charts.style import WORDS, Layered, scheme_colour, scheme_scale

WIDTH = 270
"""Narrow, so that a phone shows the words at almost their own size."""
PADDING = 9
"""Pixels between a method's name and the axis, because a dot at 0 would hide the name's last letter."""
ACROSS, TALL, NAMED = 220, 300, 0.74
"""Width and height of the one picture, and how much of its width is added for the names."""
OURS = "grm-30"
"""The method that the others are held against."""
NAMES = {"none": "no bonus", "im": "raw bonus"}
"""What the charts call methods for a reader who is new to all of them."""
SHORT = {"phased": "phased-in", "pies": "PIES"}
"""Shorter names for the one picture, which must fit beside its points on a phone."""


def name_of(method: str) -> str:
    """Return a method's name in the charts.

    >>> name_of("im"), name_of("eipo")
    ('raw bonus', 'EIPO')
    """
    return NAMES.get(method, title(method))


def found_points(results: StudyResults) -> list[dict[str, Any]]:
    """Return for every method how often the goal is found and how many times the fewest steps episodes take.

    Over the compared tasks: the mean share, and the geometric mean of the lengths, because tasks differ in their limit.
    """
    tasks = results.compared
    found = []
    for method in METHODS if tasks else ():
        runs = [results.runs(task, method) for task in tasks]
        share = float(np.mean([shares(own).mean() for own in runs]))
        lengths = [np.log(over_fewest(task, own).mean()) for task, own in zip(tasks, runs, strict=True)]
        times = float(np.exp(np.mean(lengths)))
        found.append({"scheme": method, "name": SHORT.get(method, name_of(method)), "found": share, "times": times})
    return found


def found_chart(points: Sequence[Mapping[str, Any]], letters: int = 15) -> Layered:
    """Draw the one picture: how often the goal is found against how long the way there is, each point named.

    `letters` is the size of the names.
    """
    longest = max(1.5, 1.15 * max(point["times"] for point in points))
    labelled = placed_labels(points, TALL, longest)
    x = alt.X(
        "found:Q",
        title="episodes that reach the goal →",
        # Right of 100 % stand the names.
        scale=alt.Scale(domain=[0, 1 + NAMED], nice=False),
        axis=alt.Axis(values=[0, 0.5, 1], format="%", domain=False, titleAnchor="start"),
    )
    scale = alt.Scale(type="log", domain=[1, longest], reverse=True, nice=False)
    ticks = [1, 1.5, 2, 3, 5, 10, 20, 30, 50]
    axis = alt.Axis(values=[tick for tick in ticks if tick <= longest], format="~g", labelExpr="datum.label + '×'")
    y = alt.Y("times:Q", title="← steps, over the fewest possible", scale=scale, axis=axis)
    ink = scheme_colour(METHODS)
    base = alt.Chart(alt.Data(values=labelled))
    lines = base.mark_rule(color="#b8b8b2", strokeWidth=1).encode(
        x=x, y=y, x2=alt.X2("label_x:Q"), y2=alt.Y2("label_y:Q")
    )
    dots = base.mark_point(filled=True, size=120, opacity=1).encode(x=x, y=y, color=ink)
    names = base.mark_text(align="left", baseline="middle", dx=5, fontSize=letters).encode(
        x=alt.X("label_x:Q"), y=alt.Y("label_y:Q", scale=scale), text="name:N", color=alt.value("#33332f")
    )
    return alt.layer(lines, dots, names).properties(width=ACROSS * (1 + NAMED), height=TALL)


def found_figure(results: StudyResults) -> dict[str, Any]:
    """Draw that picture with what it is of."""
    subtitle = [_over(results), "Top right is best: found always, in the fewest steps."]
    heading = alt.TitleParams("Who finds the goal, and by how short a way", subtitle=subtitle, **WORDS)
    return figure_of(found_chart(found_points(results)).properties(title=heading))


def overall_figure(results: StudyResults) -> dict[str, Any]:
    """Draw the interquartile mean of every method's score with its interval."""
    heading = alt.TitleParams("Interquartile mean of the score", subtitle=_over(results), **WORDS)
    return figure_of(estimates_chart(results.overall, "score: 1 is always solved in the fewest steps", heading))


def improvement_figure(results: StudyResults) -> dict[str, Any]:
    """Draw the probability that GRM with D = 30 scores higher than each other method."""
    found = {method: results.improvement(OURS, method) for method in METHODS if method != OURS}
    found = dict(sorted(found.items(), key=lambda entry: -entry[1].value))
    heading = alt.TitleParams(f"Is {title(OURS)} better than …?", subtitle=_over(results), **WORDS)
    label = "probability that it scores higher"
    return figure_of(estimates_chart(found, label, heading, middle=0.5))


def estimates_chart(
    found: Mapping[str, Estimate], label: str, heading: alt.TitleParams | None = None, middle: float | None = None
) -> Layered:
    """Draw one estimate per method with its interval."""
    rows = [
        {"scheme": method, "name": name_of(method), "value": one.value, "low": one.low, "high": one.high}
        for method, one in found.items()
    ]
    base = alt.Chart(alt.Data(values=rows))
    y = alt.Y(
        "name:N",
        title=None,
        sort=[row["name"] for row in rows],
        axis=alt.Axis(labelLimit=180, labelPadding=PADDING, ticks=False),
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    ink = scheme_colour(METHODS)
    spans = base.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("low:Q", title=label, scale=scale), x2="high:Q", y=y, color=ink
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("value:Q", scale=scale), y=y, color=ink)
    layers = [spans, dots]
    if middle is not None:
        rule = alt.Chart(alt.Data(values=[{"at": middle}])).mark_rule(color="#b8b8b2", strokeDash=[4, 3])
        layers.insert(0, rule.encode(x=alt.X("at:Q", scale=scale)))
    chart = alt.layer(*layers).properties(width=WIDTH, height=22 * len(rows))
    return chart if heading is None else chart.properties(title=heading)


def profile_figure(results: StudyResults, points: int = 26) -> dict[str, Any]:
    """Draw every method's performance profile in a panel of its own, the others in grey behind it."""
    at = np.linspace(0, 1, points)
    curves = {method: np.array(performance_profile(results.scores(method), at)).round(4) for method in METHODS}
    rows = [
        {"panel": name_of(panel), "line": method, "own": panel == method, "at": x, "share": y}
        | ({"low": low, "high": high} if panel == method else {})
        for panel in METHODS
        for method in (*(other for other in METHODS if other != panel), panel)
        for x, (y, low, high) in zip(at.round(3).tolist(), curves[method].T.tolist(), strict=True)
    ]
    inks = {"scale": scheme_scale(METHODS), "legend": None}
    x = alt.X("at:Q", title="score τ", axis=alt.Axis(tickCount=2, grid=False))
    share = alt.Axis(format="%", tickCount=2)
    table = alt.Chart(alt.Data(values=rows))
    band = table.transform_filter("datum.own").mark_area(opacity=0.25)
    low = alt.Y("low:Q", title="runs > τ", axis=share)
    band = band.encode(x=x, y=low, y2="high:Q", color=alt.Color("line:N", **inks))
    lines = table.mark_line().encode(
        x=x,
        y=alt.Y("share:Q", title="runs > τ", axis=share),
        detail="line:N",
        color=alt.condition("datum.own", alt.Color("line:N", **inks), alt.value("#d8d8d2")),
        strokeWidth=alt.condition("datum.own", alt.value(3), alt.value(1)),
    )
    header = alt.Header(labelFontSize=13)
    chart = (
        alt.layer(band, lines)
        .properties(width=106, height=74)
        .facet(
            facet=alt.Facet("panel:N", title=None, sort=[name_of(m) for m in METHODS], header=header),
            columns=3,
            spacing=14,
        )
    )
    subtitle = [_over(results), "Higher is better; shaded: 95 % interval; the others in grey."]
    return figure_of(chart.properties(title=alt.TitleParams("Share of runs above a score", subtitle=subtitle, **WORDS)))


def _over(results: StudyResults) -> str:
    tasks, seeds = len(results.compared), results.seeds()
    return f"{tasks} task{'s' * (tasks != 1)}, {least_to_most(seeds)} seed{'s' * (seeds[1] != 1)} of each method."
