"""The chart of `curiosity`: when every seed solved the task, and how long the trained agent's episodes are."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from payback_lab.experiments.curiosity.comparison import Runs, lengths, solved, steps_until
from payback_lab.experiments.curiosity.config import SCHEMES
from payback_lab.report.charts.reach import figure_of
from payback_lab.report.charts.style import WORDS, Layered, scheme_colour
from payback_lab.report.summary import Summary
from payback_lab.statistics import mean_estimate

NAMES = {
    "none": "no bonus",
    "im": "raw bonus",
    "pbim": "repaid at the end",
    "grm-10": "repaid after 10 steps",
    "grm-30": "repaid after 30 steps",
}
WIDTH, HEIGHT = 300, 230


def curiosity_figure(summary: Summary) -> dict[str, Any]:
    """Draw both measures of RND's schemes side by side, as a Vega-Lite specification that holds its data."""
    runs = [run for group in summary.groups if group.setting == "rnd" for run in group.runs]
    own = {scheme: those for scheme in SCHEMES if (those := [run for run in runs if run["scheme"] == scheme])}
    steps = _panel(own, "steps", "step from which it is solved", labelled=True)
    final = _panel(own, "length", "steps per episode of the trained agent", labelled=False)
    heading = alt.TitleParams(
        "RND on MiniGrid DoorKey 6×6, PPO of Stable-Baselines3",
        subtitle="Every seed (plus signs: not solved), the mean and its 95 % bootstrap interval.",
        **WORDS,
    )
    return figure_of(alt.hconcat(steps, final, spacing=30).properties(title=heading))


def seed_rows(own: Mapping[str, Runs], measure: str) -> list[dict[str, Any]]:
    """Return one row per seed, with its scheme's mean and interval."""
    found = []
    for scheme, runs in own.items():
        values = steps_until(runs) if measure == "steps" else lengths(runs)
        over = mean_estimate(values)
        shared = {"scheme": scheme, "name": NAMES[scheme], "mean": over.value, "low": over.low, "high": over.high}
        marks = ("solved" if done else "not solved" for done in solved(runs).tolist())
        found += [shared | {"value": v, "mark": mark} for v, mark in zip(values.tolist(), marks, strict=True)]
    return found


def _panel(own: Mapping[str, Runs], measure: str, label: str, *, labelled: bool) -> Layered:
    rows = alt.Chart(alt.Data(values=seed_rows(own, measure)))
    ink = scheme_colour(list(own))
    # Room for the longest name in whatever font the reader's browser has.
    room = 170 if labelled else 0
    shown = alt.Axis(labels=labelled, labelLimit=220, minExtent=room, ticks=False, domain=False, grid=True)
    y = alt.Y("name:N", title=None, sort=[NAMES[scheme] for scheme in own], axis=shown)
    x = alt.X(
        "value:Q",
        title=label,
        axis=alt.Axis(format="~s", tickCount=4),
        scale=alt.Scale(zero=True, nice=False, padding=14),
    )
    shape = alt.Shape(
        "mark:N", scale=alt.Scale(domain=["solved", "not solved"], range=["circle", "cross"]), legend=None
    )
    seeds = rows.mark_point(size=60, opacity=0.5, yOffset=9).encode(x=x, y=y, color=ink, shape=shape)
    spans = rows.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=ink)
    means = rows.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("mean:Q"), y=y, color=ink)
    return alt.layer(seeds, spans, means).properties(width=WIDTH, height=HEIGHT)
