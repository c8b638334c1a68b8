"""The charts of the arena: over all tasks, task by task, the sweep of the time limit, and RND."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.arena.chosen import FIRST
from payback_lab.experiments.arena.config import ADDED, ADVANTAGE_SIDE, METHODS
from payback_lab.experiments.arena.finished import Figures
from payback_lab.experiments.arena.measures import over_fewest, scores, shares
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import DELAYS, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.methods import title
from payback_lab.over_tasks import Estimate, performance_profile
from payback_lab.report.charts.style import WORDS, Layered, colour, figure_of, scheme_colour, scheme_scale
from payback_lab.statistics import mean_estimate

WIDTH = 270
"""Narrow, so that a phone shows the words at almost their own size."""
PADDING = 9
"""Pixels between a method's name and the axis, because a dot at 0 would hide the name's last letter."""
ACROSS, TALL, NAMED = 220, 300, 0.74
"""Width and height of the one picture, and how much of its width is added for the names."""
OURS = "grm-30"
"""The method that the others are held against."""
NAMES = {
    "none": "no bonus",
    "im": "raw bonus",
    "im-centred": "raw bonus, centred",
    **dict(
        zip(ADVANTAGE_SIDE, ("GRM-adv", "GRM-adv, taken back", "two critics", "two critics, taken back"), strict=True)
    ),
}
"""What the charts call methods for a reader who is new to all of them."""
SHORT = {"phased": "phased-in", "pies": "PIES"}
"""Shorter names for the one picture, which must fit beside its points on a phone."""
APART = 17.0
"""Pixels between two names, one below the other."""
MARGIN = 1.05
"""Where the names stand, in shares of the width: right of all points, because between points they hide some."""


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
    for method in results.methods if tasks else ():
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
    y = alt.Y("times:Q", title="← steps, relative to the shortest path", scale=scale, axis=axis)
    ink = scheme_colour((*METHODS, *ADDED))
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
    subtitle = [_over(results), "Top right is best: always found, by the shortest path."]
    heading = alt.TitleParams("Who finds the goal, and by how short a path", subtitle=subtitle, **WORDS)
    return figure_of(found_chart(found_points(results)).properties(title=heading))


def placed_labels(points: Sequence[Mapping[str, Any]], height: float, longest: float) -> list[dict[str, Any]]:
    """Add to points (found, times) where their names stand: label_x and label_y, in the units of the axes.

    The names stand in a column right of the chart. The axis of `times` is logarithmic and runs from 1, at the top, to
    `longest`.
    """
    own = sorted(points, key=lambda point: point["times"])
    heights = moved_apart([height * np.log(point["times"]) / np.log(longest) for point in own], height)
    places = [float(longest ** (at / height)) for at in heights]
    return [{**point, "label_x": MARGIN, "label_y": at} for point, at in zip(own, places, strict=True)]


def moved_apart(wanted: Sequence[float], height: float, apart: float = APART) -> list[float]:
    """Return places as near to the wanted ones, in rising order, as keeps them so far apart and within the height.

    >>> moved_apart([10.0, 12.0, 100.0], 200.0, apart=20.0)
    [1.0, 21.0, 100.0]
    """
    # Pool neighbours that are too near, and spread each pool around its mean: isotonic regression by pooling.
    pools: list[list[float]] = []
    for n, place in enumerate(wanted):
        pools.append([place - n * apart])
        while len(pools) > 1 and np.mean(pools[-2]) >= np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    flat = [float(np.mean(pool)) for pool in pools for _ in pool]
    most = height - (len(wanted) - 1) * apart
    return [float(min(max(base, 0.0), max(most, 0.0)) + n * apart) for n, base in enumerate(flat)]


def overall_figure(results: StudyResults) -> dict[str, Any]:
    """Draw the interquartile mean of every method's score with its interval."""
    heading = alt.TitleParams("Interquartile mean of the score", subtitle=_over(results), **WORDS)
    return figure_of(estimates_chart(results.overall, "score (1: always solved, by the shortest path)", heading))


def improvement_figure(results: StudyResults) -> dict[str, Any]:
    """Draw the probability that GRM with D = 30 scores higher than each other method."""
    found = {method: results.improvement(OURS, method) for method in results.methods if method != OURS}
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
    ink = scheme_colour((*METHODS, *ADDED))
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
    methods = results.methods
    curves = {method: np.array(performance_profile(results.scores(method), at)).round(4) for method in methods}
    rows = [
        {"panel": name_of(panel), "line": method, "own": panel == method, "at": x, "share": y}
        | ({"low": low, "high": high} if panel == method else {})
        for panel in methods
        for method in (*(other for other in methods if other != panel), panel)
        for x, (y, low, high) in zip(at.round(3).tolist(), curves[method].T.tolist(), strict=True)
    ]
    inks = {"scale": scheme_scale(methods), "legend": None}
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
            facet=alt.Facet("panel:N", title=None, sort=[name_of(m) for m in methods], header=header),
            columns=3,
            spacing=14,
        )
    )
    subtitle = [_over(results), "Higher is better; shaded: 95 % interval; the others in grey."]
    return figure_of(chart.properties(title=alt.TitleParams("Share of runs above a score", subtitle=subtitle, **WORDS)))


def length_figure(results: StudyResults) -> dict[str, Any]:
    """Draw every seed's mean length over the fewest steps, task by task."""
    found = {task: {m: over_fewest(task, results.runs(task, m)) for m in (*METHODS, *ADDED)} for task in results.tasks}
    label = "length relative to the shortest path"
    return _seeds_by_task(found, "Final length relative to the shortest path", label, logarithmic=True)


def rnd_figure(results: StudyResults) -> dict[str, Any]:
    """Draw every seed's score with RND as the bonus, task by task."""
    found = {task: {m: scores(task, results.runs(task, m, bonus="rnd")) for m in RND_METHODS} for task in FIRST}
    return _seeds_by_task(found, "RND instead of counts", "score", logarithmic=False)


def _seeds_by_task(
    found: Mapping[str, Mapping[str, np.ndarray]], heading: str, label: str, *, logarithmic: bool
) -> dict[str, Any]:
    """Draw the values of every method's seeds, a panel for each task that has any."""
    rows = {task: [row for m, values in own.items() for row in _rows(m, values)] for task, own in found.items()}
    panels = [_panel(own, label, task, logarithmic=logarithmic) for task, own in rows.items() if own]
    title = alt.TitleParams(heading, subtitle="Every seed, the mean and its 95 % bootstrap interval.", **WORDS)
    return figure_of(alt.vconcat(*panels, spacing=20).properties(title=title))


def limit_points(results: StudyResults) -> list[dict[str, Any]]:
    """Return share solved and score of every D at every limit: the mean and its interval."""
    found = []
    for method in DELAYS:
        for limit in SWEPT_LIMITS:
            runs = results.limited(limit, method)
            for measure, values in (("episodes solved", shares(runs)), ("score", scores(SWEPT, runs))):
                if len(runs):
                    shared = {"scheme": method, "name": name_of(method), "limit": limit, "measure": measure}
                    found.append(shared | _mean(values))
    return found


def limit_figure(results: StudyResults) -> dict[str, Any]:
    """Draw both against the time limit, one line per D, named in the legend and by its mark."""
    points = limit_points(results)
    names = [name_of(method) for method in DELAYS]
    inks = alt.Scale(domain=names, range=[colour(method) for method in DELAYS])
    shapes = alt.Scale(domain=names, range=["square", "triangle-up", "circle", "diamond"])
    legend = alt.Legend(title=None, orient="bottom", columns=2)
    panels = []
    for measure in ("episodes solved", "score"):
        base = alt.Chart(alt.Data(values=[point for point in points if point["measure"] == measure]))
        x = alt.X(
            "limit:Q",
            title="time limit of an episode, steps",
            scale=alt.Scale(type="log", base=2, domain=[270, 5400], nice=False),
            axis=alt.Axis(values=list(SWEPT_LIMITS), format=",d", grid=False, labelOverlap=False, labelFontSize=12),
        )
        axis = alt.Axis(tickCount=4) if measure == "score" else alt.Axis(tickCount=4, format="%")
        y = alt.Y("mean:Q", title=measure, scale=alt.Scale(domain=[0, 1]), axis=axis)
        ink = alt.Color("name:N", scale=inks, legend=legend)
        lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=ink)
        spans = base.mark_rule(strokeWidth=2).encode(x=x, y="low:Q", y2="high:Q", color=ink)
        dots = base.mark_point(filled=True, size=80, opacity=1).encode(
            x=x, y=y, color=ink, shape=alt.Shape("name:N", scale=shapes, legend=legend)
        )
        panels.append(alt.layer(lines, spans, dots).properties(width=WIDTH + 60, height=150))
    heading = alt.TitleParams(
        f"{SWEPT}, its time limit swept", subtitle="Mean and 95 % bootstrap interval over seeds.", **WORDS
    )
    return figure_of(alt.vconcat(*panels, spacing=16).properties(title=heading))


def _rows(method: str, values: np.ndarray) -> list[dict[str, Any]]:
    if not len(values):
        return []
    shared = {"scheme": method, "name": name_of(method), **_mean(values)}
    return [shared | {"value": value} for value in values.tolist()]


def _mean(values: np.ndarray) -> dict[str, float]:
    mean = mean_estimate(values)
    return {"mean": mean.value, "low": mean.low, "high": mean.high}


def _panel(rows: Sequence[Figures], label: str, task: str, *, logarithmic: bool) -> Layered:
    names = list(dict.fromkeys(row["name"] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows)))
    ink = scheme_colour(list(dict.fromkeys(row["scheme"] for row in rows)))
    y = alt.Y(
        "name:N", title=None, sort=names, axis=alt.Axis(labelLimit=180, labelPadding=PADDING, ticks=False, grid=True)
    )
    if logarithmic:
        most = max(2.0, 1.1 * max(float(row["value"]) for row in rows))
        scale = alt.Scale(type="log", domain=[1, most], nice=False)
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= most]
        axis = alt.Axis(values=ticks, format="d", labelExpr="datum.label + '×'")
    else:
        scale, axis = alt.Scale(domain=[0, 1], nice=False), alt.Axis(tickCount=4)
    x = alt.X("value:Q", title=label, scale=scale, axis=axis)
    seeds = base.mark_point(size=45, opacity=0.55, yOffset=6).encode(x=x, y=y, color=ink)
    spans = base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=ink)
    means = base.mark_point(filled=True, size=90, opacity=1).encode(x=alt.X("mean:Q", scale=scale), y=y, color=ink)
    layers = alt.layer(seeds, spans, means).properties(width=WIDTH, height=22 * len(names))
    return layers.properties(title=alt.TitleParams(task, anchor="start", fontSize=14))


def _over(results: StudyResults) -> str:
    tasks, seeds = len(results.compared), results.seeds()
    return f"{tasks} task{'s' * (tasks != 1)}, {least_to_most(seeds)} seed{'s' * (seeds[1] != 1)} of each method."
