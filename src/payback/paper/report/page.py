"""Write report.html, one file that opens without a network, and figures/ beside it."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from payback.paper.display import duration
from payback.paper.experiments.plan import Claim
from payback.paper.report import tables
from payback.paper.report.charts import Charts
from payback.paper.report.figures import FINALS, LABELS, colour, known_first, titled
from payback.paper.report.grids import NARROW, moves
from payback.paper.report.policy import outcome
from payback.paper.report.summary import Group, Summary

HERE = Path(__file__).parent


def page(summaries: Sequence[Summary]) -> tuple[str, Charts]:
    """Compose the page; return it with the charts it holds, for the static figures."""
    charts = Charts()
    experiments = [_experiment(summary, charts) for summary in summaries]
    present = {run["scheme"] for summary in summaries for group in summary.groups for run in group.runs}
    # Autoescape: whatever comes from records, summaries or experiments is text, never markup.
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((HERE / "page.html").read_text())
    text = template.render(
        experiments=experiments,
        schemes=[
            {"id": s, "title": titled(s), "colour": colour(s), "dashed": s.endswith("-raw")}
            for s in known_first(sorted(present))
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
    """Write JSON that may stand inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts in words.

    >>> tally([Claim("", "", "", "", "holds"), Claim("", "", "", "", "undecided")])
    'Of 2 statements, 1 holds, 0 do not hold and 1 is undecided.'
    """
    count = Counter(claim.verdict for claim in claims)
    holds, open_ = count["holds"], count["undecided"]
    return (
        f"Of {len(claims)} statements, {holds} {'holds' if holds == 1 else 'hold'}, {count['does not hold']} "
        f"{'does' if count['does not hold'] == 1 else 'do'} not hold and {open_} {'is' if open_ == 1 else 'are'} "
        "undecided."
    )


def _experiment(summary: Summary, charts: Charts) -> dict[str, Any]:
    groups = [_group(summary, group, charts) for group in summary.groups]
    return {
        "anchor": summary.experiment,
        "title": summary.title,
        "notes": summary.notes,
        "claims": summary.claims,
        "tally": tally(summary.claims),
        "grid": _grid(summary, charts),
        "main": groups[0],
        "ablations": groups[1:],
        "made": _made(summary.groups[0]),
    }


def _group(summary: Summary, group: Group, charts: Charts) -> dict[str, Any]:
    schemes = known_first(list(dict.fromkeys(run["scheme"] for run in group.runs)))
    columns = [c for c in LABELS if all(c in curves for curves in group.curves.values()) and group.curves]
    keys = tables.figure_keys(group)
    runs = tables.by_scheme(group)
    settings = tables.setting_rows(summary, group)
    return {
        "title": group.name.partition("+")[2] or group.name,
        "changes": "; ".join(f"{name} = {value}" for name, value, _, changed in settings if changed),
        "curves": [charts.curve(group, schemes, column) for column in columns],
        "finals": [charts.final(group, schemes, key) for key in FINALS if key in keys],
        "policies": [_policy(group, scheme, charts) for scheme in schemes if scheme in group.policies],
        "wide": any(policy.action.shape[1] > NARROW for policy in group.policies.values()),
        "columns": [key.replace("_", " ") for key in keys],
        "rows": [
            {"title": titled(s), "colour": colour(s), "seeds": len(runs[s]), "cells": cells}
            for s, cells in tables.figure_table(summary, group)
        ],
        "seeds": _span([len(of_scheme) for of_scheme in runs.values()]),
        "block": _block(group),
        "settings": settings,
    }


def _policy(group: Group, scheme: str, charts: Charts) -> dict[str, Any]:
    policy = group.policies[scheme]
    values = [cell["value"] for cell in tables.policy_cells(policy) if "value" in cell]
    return {
        "id": charts.policy(group, scheme),
        "scheme": scheme,
        "title": titled(scheme),
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


def _made(group: Group) -> list[tuple[str, str]]:
    made = group.made
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items() if version)
    return [
        ("command", "; ".join(made["commands"])),
        ("commit", ", ".join(made["commits"])),
        ("learner version", str(made["learner_version"])),
        ("made", f"{made['first']} to {made['last']}; {duration(made['seconds'])} of one core"),
        ("with", f"Python {', '.join(made['python'])}, {packages}; {', '.join(made['platform'])}"),
    ]


def _block(group: Group) -> str:
    steps = group.episodes[1:] - group.episodes[:-1]
    return f"{round(float(steps[0]))}" if len(steps) else "all"


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
