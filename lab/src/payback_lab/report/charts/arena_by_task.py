"""The charts of the arena task by task: final length against the fewest steps, the sweep of the limit, and RND."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from payback_lab.experiments.arena.chosen import FIRST
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.finished import Figures
from payback_lab.experiments.arena.measures import over_fewest, scores, shares
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import DELAYS, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.report.charts.arena import PADDING, WIDTH, name_of
from payback_lab.report.charts.reach import figure_of
from payback_lab.report.charts.style import WORDS, Layered, colour, scheme_colour
from payback_lab.statistics import mean_estimate


def length_figure(results: StudyResults) -> dict[str, Any]:
    """Draw every seed's mean length over the fewest steps, task by task."""
    found = {task: {m: over_fewest(task, results.runs(task, m)) for m in METHODS} for task in results.tasks}
    label = "length over the fewest steps"
    return _seeds_by_task(found, "Final length against the fewest steps", label, logarithmic=True)


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
