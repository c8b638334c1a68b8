"""Numbers over seeds: what the charts draw and the tables print of a group of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback_lab.methods import title
from payback_lab.policy import ACTIONS, NONE, Policy, ground, walk
from payback_lab.report.summary import Group, Summary
from payback_lab.statistics import bootstrap_interval, iqm

DEVIATION = {"window_mean": "window_std"}
"""Curves whose deviation over episodes was recorded too, under this name."""


@dataclass(frozen=True)
class Cell:
    """Hold one figure of a scheme over its seeds."""

    here: str
    """What was measured."""
    interval: str = ""
    """Its 95 % interval, or in how many seeds there is such a figure."""


def curve_columns(group: Group, column: str) -> dict[str, Any]:
    """Aggregate one curve over seeds, by scheme: mean, standard deviation, interval of the mean, IQM.

    The standard deviation is over episodes where it was recorded (as in the paper), otherwise over seeds. The result is
    in columns, because rows would make the page several times larger; `curve_rows` converts them.
    """
    series = {}
    for scheme, curves in group.curves.items():
        x = curves[column].astype(np.float64)
        low, high = bootstrap_interval(x)
        spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(x.shape[1])
        if column in DEVIATION and DEVIATION[column] in curves:
            spread = curves[DEVIATION[column]].mean(axis=0)
        parts = {"mean": x.mean(axis=0), "sd": spread, "low": low, "high": high, "iqm": iqm(x, axis=0)}
        series[scheme] = {name: _rounded(part) for name, part in parts.items()}
    return {"x": np.round(group.x, 1).tolist(), "series": series}


def _rounded(values: np.ndarray) -> list[float | None]:
    """Round for charts; JSON has no NaN."""
    return [None if np.isnan(value) else round(float(value), 2) for value in values]


def thinned(columns: dict[str, Any], points: int = 200) -> dict[str, Any]:
    """Keep at most so many points of aggregated curves, four digits of each: a chart of the page shows no more.

    >>> thinned({"x": [1, 2, 3, 4], "series": {"im": {"mean": [1234.56, None, 2.0, 3.0]}}}, points=2)
    {'x': [1, 3], 'series': {'im': {'mean': [1235, 2]}}}
    """
    every = -(-len(columns["x"]) // points) or 1

    def kept(part: list[float | None]) -> list[float | None]:
        return [None if value is None else _four_digits(value) for value in part[::every]]

    series = {scheme: {name: kept(part) for name, part in parts.items()} for scheme, parts in columns["series"].items()}
    return {"x": columns["x"][::every], "series": series}


def _four_digits(value: float) -> float:
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def longest(columns: dict[str, Any], usual: float) -> float:
    """Return where the axis of some curves ends: where it usually does, or a little above the highest mean.

    >>> longest({"series": {"im": {"mean": [640.0, None]}}}, 700), longest({"series": {"im": {"mean": [1000.0]}}}, 700)
    (700, 1100.0)
    """
    highest = max((m for parts in columns["series"].values() for m in parts["mean"] if m is not None), default=usual)
    return usual if highest <= usual else round(1.1 * highest, -1)


def curve_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert aggregated curves to one row per scheme and point, as charts need them."""
    return [
        {"scheme": scheme, "x": x, **{name: part[i] for name, part in parts.items()}}
        for scheme, parts in columns["series"].items()
        for i, x in enumerate(columns["x"])
    ]


def beside_rows(group: Group, longer: Group, column: str) -> list[dict[str, Any]]:
    """List the mean curves of longer runs of the group's schemes, up to three times the group's length."""
    until = 3 * group.x[-1]
    return [
        {"scheme": scheme, "x": round(float(x), 1), "mean": mean}
        for scheme in group.curves
        if scheme in longer.curves
        for x, mean in zip(longer.x, _rounded(longer.curves[scheme][column].mean(axis=0)), strict=True)
        if x <= until
    ]


def final_rows(group: Group, key: str) -> list[dict[str, Any]]:
    """List one figure for every run, with its scheme's mean, interval and IQM."""
    rows = []
    for scheme, runs in by_scheme(group).items():
        runs = [run for run in runs if run.get(key) is not None]
        if not runs:
            continue
        values = np.array([run[key] for run in runs], dtype=float)
        low, high = (float(bound) for bound in bootstrap_interval(values))
        shared = {"mean": float(values.mean()), "low": low, "high": high, "iqm": float(iqm(values))}
        rows += [{"scheme": scheme, "seed": run["seed"], "value": run[key], **shared} for run in runs]
    return rows


def delay_rows(group: Group, key: str, delays: Mapping[str, float]) -> list[dict[str, Any]]:
    """List one figure of the runs whose matching has a delay, as `final_rows` does, with it."""
    rows = [row for row in final_rows(group, key) if row["scheme"] in delays]
    return [{**row, "delay": delays[row["scheme"]], "title": title(row["scheme"])} for row in rows]


def by_scheme(group: Group) -> dict[str, list[dict[str, Any]]]:
    """Return the single figures of the runs, scheme by scheme."""
    schemes = dict.fromkeys(run["scheme"] for run in group.runs)
    return {scheme: [run for run in group.runs if run["scheme"] == scheme] for scheme in schemes}


def figure_keys(group: Group) -> list[str]:
    """Return the names of the single figures that are numbers, in their order."""
    keys = dict.fromkeys(key for run in group.runs for key in run if key not in ("id", "scheme", "seed"))
    return [key for key in keys if not any(isinstance(run.get(key), str) for run in group.runs)]


def paper_figures(summary: Summary, group: Group, key: str) -> dict[str, str]:
    """Return the paper's figures by scheme; in a sweep they are kept under the group's name too."""
    return summary.paper.get(f"{group.name}/{key}", summary.paper.get(key, {}))


def cell(values: Sequence[Any]) -> Cell:
    """Write one figure over seeds: yes/no as a count, numbers as mean and interval, and how many seeds have none.

    >>> cell([True, False, True]), cell([None, None])
    (Cell(here='2 of 3', interval=''), Cell(here='in no seed', interval=''))
    """
    there = [value for value in values if value is not None]
    if not there:
        return Cell("in no seed")
    if all(isinstance(value, bool) for value in there):
        return Cell(f"{sum(there)} of {len(there)}")
    numbers = np.array(there, dtype=float)
    low, high = (float(bound) for bound in bootstrap_interval(numbers))
    interval = f"[{number(low)}, {number(high)}]" if high > low else ""
    missing = f"in {len(there)} of {len(values)} seeds" if len(there) < len(values) else ""
    return Cell(number(float(numbers.mean())), " ".join(filter(None, (interval, missing))))


def number(value: float) -> str:
    """Format a number with three digits, or as a whole number.

    >>> [number(v) for v in (88.0, 87.25, 3847.3, -0.01234, 0.0)]
    ['88', '87.2', '3,847', '-0.0123', '0']
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def policy_cells(policy: Policy) -> list[dict[str, Any]]:
    """List the cells of a map: kind, arrow (degrees clockwise from up), Q, agreement, whether the walk passes."""
    cells = ground(*policy.action.shape)
    walked = set(walk(policy.action))
    for cell in cells:
        if cell["kind"] in ("floor", "start"):
            at = (cell["row"], cell["column"])
            cell["value"] = round(float(policy.value[at]), 2)
            action = int(policy.action[at])
            if action != NONE:
                share = round(float(policy.share[at]), 2)
                cell |= {"action": ACTIONS[action], "angle": 90 * action, "share": share, "walked": at in walked}
    return cells


def setting_rows(summary: Summary, group: Group) -> list[tuple[str, str, str, bool]]:
    """List the config: field, value, meaning, and whether this group changes it from the paper's setting."""
    unchanged = (g.config for g in summary.groups if g.ablation is None and g.setting == group.setting)
    plain = next(unchanged, group.config)
    return [
        (name, _shown(value), summary.fields.get(name, ""), plain.get(name) != value)
        for name, value in group.config.items()
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
