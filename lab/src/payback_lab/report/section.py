"""One experiment as the page shows it: its card on the first screen, its curves, and what unfolds below them."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from payback_lab.report.charts import doorkey
from payback_lab.report.charts.cliff import moves
from payback_lab.report.charts.collection import Charts
from payback_lab.report.claims_view import claims_view
from payback_lab.report.dots import Panel
from payback_lab.report.group_view import group_view
from payback_lab.report.stories import STORIES, story_of
from payback_lab.report.story import Drawing
from payback_lab.report.summary import Group, Summary
from payback_lab.running.progress import duration

FEW = 4
"""On a page of more experiments, one without a story of its own has all curves folded: its card shows the first."""


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
        "shown": story_of(summary.experiment).shown if summary.experiment in STORIES or experiments <= FEW else 0,
        "ablations": [group_view(summary, group, charts, longer) for group in summary.groups if group not in plain],
        "made": _made(summary.groups),
    }


def _card(summary: Summary, charts: Charts) -> dict[str, Any]:
    """Tell the experiment's story: what stands on the first screen, and the charts before its curves."""
    story = story_of(summary.experiment)
    picture = story.picture(summary)
    return {
        "question": story.question,
        "sentences": [text for told in story.sentences if (text := told(summary))],
        "conclusion": story.conclusion(summary),
        "panel": picture if isinstance(picture, Panel) else None,
        "chart": charts.add(summary.experiment, picture) if isinstance(picture, Drawing) else None,
        "charts": [charts.add(summary.experiment, drawing) for drawing in story.charts(summary)],
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
