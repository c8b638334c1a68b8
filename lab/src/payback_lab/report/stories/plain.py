"""The story of an experiment that brings none of its own: how much was run, and its first learning curves."""

from payback_lab.report.charts.curves import LABELS
from payback_lab.report.charts.picture import first_column
from payback_lab.report.stories.figures import curves, plain_groups
from payback_lab.report.story import Drawing, Story
from payback_lab.report.summary import Summary


def how_much(summary: Summary) -> str:
    """Say how many runs there are."""
    counts = [len(group.runs) for group in plain_groups(summary) or summary.groups]
    schemes = {run["scheme"] for group in summary.groups for run in group.runs}
    runs, settings = sum(counts), len(counts)
    return (
        f"{runs} run{'s' * (runs != 1)} of {len(schemes)} scheme{'s' * (len(schemes) != 1)} at {settings} "
        f"setting{'s' * (settings != 1)}."
    )


def picture(summary: Summary) -> Drawing | None:
    """Draw the first curves there are."""
    group = next(iter(plain_groups(summary) or summary.groups), None)
    column = first_column(group) if group else None
    return curves(group, caption=LABELS[column].capitalize() if column else "")


STORY = Story("", (how_much,), lambda summary: None, picture)
