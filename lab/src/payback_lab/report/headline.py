"""What the first screen shows: two sizes of DoorKey in the arena's learner, and EpisodicCount in Stable-Baselines3."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from payback_lab.experiments.arena.chosen import cell_of
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.measures import over_fewest, shares, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.experiments.hosts.experiment import SEEDS
from payback_lab.experiments.hosts.setting import COUNTS, Setting
from payback_lab.experiments.hosts.verdicts import HostRuns
from payback_lab.report.charts.arena import moved_apart
from payback_lab.report.charts.style import WORDS, Layered, colour, figure_of
from payback_lab.report.markdown import rows
from payback_lab.report.reach import INK
from payback_lab.report.summary import Group, Summary
from payback_lab.statistics import mean_estimate

TASK = "DoorKey-11x11"
METHODS = {
    "none": "no bonus",
    "im": "raw bonus, tuned",
    "pies": "faded out (PIES), tuned",
    "im-centred": "raw bonus, centred, tuned",
    "grm-30": "GRM, D = 30, tuned",
}
DEEP, DEEP_LIMIT = "DoorKey-16x16", 2560
FARTHER = {
    "none": "no bonus",
    "im": "raw bonus",
    "im-centred": "raw bonus, centred",
    "grm-30": "GRM, D = 30",
    "grm-adv-300-0.99": "GRM as an advantage",
    "two-critics-0.99": "two critics",
}
KEEPS = {
    "none": "yes",
    "im": "no",
    "pies": "once it is 0",
    "im-centred": "no",
    "grm-30": "yes",
    "grm-adv-300-0.99": "no",
}
"""Method of a row → whether it keeps the optimal policy."""
INK_HERE = {**INK, "grm-adv-300-0.99": "#009e73", "im-centred": "#56b4e9"}
SB3_TASK = "DoorKey-8x8"
IN_SB3 = {"none": "no bonus", "im": "raw bonus, tuned", "grm-30": "GRM, D = 30"}
WIDTH, HEIGHT = 330, 250


def table(results: StudyResults, depth: Summary) -> str:
    """Write the rows of the first screen: what each method reaches on both grids, and whether it keeps the optimum."""
    lines = []
    for method, keeps in KEEPS.items():
        name = METHODS.get(method) or FARTHER[method]
        deep = [run["sampled_solved"] for group in _deep_groups(depth) for run in group.runs if run["scheme"] == method]
        reached = f"{100 * np.mean(deep):.0f} % ({len(deep)} seeds)" if deep else "–"
        lines.append((f"**{name}**" if method == "grm-30" else name, *_on_task(results, method), reached, keeps))
    header = (f"{TASK}: solved", "from, steps", "path ÷ shortest", f"{DEEP}: solved", "keeps the optimal policy")
    return rows(("method", *header), lines)


def _on_task(results: StudyResults, method: str) -> tuple[str, str, str]:
    """Return the share solved on the smaller grid, from which step on, and the length of the path there."""
    if method not in METHODS:
        return "–", "–", "–"
    runs = results.runs(TASK, method)
    never = all(run["solved_step"] is None for run in runs)
    return (
        f"{100 * shares(runs).mean():.0f} %",
        "never" if never else f"{mean_estimate(solved_steps(runs) / 1e6).format('.2f')} M",
        mean_estimate(over_fewest(TASK, runs)).format(".1f").replace(" [", " × ["),
    )


def _deep_groups(summary: Summary) -> list[Group]:
    """Return the runs on the larger grid with counts, at each method's α."""
    found = []
    for group in summary.groups:
        setting = parse_setting(group.setting or "")
        if setting.task == DEEP and setting.bonus == "counts" and setting.rollout is None:
            found.append(group)
    return found


def headline_figure(results: StudyResults, arena: Summary, depth: Summary) -> dict[str, Any]:
    """Draw the length of an episode during training on both grids, side by side."""
    both = alt.hconcat(arena_panel(results, arena), depth_panel(depth), spacing=20)
    return figure_of(both.resolve_scale(color="independent"))


def arena_panel(results: StudyResults, summary: Summary) -> Layered:
    """Draw the methods of the table on the grid of the table."""
    groups = {group.setting: group for group in summary.groups}
    drawn = {}
    for method in METHODS:
        group = groups[cell_of(TASK, results.alpha(method) or 0.0)]
        drawn[method] = (group.x, group.curves[method]["window_mean"])
    heading = alt.TitleParams(
        f"{TASK}: how long an episode takes",
        subtitle=[
            f"PPO, {_seeds(drawn)} seeds each and their mean; best of three α each.",
            "Bonus: episodic counts of the simulator's state.",
        ],
        **WORDS,
    )
    return _lengths(drawn, METHODS, LIMITS[TASK], FEWEST[TASK]).properties(title=heading)


def depth_panel(summary: Summary) -> Layered:
    """Draw the methods of the depth study on the larger grid, with the same bonus."""
    drawn = {}
    for group in _deep_groups(summary):
        drawn |= {name: (group.x, group.curves[name]["window_mean"]) for name in group.curves if name in FARTHER}
    drawn = {method: drawn[method] for method in FARTHER if method in drawn}
    heading = alt.TitleParams(
        f"{DEEP}: how long an episode takes",
        subtitle=[
            f"The same learner and bonus, γ = 0.99, {_seeds(drawn)} seeds each;",
            "α from another study, not tuned on this task.",
        ],
        **WORDS,
    )
    return _lengths(drawn, FARTHER, DEEP_LIMIT, None).properties(title=heading)


def _seeds(drawn: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> str:
    counts = sorted({len(curves) for _, curves in drawn.values()})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _lengths(
    drawn: Mapping[str, tuple[np.ndarray, np.ndarray]], names: Mapping[str, str], limit: int, shortest: float | None
) -> Layered:
    """Draw the length of an episode during training, every seed and their geometric mean."""
    axis = alt.Axis(values=[20, 50, 100, 200, 500, 1000, 2000], grid=True)
    domain = (18.0, limit * 1.1)
    scale = alt.Scale(type="log", domain=domain, nice=False)
    y = alt.Y("value:Q", title="steps per episode", axis=axis, scale=scale)
    lines = _lines(drawn, {method: names[method] for method in drawn}, y, domain, logarithmic=True)
    if shortest is None:
        return alt.layer(*lines).properties(width=WIDTH, height=HEIGHT)
    rule = alt.Chart(alt.Data(values=[{"value": shortest, "name": "shortest path"}]))
    line = rule.mark_rule(strokeDash=[3, 3], color="#555555").encode(y=y)
    word = rule.mark_text(align="left", x=4, dy=-8, color="#555555", fontSize=13).encode(y=y, text="name:N")
    return alt.layer(line, word, *lines).properties(width=WIDTH, height=HEIGHT)


def sb3_figure(runs: HostRuns, summary: Summary) -> dict[str, Any]:
    """Draw the task's return in Stable-Baselines3 with EpisodicCount, every seed and their mean."""
    groups = {group.setting: group for group in summary.groups}
    drawn = {}
    for method in IN_SB3:
        alpha = runs.alpha(SB3_TASK, COUNTS, method)
        group = groups[Setting(SB3_TASK, alpha or 0.0, COUNTS).name]
        of_seeds = [run["seed"] < SEEDS for run in group.runs if run["scheme"] == method]
        drawn[method] = (group.x, group.curves[method]["return"][of_seeds])
    heading = alt.TitleParams(
        "MiniGrid DoorKey 8×8 in Stable-Baselines3",
        subtitle=[f"EpisodicCount, {_seeds(drawn)} seeds each and their mean;", "α: best of three for the raw bonus."],
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
        scale=alt.Scale(domain=list(names), range=[INK_HERE.get(method, colour(method)) for method in names]),
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
