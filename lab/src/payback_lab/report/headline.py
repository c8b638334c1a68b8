"""What the first screen shows: DoorKey-11x11 in the arena, and EpisodicCount in Stable-Baselines3, as curves."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from payback_lab.experiments.arena.chosen import cell_of
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.measures import over_fewest, shares, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.report.charts.arena import moved_apart
from payback_lab.report.charts.style import WORDS, colour, figure_of
from payback_lab.report.markdown import rows
from payback_lab.report.reach import INK
from payback_lab.report.summary import Summary
from payback_lab.statistics import mean_estimate

TASK = "DoorKey-11x11"
METHODS = {
    "none": "no bonus",
    "im": "raw bonus, tuned",
    "pies": "faded out (PIES), tuned",
    "grm-30": "GRM, D = 30, tuned",
}
IN_SB3 = {"none": "no bonus", "im": "raw bonus", "grm-30": "GRM, D = 30"}
WIDTH, HEIGHT = 430, 250
LONGEST = 200_000
"""Steps of Stable-Baselines3 that are drawn: by then no curve moves."""


def table(results: StudyResults) -> str:
    """Write the four rows of the first screen: solved, from when, by how long a path."""
    lines = []
    for method, name in METHODS.items():
        runs = results.runs(TASK, method)
        never = all(run["solved_step"] is None for run in runs)
        lines.append(
            (
                f"**{name}**" if method == "grm-30" else name,
                f"{100 * shares(runs).mean():.0f} %",
                "never" if never else f"{mean_estimate(solved_steps(runs) / 1e6).format('.2f')} M",
                mean_estimate(over_fewest(TASK, runs)).format(".1f").replace(" [", " × ["),
            )
        )
    return rows(("method", "episodes solved", "solved from, steps", "path length relative to the shortest"), lines)


def arena_figure(results: StudyResults, summary: Summary) -> dict[str, Any]:
    """Draw the length of an episode during training, every seed and their geometric mean."""
    groups = {group.setting: group for group in summary.groups}
    drawn = {}
    for method in METHODS:
        group = groups[cell_of(TASK, results.alpha(method) or 0.0)]
        drawn[method] = (group.x, group.curves[method]["window_mean"])
    shortest = FEWEST[TASK]
    heading = alt.TitleParams(
        f"{TASK}: how long an episode takes",
        subtitle=[
            f"PPO, {drawn['grm-30'][1].shape[0]} seeds each and their mean; α is each method's best of three.",
            "Bonus: episodic counts of the simulator's state.",
        ],
        **WORDS,
    )
    axis = alt.Axis(values=[20, 50, 100, 200, 500, 1000], grid=True)
    y = alt.Y(
        "value:Q",
        title="steps per episode",
        axis=axis,
        scale=alt.Scale(type="log", domain=[18, LIMITS[TASK] * 1.1], nice=False),
    )
    rule = alt.Chart(alt.Data(values=[{"value": shortest, "name": "shortest path"}]))
    line = rule.mark_rule(strokeDash=[3, 3], color="#555555").encode(y=y)
    word = rule.mark_text(align="left", x=4, dy=-8, color="#555555", fontSize=13).encode(y=y, text="name:N")
    lines = _lines(drawn, METHODS, y, (18, LIMITS[TASK] * 1.1), logarithmic=True)
    return figure_of(alt.layer(line, word, *lines).properties(width=WIDTH, height=HEIGHT, title=heading))


def sb3_figure(summary: Summary) -> dict[str, Any]:
    """Draw the extrinsic return of EpisodicCount's runs in Stable-Baselines3, every seed and their mean."""
    groups = {group.setting: group for group in summary.groups}
    at = {"none": "rnd", "im": "episodic-count", "grm-30": "episodic-count"}
    drawn = {}
    for scheme, setting in at.items():
        x = groups[setting].x
        drawn[scheme] = (x[x <= LONGEST], groups[setting].curves[scheme]["return"][:, x <= LONGEST])
    seeds = [f"{len(curve)} of {IN_SB3[scheme]}" for scheme, (_, curve) in drawn.items()]
    heading = alt.TitleParams(
        "MiniGrid DoorKey 6×6 in Stable-Baselines3",
        subtitle=["EpisodicCount with its defaults. " + f"Seeds: {', '.join(seeds)}."],
        **WORDS,
    )
    y = alt.Y("value:Q", title="return without the bonus", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    lines = _lines(drawn, IN_SB3, y, (0.0, 1.0), logarithmic=False)
    return figure_of(alt.layer(*lines).properties(width=WIDTH, height=HEIGHT, title=heading))


def _lines(
    drawn: Mapping[str, tuple[np.ndarray, np.ndarray]],
    names: Mapping[str, str],
    y: alt.Y,
    domain: tuple[float, float],
    *,
    logarithmic: bool,
) -> list[alt.Chart]:
    """Draw pale lines for seeds, thick ones for their mean, and each method's name where its mean ends."""
    seeds, means = [], []
    for method, (x, curves) in drawn.items():
        for seed, curve in enumerate(curves):
            seeds += [_point(method, at, value) | {"seed": seed} for at, value in zip(x, curve, strict=True)]
        middle = np.exp(np.log(curves).mean(0)) if logarithmic else curves.mean(0)
        means += [_point(method, at, value) for at, value in zip(x, middle, strict=True) if np.isfinite(value)]
    last = {row["method"]: row for row in means}
    order = sorted(last.values(), key=lambda row: -row["value"])
    at = moved_apart([_down(row["value"], domain, logarithmic=logarithmic) for row in order], HEIGHT + 15)
    ends = [row | {"name": names[row["method"]], "down": down} for row, down in zip(order, at, strict=True)]
    ink = alt.Color(
        "method:N",
        scale=alt.Scale(domain=list(names), range=[INK.get(method, colour(method)) for method in names]),
        legend=None,
    )
    x = alt.X("step:Q", title="environment steps", axis=alt.Axis(grid=False, format="~s", tickCount=5))
    pale = alt.Chart(alt.Data(values=[row for row in seeds if np.isfinite(row["value"])]))
    thick = alt.Chart(alt.Data(values=means))
    words = alt.Chart(alt.Data(values=ends)).mark_text(align="left", baseline="middle", dx=6, fontSize=14)
    return [
        pale.mark_line(strokeWidth=1, opacity=0.3).encode(x=x, y=y, color=ink, detail="seed:N"),
        thick.mark_line(strokeWidth=3).encode(x=x, y=y, color=ink),
        # Unseen and longer, because the letters of a reader's font may be wider than those that are measured here.
        words.transform_calculate(name="datum.name + 'mmm'").encode(
            x=alt.value(WIDTH), y=alt.Y("down:Q", scale=None, axis=None), text="name:N", opacity=alt.value(0)
        ),
        words.encode(x=alt.value(WIDTH), y=alt.Y("down:Q", scale=None, axis=None), text="name:N", color=ink),
    ]


def _point(method: str, step: float, value: float) -> dict[str, Any]:
    return {"method": method, "step": float(step), "value": round(float(value), 4)}


def _down(value: float, domain: tuple[float, float], *, logarithmic: bool) -> float:
    """Return how many pixels below the top a value stands."""
    low, high, value = (np.log(domain[0]), np.log(domain[1]), np.log(value)) if logarithmic else (*domain, value)
    return float(HEIGHT * (high - value) / (high - low))
