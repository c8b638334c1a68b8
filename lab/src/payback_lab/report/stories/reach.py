"""The reach of each method on the first screen."""

from payback_lab.experiments.reach.config import METHODS
from payback_lab.methods import title
from payback_lab.report.charts.reach import NAMES, length_chart, reach_rows, solved_chart, speed_chart
from payback_lab.report.stories.figures import curves, mean, plain_groups, runs, share
from payback_lab.report.story import Drawing, Story
from payback_lab.report.summary import Group, Summary

LEARNT = "settled_step"
FEW = 0.2
"""The share of seeds up to which a method is said to learn seldom."""


def size(group: Group) -> int:
    """Return the side of the grid."""
    return int(group.config["size"])


def telling(summary: Summary) -> Group | None:
    """Return the grid with the most seeds, then the smallest, where GRM learns in every seed and no bonus in few."""
    found: list[tuple[int, int, Group]] = []
    for group in plain_groups(summary):
        learnt = [[run[LEARNT] is not None for run in runs([group], scheme)] for scheme in METHODS]
        none, _, repaid = learnt
        if all(learnt) and all(repaid) and sum(none) <= FEW * len(none):
            found.append((-min(map(len, learnt)), size(group), group))
    return min(found, key=lambda one: one[:2])[2] if found else None


def who_learns(summary: Summary) -> str | None:
    """Say who learns on the telling grid."""
    group = telling(summary)
    if group is None:
        return None
    counts = [f"{title(scheme)} in {share(runs([group], scheme), LEARNT)}" for scheme in METHODS]
    return f"On the {size(group)}×{size(group)} grid these learn: {', '.join(counts)} runs."


def how_soon(summary: Summary) -> str | None:
    """Say when GRM learns there, and how the raw bonus ends."""
    group = telling(summary)
    step, raw = (mean(runs([group], s), key) for s, key in (("grm-30", LEARNT), ("im", "mean_length")))
    if group is None or step is None or raw is None:
        return None
    return (
        f"GRM with D = 30 stays short from {step / 1e6:.2f} M steps on; with the raw bonus episodes end at {raw:,.0f} "
        f"of at most {10 * size(group) ** 2:,} steps."
    )


def what_was_run(summary: Summary) -> str:
    """Say which sizes were run."""
    sizes = sorted(size(group) for group in plain_groups(summary))
    total = sum(len(group.runs) for group in plain_groups(summary))
    return f"{total} runs so far, on {'grids' if len(sizes) > 1 else 'a grid'} of side {', '.join(map(str, sizes))}."


def conclusion(summary: Summary) -> str | None:
    """Conclude if GRM alone, or nearly alone, learns on the telling grid."""
    group = telling(summary)
    others = [bool(run[LEARNT]) for run in runs([group], "none", "im")] if group else []
    if not others or sum(others) > FEW * len(others):
        return None
    rarely = "seldom do" if any(others) else "do not"
    return f"Where exploration is needed, a bonus that is repaid learns what no bonus and the raw bonus {rarely}."


def picture(summary: Summary) -> Drawing | None:
    """Draw the curves of the telling grid."""
    group = telling(summary) or next(iter(plain_groups(summary)), None)
    where = f", {size(group)}×{size(group)}" if group else ""
    return curves(group, METHODS, f"Length of episodes by step{where}")


def charts(summary: Summary) -> list[Drawing]:
    """Draw share solved, final length and speed against the size of the grid."""
    found = [row for row in reach_rows(summary) if row.scheme in NAMES]
    if not found:
        return []
    return [
        Drawing("solved-by-size", "Episodes solved by the trained agent", solved_chart(found, legend=True), {}),
        Drawing("length-by-size", "Its length, over the fewest steps possible", length_chart(found), {}),
        Drawing("speed-by-size", "Step from which episodes stay short", speed_chart(found), {}),
    ]


STORY = Story(
    "How large a grid does each method learn?",
    (who_learns, how_soon, what_was_run),
    conclusion,
    picture,
    charts,
)
