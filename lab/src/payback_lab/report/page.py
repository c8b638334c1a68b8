"""The page report.html: one file that opens without a network."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from payback_lab.methods import in_order, is_raw, title
from payback_lab.policy import outcome
from payback_lab.prior_work.summary import Text
from payback_lab.report import tables
from payback_lab.report.charts import doorkey
from payback_lab.report.charts.cliff import NARROW, moves
from payback_lab.report.charts.collection import Charts
from payback_lab.report.charts.curves import LABELS
from payback_lab.report.charts.final_figures import DELAYS, FINALS
from payback_lab.report.charts.style import colour
from payback_lab.report.summary import Group, Summary
from payback_lab.running.plan import Claim, GroupName
from payback_lab.running.progress import duration

HERE = Path(__file__).parent
OTHER_MATCHINGS = "other-matchings"
"""The label of groups that compare matchings, whose figures are drawn against the delay."""


def page(
    summaries: Sequence[Summary], committed: Sequence[Summary] = (), prior: Text | None = None
) -> tuple[str, Charts]:
    """Compose the page; return it with the charts it holds, for the static figures.

    `committed` are full results: where what is shown was cut short, they are drawn beside it and decide the claims.
    `prior` is the table of prior work.
    """
    charts = Charts()
    full = {summary.experiment: summary for summary in committed}
    experiments = [_experiment(summary, charts, full.get(summary.experiment)) for summary in summaries]
    present = {run["scheme"] for summary in summaries for group in summary.groups for run in group.runs}
    # Autoescape, because text from records, summaries or experiments must never become markup.
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((HERE / "page.html").read_text())
    text = template.render(
        experiments=experiments,
        prior=prior,
        schemes=[
            {"id": s, "title": title(s), "colour": colour(s), "dashed": is_raw(s)} for s in in_order(sorted(present))
        ],
        style=Markup((HERE / "page.css").read_text()),
        script=Markup((HERE / "page.js").read_text()),
        bundle=Markup(_library().replace("</script", "<\\/script")),
        charts_json=Markup(json_in_html(charts.content())),
    )
    return text, charts


def _library() -> str:
    """Return the drawing library (Vega, Vega-Lite, vega-embed) as one script."""
    return vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue] - its stub forgets the default


def json_in_html(value: Any) -> str:
    """Write JSON for a script element; no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts in words; those on ablations and on our own questions are counted apart.

    >>> tally([Claim("", "", "", "", "holds"), Claim("", "", "", "", "undecided")])
    'Of 2 statements, 1 holds, 0 do not hold and 1 is undecided.'
    >>> tally([Claim("", "IM is slow.", "", "", "holds", ablation="wide-rnd")])[-77:]
    'Not counted: 1 of ablations and other matchings, with their name before them.'
    """
    own = [claim for claim in claims if claim.plain]
    more = len(claims) - len(own)
    count = Counter(claim.verdict for claim in own)
    holds, open_ = count["holds"], count["undecided"]
    return (
        f"Of {len(own)} statements, {holds} {'holds' if holds == 1 else 'hold'}, {count['does not hold']} "
        f"{'does' if count['does not hold'] == 1 else 'do'} not hold and {open_} {'is' if open_ == 1 else 'are'} "
        "undecided."
        + (f" Not counted: {more} of ablations and other matchings, with their name before them." if more else "")
    )


def _experiment(summary: Summary, charts: Charts, full: Summary | None) -> dict[str, Any]:
    plain = [group for group in summary.groups if group.ablation is None]
    # If there are only ablations, the first of them is shown as the main group.
    plain = plain or list(summary.groups[:1])
    longer = {group.name: group for group in full.groups} if full else {}
    mains = [_group(summary, group, charts, longer) for group in plain]
    # Runs that were cut short leave the verdicts to the full ones.
    decided = full if full and any(main["beside"] for main in mains) else summary
    return {
        "anchor": summary.experiment,
        "title": summary.title,
        "notes": summary.notes,
        "claims": decided.claims,
        "tally": tally(decided.claims),
        "elsewhere": decided is not summary,
        "grid": _grid(summary, charts),
        "room": _room(summary, charts),
        "mains": mains,
        "ablations": [_group(summary, group, charts, longer) for group in summary.groups if group not in plain],
        "made": _made(summary.groups),
    }


def _group(summary: Summary, group: Group, charts: Charts, full: Mapping[str, Group]) -> dict[str, Any]:
    beside = _longer(group, full.get(group.name))
    schemes = in_order(list(dict.fromkeys(run["scheme"] for run in group.runs)))
    columns = [c for c in LABELS if all(c in curves for curves in group.curves.values()) and group.curves]
    keys = tables.figure_keys(group)
    runs = tables.by_scheme(group)
    settings = tables.setting_rows(summary, group)
    return {
        "title": heading(group.name),
        "changes": "; ".join(f"{name} = {value}" for name, value, _, changed in settings if changed),
        "axis": group.axis,
        "beside": ", ".join(commit[:7] for commit in beside.made["commits"]) if beside else "",
        "curves": [charts.curve(summary, group, schemes, column, beside) for column in columns],
        "finals": [charts.final(group, schemes, key) for key in FINALS if key in keys],
        "delays": [
            charts.delay(group, key)
            for key in ("sampled_length", "settled_step")
            if group.ablation == OTHER_MATCHINGS and tables.delay_rows(group, key, DELAYS)
        ],
        "policies": [_policy(group, scheme, charts) for scheme in schemes if scheme in group.policies],
        "film": _strips(group, schemes, charts),
        "wide": any(policy.action.shape[1] > NARROW for policy in group.policies.values()),
        "columns": [key.replace("_", " ") for key in keys],
        "rows": [
            {"title": title(s), "colour": colour(s), "seeds": len(runs[s]), "cells": cells}
            for s, cells in tables.figure_table(summary, group)
        ],
        "seeds": _span([len(of_scheme) for of_scheme in runs.values()]),
        "block": _block(group),
        "settings": settings,
    }


def _longer(group: Group, full: Group | None) -> Group | None:
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
    words = re.sub(
        r"(^|-)([sagl])(?=[\d.])", lambda m: f"{', ' if m[1] else ''}{letters[m[2]]} = ", group.setting or ""
    )
    return ", ".join(filter(None, (group.ablation, words))) or group.experiment


def _strips(group: Group, schemes: Sequence[str], charts: Charts) -> Markup | None:
    films = {title(scheme): group.films[scheme] for scheme in schemes if scheme in group.films}
    return Markup(charts.drawing(f"{group.name}-film", doorkey.strips(films, group.config["size"]))) if films else None


def _room(summary: Summary, charts: Charts) -> Markup | None:
    films = [(film, group.config["size"]) for group in summary.groups for film in group.films.values()]
    return Markup(charts.drawing(f"{summary.experiment}-room", doorkey.picture(*films[0]))) if films else None


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


def _grid(summary: Summary, charts: Charts) -> dict[str, Any] | None:
    shapes = {policy.action.shape for group in summary.groups for policy in group.policies.values()}
    if len(shapes) != 1:
        return None
    rows, columns = shapes.pop()
    return {
        "id": charts.grid(summary.experiment, rows, columns),
        "optimal": moves(rows, columns, 1),
        "cautious": moves(rows, columns, rows - 1),
    }


def _made(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Describe how the runs were made; where groups differ, everything is listed."""
    made = [group.made for group in groups]
    latest = max(made, key=lambda m: m["last"])
    packages = ", ".join(f"{name} {version}" for name, version in latest["packages"].items() if version)
    spent = sum({m["first"] + m["last"]: m["seconds"] for m in made}.values())
    return [
        ("command", "; ".join(_all(made, "commands"))),
        ("commit", ", ".join(_all(made, "commits"))),
        ("learner version", ", ".join(sorted({str(m["learner_version"]) for m in made}))),
        ("made", f"{min(m['first'] for m in made)} to {latest['last']}; about {duration(spent)} of one core"),
        ("with", f"Python {', '.join(_all(made, 'python'))}, {packages}; {', '.join(_all(made, 'platform'))}"),
    ]


def _all(made: Sequence[dict[str, Any]], name: str) -> list[str]:
    return list(dict.fromkeys(value for m in made for value in m[name]))


def _block(group: Group) -> str:
    steps = group.x[1:] - group.x[:-1]
    return f"{round(float(steps[0])):,}" if len(steps) else "all"


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
