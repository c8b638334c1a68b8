"""The page report.html: one file that opens without a network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.doorkey.config import numbers_of
from payback_lab.methods import in_order, is_raw, title
from payback_lab.policy import outcome
from payback_lab.prior_work.summary import Text
from payback_lab.report import tables
from payback_lab.report.cards import CARDS, card_of
from payback_lab.report.charts import doorkey
from payback_lab.report.charts.cliff import NARROW, moves
from payback_lab.report.charts.collection import Charts, Drawing
from payback_lab.report.charts.curves import DELAYS, LABELS
from payback_lab.report.charts.style import colour
from payback_lab.report.claims import claims_view
from payback_lab.report.dots import Panel, in_order_of_interest, panel_of_group
from payback_lab.report.summary import Group, Summary
from payback_lab.running.progress import duration
from payback_lab.runs import GroupName

HERE = Path(__file__).parent
FEW = 4
"""On a page of more experiments, one without a card of its own has all curves folded: its card shows the first."""
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
    experiments = [section(summary, charts, full.get(summary.experiment), len(summaries)) for summary in summaries]
    present = {run["scheme"] for summary in summaries for group in summary.groups for run in group.runs}
    # Autoescape, because text from records, summaries or experiments must never become markup.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((HERE / "page.html").read_text())
    # Vega, Vega-Lite and vega-embed as one script; the stub of `javascript_bundle` forgets its default.
    library = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue]
    text = template.render(
        experiments=experiments,
        prior=prior,
        schemes=[
            {"id": s, "title": title(s), "colour": colour(s), "dashed": is_raw(s)} for s in in_order(sorted(present))
        ],
        style=Markup((HERE / "page.css").read_text()),
        script=Markup((HERE / "page.js").read_text()),
        bundle=Markup(library.replace("</script", "<\\/script")),
        charts_json=Markup(json_in_html(charts.content())),
    )
    return text, charts


def json_in_html(value: Any) -> str:
    """Write JSON for a script element; no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def section(summary: Summary, charts: Charts, full: Summary | None, experiments: int = 1) -> dict[str, Any]:
    """Prepare one experiment; `full` are its committed results, which decide where these runs were cut short.

    `experiments` is how many the page has.
    """
    plain = [group for group in summary.groups if group.ablation is None]
    # If there are only ablations, the first of them is shown as the main group.
    plain = plain or list(summary.groups[:1])
    longer = {group.name: group for group in full.groups} if full else {}
    mains = [group_view(summary, group, charts, longer) for group in plain]
    decided = full if full and any(main["beside"] for main in mains) else summary
    return {
        "anchor": summary.experiment,
        "title": summary.title,
        "notes": summary.notes,
        "card": _card(decided, charts),
        "claims": claims_view(decided.claims),
        "elsewhere": decided is not summary,
        "grid": _grid(summary, charts),
        "room": _room(summary, charts),
        "mains": mains,
        "shown": card_of(summary.experiment).shown if summary.experiment in CARDS or experiments <= FEW else 0,
        "ablations": [group_view(summary, group, charts, longer) for group in summary.groups if group not in plain],
        "made": _made(summary.groups),
    }


def _card(summary: Summary, charts: Charts) -> dict[str, Any]:
    """Prepare the experiment's card on the first screen, and the charts before its curves."""
    card = card_of(summary.experiment)
    picture = card.picture(summary)
    return {
        "question": card.question,
        "finding": card.finding,
        "numbers": card.numbers(summary),
        "panel": picture if isinstance(picture, Panel) else None,
        "chart": charts.add(summary.experiment, picture) if isinstance(picture, Drawing) else None,
        "charts": [charts.add(summary.experiment, drawing) for drawing in card.charts(summary)],
    }


def _room(summary: Summary, charts: Charts) -> Markup | None:
    films = [(film, group.config["size"]) for group in summary.groups for film in group.films.values()]
    return Markup(charts.drawing(f"{summary.experiment}-room", doorkey.picture(*films[0]))) if films else None


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
        "seeds": format_seeds([len(runs) for runs in tables.by_scheme(group).values()]),
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


def format_seeds(counts: Sequence[int]) -> str:
    """Write how many seeds there are of each scheme.

    >>> format_seeds([1, 1]), format_seeds([3, 3]), format_seeds([1, 3])
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
