"""A group of runs as the page shows it: curves, small charts by scheme, policies, films, settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.doorkey.setting import numbers_of
from payback_lab.methods import in_order, title
from payback_lab.policy import outcome
from payback_lab.report import tables
from payback_lab.report.charts import doorkey
from payback_lab.report.charts.cliff import NARROW
from payback_lab.report.charts.collection import Charts
from payback_lab.report.charts.curves import LABELS
from payback_lab.report.charts.final_figures import DELAYS
from payback_lab.report.dots import panel_of_group
from payback_lab.report.figure_titles import in_order_of_interest
from payback_lab.report.summary import Group, Summary
from payback_lab.running.plan import GroupName

OTHER_MATCHINGS = "other-matchings"
"""The label of groups that compare matchings, whose figures are drawn against the delay."""


def group_view(summary: Summary, group: Group, charts: Charts, full: Mapping[str, Group]) -> dict[str, Any]:
    """Prepare one group; `full` are the full results by name, beside which runs that were cut short are drawn."""
    beside = longer(group, full.get(group.name))
    schemes = in_order(list(dict.fromkeys(run["scheme"] for run in group.runs)))
    columns = [c for c in LABELS if all(c in curves for curves in group.curves.values()) and group.curves]
    settings = tables.setting_rows(summary, group)
    return {
        "title": heading(group.name),
        "changes": "; ".join(f"{name} = {value}" for name, value, _, changed in settings if changed),
        "axis": group.axis,
        "beside": ", ".join(commit[:7] for commit in beside.made["commits"]) if beside else "",
        "curves": [charts.curve(summary, group, schemes, column, beside) for column in columns],
        "panels": [panel_of_group(summary, group, key) for key in in_order_of_interest(tables.figure_keys(group))],
        "delays": [
            charts.delay(group, key)
            for key in ("sampled_length", "settled_step")
            if group.ablation == OTHER_MATCHINGS and tables.delay_rows(group, key, DELAYS)
        ],
        "policies": [_policy(group, scheme, charts) for scheme in schemes if scheme in group.policies],
        "film": _strips(group, schemes, charts),
        "wide": any(policy.action.shape[1] > NARROW for policy in group.policies.values()),
        "seeds": seeds_said([len(runs) for runs in tables.by_scheme(group).values()]),
        "block": _block(group),
        "settings": settings,
    }


def longer(group: Group, full: Group | None) -> Group | None:
    """Return the full results of a group that was cut short; None if it was not, or if there are none."""
    if full is None or group.axis != full.axis or not len(group.x) or not len(full.x):
        return None
    return full if group.x[-1] < 0.9 * full.x[-1] and group.curves.keys() & full.curves.keys() else None


def heading(name: str) -> str:
    """Write a group's name in words.

    >>> [heading(name) for name in ("cliff", "cliff+wide-rnd", "doorkey/a0.02-g0.995", "doorkey+x/a0.02-g0.995")]
    ['cliff', 'wide-rnd', 'α = 0.02, γ = 0.995', 'x, α = 0.02, γ = 0.995']
    >>> heading("reach/s11-a0.02-g0.995-l0.95")
    'size = 11, α = 0.02, γ = 0.995, λ = 0.95'
    """
    group = GroupName.parse(name)
    letters = {"s": "size", "a": "α", "g": "γ", "l": "λ"}
    setting = group.setting or ""
    words = [f"{letters[letter]} = {number}" for letter, number in numbers_of(setting).items()] or [setting]
    return ", ".join(filter(None, (group.ablation, *words))) or group.experiment


def seeds_said(counts: Sequence[int]) -> str:
    """Say how many seeds there are of each scheme.

    >>> seeds_said([1, 1]), seeds_said([3, 3]), seeds_said([1, 3])
    ('1 seed', '3 seeds', '1 to 3 seeds')
    """
    return f"{least_to_most(counts)} seed{'s' * (max(counts) != 1)}"


def _strips(group: Group, schemes: Sequence[str], charts: Charts) -> Markup | None:
    films = {title(scheme): group.films[scheme] for scheme in schemes if scheme in group.films}
    return Markup(charts.drawing(f"{group.name}-film", doorkey.strips(films, group.config["size"]))) if films else None


def _policy(group: Group, scheme: str, charts: Charts) -> dict[str, Any]:
    policy = group.policies[scheme]
    values = [cell["value"] for cell in tables.policy_cells(policy) if "value" in cell]
    return {
        "id": charts.policy(group, scheme),
        "scheme": scheme,
        "title": title(scheme),
        "outcome": outcome(policy.action),
        "range": f"{min(values):.3g} … {max(values):.3g}",
    }


def _block(group: Group) -> str:
    steps = group.x[1:] - group.x[:-1]
    return f"{round(float(steps[0])):,}" if len(steps) else "all"
