"""Figures for the sentences of stories, read off a summary; None where they are not there."""

from collections.abc import Sequence
from typing import Any

from payback_lab.claims.claim import Figure
from payback_lab.report.charts.picture import first_column, picture_chart, picture_rows
from payback_lab.report.story import Drawing
from payback_lab.report.summary import Group, Summary


def group_of(summary: Summary, setting: str | None = None) -> Group | None:
    """Return the group of a setting, not of an ablation."""
    return next((g for g in summary.groups if g.ablation is None and g.setting == setting), None)


def plain_groups(summary: Summary) -> list[Group]:
    """Return the groups that are not of an ablation."""
    return [group for group in summary.groups if group.ablation is None]


def runs(groups: Sequence[Group | None], *schemes: str) -> list[dict[str, Any]]:
    """Return the runs of some schemes in some groups."""
    return [run for group in groups if group for run in group.runs if run["scheme"] in schemes]


def mean(of: Sequence[dict[str, Any]], key: str) -> float | None:
    """Return the mean of a figure over the runs that have it."""
    there = [run[key] for run in of if run.get(key) is not None]
    return sum(there) / len(there) if there else None


def share(of: Sequence[dict[str, Any]], key: str) -> str:
    """Say in how many runs there is such a figure, and it is not False.

    >>> share([{"settled_step": 5}, {"settled_step": None}], "settled_step")
    '1 of 2'
    """
    return f"{sum(run.get(key) not in (None, False) for run in of)} of {len(of)}"


def claimed(summary: Summary, measure: str, scheme: str) -> Figure | None:
    """Return what the claims about the experiment itself measured of a scheme."""
    figures = (figure for claim in summary.claims if claim.ablation is None for figure in claim.figures)
    return next((f for f in figures if (f.measure, f.scheme) == (measure, scheme)), None)


def curves(group: Group | None, schemes: Sequence[str] = (), caption: str = "") -> Drawing | None:
    """Draw the learning curves of some schemes of a group, or of all it has, as the picture of a story."""
    column = first_column(group) if group else None
    if group is None or column is None:
        return None
    there = [scheme for scheme in schemes or group.curves if scheme in group.curves]
    if not there:
        return None
    chart = picture_chart(there, column, group.axis)
    data = {"rows": picture_rows(group, there, column)}
    return Drawing("picture", caption, chart, data, height=92, names=tuple(there))
