"""The tables and the figure of docs/results/curiosity.md, from the committed summary of `curiosity`."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from payback_lab.claims.wording import format_p
from payback_lab.experiments.curiosity.comparison import (
    Compared,
    Runs,
    compare,
    gap,
    lengths,
    predictions,
    share,
    solved,
    steps_until,
)
from payback_lab.experiments.curiosity.experiment import BONUSES, FEW, PAIRED, SCHEMES
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.style import WORDS, Layered, figure_of, scheme_colour
from payback_lab.report.markdown import rows
from payback_lab.report.summary import Summary
from payback_lab.statistics import Estimate, mean_estimate

PAIRS = (("grm-30", "im"), ("grm-30", "none"), ("grm-10", "im"), ("pbim", "im"), ("im", "none"))
"""What is compared; the first two pairs are the questions."""
COLUMNS = ("seeds", "seeds that solve it", "steps until then, thousands", "final length")
Cells = Mapping[tuple[str, str], Runs]
"""(bonus, scheme) → its runs; a cell that has not been run is not there."""
NAMES = {
    "none": "no bonus",
    "im": "raw bonus",
    "pbim": "PBIM (repaid at the end)",
    "grm-10": "GRM (repaid bonus), D = 10",
    "grm-30": "GRM (repaid bonus), D = 30",
}
WIDTH, HEIGHT = 300, 230


def cells_of(summary: Summary) -> Cells:
    """Return the runs by bonus and scheme."""
    cells: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for group in summary.groups:
        for run in group.runs:
            cells.setdefault((group.setting or "", run["scheme"]), []).append(run)
    return cells


def rnd_table(cells: Cells) -> str:
    """Write every scheme of RND."""
    own = {scheme: cells["rnd", scheme] for scheme in SCHEMES if ("rnd", scheme) in cells}
    return rows(("RND", *COLUMNS), [(f"{name_of(s)} (`{s}`)", *_cell(runs)) for s, runs in own.items()])


def rnd_comparisons(cells: Cells) -> str:
    """Write how the schemes of RND compare, pair by pair; a scheme with few seeds is left out."""
    own = {scheme: runs for (bonus, scheme), runs in cells.items() if bonus == "rnd" and len(runs) >= FEW}
    header = ("difference", "seeds that solve it", "steps, thousands", "final length", "better")
    lines = [(f"`{a}` − `{b}`", *_difference(compare(own[a], own[b]))) for a, b in PAIRS if {a, b} <= own.keys()]
    return rows(header, lines)


def others_table(cells: Cells) -> str:
    """Write the other bonuses, raw and repaid."""
    lines = [
        (f"`{bonus}`", name_of(scheme), *_cell(cells[bonus, scheme]))
        for bonus in BONUSES[1:]
        for scheme in PAIRED
        if (bonus, scheme) in cells
    ]
    return rows(("bonus", "paid", *COLUMNS), lines)


def others_together(cells: Cells) -> tuple[Estimate, Estimate]:
    """Return how much GRM with D = 30 differs from the raw bonus over the other bonuses: steps and final length."""
    pairs = [(cells[bonus, "grm-30"], cells[bonus, "im"]) for bonus in BONUSES[1:]]
    steps = gap([(steps_until(one), steps_until(other)) for one, other in pairs])
    return steps, gap([(lengths(one), lengths(other)) for one, other in pairs])


def predictions_table(cells: Cells) -> str:
    """Write every prediction with what came out."""
    lines = [(found.text, found.here, found.verdict) for found in predictions(cells)]
    return rows(("predicted", "measured", "came out"), lines)


def _cell(runs: Runs) -> tuple[str, ...]:
    part = share(runs)
    solving = f"{round(part.value * len(runs))} of {len(runs)} [{part.low:.2f}, {part.high:.2f}]"
    steps, final = mean_estimate(steps_until(runs)), mean_estimate(lengths(runs))
    return f"{len(runs)}", solving, steps.format(".0f", per=1000), final.format(".1f")


def _difference(found: Compared) -> tuple[str, ...]:
    shown = f"{found.share:+.2f} ({format_p(found.p)})"
    steps, length = found.steps.format("+.0f", per=1000), found.length.format("+.1f")
    return shown, steps, length, "yes" if found.gains else "no"


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
