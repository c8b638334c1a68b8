"""The delay of the repayment on the first screen."""

import numpy as np

from payback_lab.experiments.delay.felt import NAMES
from payback_lab.experiments.delay.ordering import learns, middle
from payback_lab.methods import title
from payback_lab.report.charts.which_delay import delay_points, panel
from payback_lab.report.stories.figures import curves, plain_groups, runs
from payback_lab.report.story import Drawing, Story
from payback_lab.report.summary import Group, Summary

LEARNT = "settled_step"


def first(summary: Summary) -> Group | None:
    """Return the group of the learner's usual λ, 0.95, or the first there is."""
    groups = plain_groups(summary)
    return next((g for g in groups if g.config.get("gae_lambda") == 0.95), next(iter(groups), None))


def learners(group: Group) -> dict[str, float]:
    """Return the schemes whose median seed learns, with its step, the soonest first."""
    found = {}
    for scheme in dict.fromkeys(run["scheme"] for run in group.runs):
        steps = np.array([np.inf if run[LEARNT] is None else run[LEARNT] for run in runs([group], scheme)])
        if learns(steps):
            found[scheme] = float(middle(steps))
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


def how_soon(summary: Summary) -> str | None:
    """Say when each matching learns."""
    group = first(summary)
    steps = learners(group) if group else {}
    if group is None or not steps:
        return None
    said = [f"{title(scheme)} {step / 1e6:.2f} M" for scheme, step in steps.items()]
    return f"Steps until episodes stay short at λ = {group.config['gae_lambda']:g}, medians: {', '.join(said)}."


def who_does_not(summary: Summary) -> str | None:
    """Say which matchings do not learn in their median seed."""
    group = first(summary)
    if group is None:
        return None
    late = [s for s in dict.fromkeys(run["scheme"] for run in group.runs) if s not in learners(group)]
    return f"Not within {group.x[-1] / 1e6:.0f} M steps: {', '.join(map(title, late))}." if late else None


def how_many(summary: Summary) -> str:
    """Say how many runs there are; what was predicted stands in the docs."""
    total = sum(len(group.runs) for group in plain_groups(summary))
    return f"{total} runs so far; what was predicted was committed before them (docs/predictions.md)."


def conclusion(summary: Summary) -> str | None:
    """Conclude which matching was the soonest."""
    group = first(summary)
    steps = learners(group) if group else {}
    if not group or len(steps) < 2:
        return None
    best = next(iter(steps))
    seeds = len(runs([group], best))
    return f"The soonest is {title(best)} ({seeds} seed{'s' * (seeds != 1)})."


def picture(summary: Summary) -> Drawing | None:
    """Draw the curves at that λ."""
    return curves(first(summary), ("none", "grm-3", "grm-30", "grm-100"), "Length of episodes by step")


def charts(summary: Summary) -> list[Drawing]:
    """Draw when the cells learn against three of the figures that were to predict it."""
    points = delay_points(summary)
    shown = [NAMES[name] for name in ("share", "beside_repayments", "beside_all_noise")]
    return [
        Drawing(f"by-candidate-{n}", f"When cells learn, against {symbol}", panel(points, symbol, first=n == 1), {})
        for n, symbol in enumerate(shown, start=1)
        if points
    ]


STORY = Story("Which one learns soonest?", (how_soon, who_does_not, how_many), conclusion, picture, charts, shown=0)
