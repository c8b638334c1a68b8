"""The charts of the studies: the score against α method by method, and grids of tasks by methods."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.arena.finished import SEEDS
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.analysis import SAFE, Reached, SafeRange
from payback_lab.report.charts.arena import SHORT, name_of
from payback_lab.report.charts.style import WORDS, figure_of

PANEL = {"width": 128, "height": 84}
TUNED = {"no": "no tuning needed", "in between": "some tuning", "yes": "needs tuning", "open": "open"}
SAFE_INK, UNSAFE_INK = "#0072b2", "#b8b8b2"
STATES = {"solved": "#0072b2", "found, then lost": "#d55e00", "partly": "#cfe3f1", "not found": "#ececea"}
"""What became of a task, and its colour: the final agent solves it; it was solved in training and is not at the end; at
least half of the episodes are solved; fewer are."""
SPLIT = "split(datum.label, '|')"
"""A label with a bar in it takes two lines."""
WHITE = ("solved", "found, then lost")
"""On these colours the text is white."""


def label_of(method: str) -> str:
    """Return a method's short name.

    >>> label_of("phased"), label_of("two-critics-0.99-back")
    ('phased-in', 'two critics, taken back')
    """
    return SHORT.get(method, name_of(method))


def made_of(made: int, planned: int, seeds: Sequence[int]) -> str:
    """Say how much of a study is in, and with how many seeds.

    >>> made_of(12, 30, [1, 2]), made_of(30, 30, [3, 3])
    ('12 of 30 runs, 1 to 2 seeds of each cell shown.', 'All 30 runs, 3 seeds of each cell.')
    """
    if made >= planned:
        return f"All {planned} runs, {least_to_most(seeds)} seeds of each cell."
    many = least_to_most(seeds) if seeds else "0"
    return f"{made} of {planned} runs, {many} seed{'s' * (max(seeds, default=0) != 1)} of each cell shown."


def safe_points(rows: Sequence[SafeRange], heads: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the points of every panel: its own line last, so that it lies above; intervals from 3 seeds on."""
    found = []
    for panel in rows:
        for row in (*(other for other in rows if other is not panel), panel):
            at = {"panel": heads[panel.method], "line": row.method, "own": row is panel}
            for alpha, score in row.scores.items():
                low, high = (score.low, score.high) if row.seeds[alpha] >= SEEDS else (score.value, score.value)
                ends = {"low": low, "high": high, "safe": alpha in row.safe}
                found.append(at | {"alpha": alpha, "score": score.value} | ends)
    return found


def safe_figure(rows: Sequence[SafeRange], made: int, planned: int) -> dict[str, Any]:
    """Draw every method's score against α in a panel of its own, the others in grey; blue where an α is safe."""
    ordered = sorted(rows, key=lambda row: (-len(row.safe), -max(score.value for score in row.scores.values())))
    best = max(score.value for row in rows for score in row.scores.values())
    heads = {row.method: f"{label_of(row.method)}|{len(row.safe)} of {len(row.scores)} safe" for row in ordered}
    points = safe_points(ordered, heads)
    table = alt.Chart(alt.Data(values=points))
    x = alt.X(
        "alpha:Q",
        title="coefficient α",
        scale=alt.Scale(type="log", domain=[0.0009, 0.45], nice=False),
        axis=alt.Axis(values=list(safe_range.ALPHAS), format="~g", grid=False, labelFontSize=10, labelAngle=-40),
    )
    top = max(0.05, 1.1 * max(point["high"] for point in points))
    scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("score:Q", title="score", scale=scale, axis=alt.Axis(tickCount=3))
    others = (
        table.transform_filter("!datum.own").mark_line(strokeWidth=1, color="#deded8").encode(x=x, y=y, detail="line:N")
    )
    own = table.transform_filter("datum.own")
    rule = own.mark_rule(strokeDash=[4, 3], color="#8a8a84").encode(y=alt.datum(SAFE * best, scale=scale))
    line = own.mark_line(strokeWidth=2, color="#44443f").encode(x=x, y=y)
    spans = own.mark_rule(strokeWidth=2, color="#44443f").encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q")
    ink = alt.condition("datum.safe", alt.value(SAFE_INK), alt.value("white"))
    edge = alt.condition("datum.safe", alt.value(SAFE_INK), alt.value("#44443f"))
    dots = own.mark_point(filled=True, size=70, opacity=1, strokeWidth=1.5).encode(x=x, y=y, fill=ink, stroke=edge)
    header = alt.Header(labelFontSize=12, labelLimit=200, labelExpr=SPLIT, labelLineHeight=14, labelPadding=16)
    panels = alt.layer(others, rule, line, spans, dots).properties(**PANEL).facet(
        facet=alt.Facet("panel:N", title=None, sort=list(heads.values()), header=header),
        columns=3,
        spacing=12,
    )  # fmt: skip
    seeds = [n for row in rows for n in row.seeds.values()]
    subtitle = [
        made_of(made, planned, seeds),
        " and ".join(safe_range.TASKS),
        "Bonus: α/n of the agent's own view",
        "Blue: safe, at least half of the best score",
        "Intervals from 3 seeds on",
    ]
    heading = alt.TitleParams("Score against α: who needs tuning?", subtitle=subtitle, **WORDS)
    return figure_of(panels.properties(title=heading))


def state_of(one: Reached) -> str:
    """Return what became of a task, as `STATES` names it.

    >>> state_of(Reached(solved=False, share=0.1, best=0.97, collapsed=1, seeds=1))
    'found, then lost'
    """
    if one.solved:
        return "solved"
    if one.found:
        return "found, then lost"
    return "partly" if one.share >= 0.5 else "not found"


def grid_rows(cells: Mapping[tuple[str, str], Reached | None], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return one row per cell of a grid: (row's name, column's id) → what was reached."""
    found = []
    for (row, column), one in cells.items():
        at: dict[str, Any] = {"row": row, "column": columns[column]}
        if one is None:
            found.append(at | {"state": "not run", "share": "·", "seeds": "", "white": False})
            continue
        state = state_of(one)
        share = f"{one.share:.0%}"
        seeds = f"{one.seeds} seed{'s' * (one.seeds != 1)}"
        seeds = f"{one.collapsed} of {one.seeds} lost" if one.collapsed else seeds
        found.append(at | {"state": state, "share": share, "seeds": seeds, "white": state in WHITE})
    return found


def grid(
    cells: Mapping[tuple[str, str], Reached | None],
    columns: Mapping[str, str],
    *,
    size: tuple[int, int] = (63, 36),
    heads: bool = True,
    legend: bool = True,
) -> Any:
    """Draw rows by methods: the final agent's share in colour and number, the seeds below; empty where not run."""
    points = grid_rows(cells, columns)
    rows = list(dict.fromkeys(point["row"] for point in points))
    base = alt.Chart(alt.Data(values=points))
    named = alt.Axis(
        labels=heads,
        orient="top",
        labelAngle=0,
        labelExpr=SPLIT,
        ticks=False,
        domain=False,
        labelFontSize=11,
        labelPadding=20 if any("|" in head for head in columns.values()) else 6,
    )
    x = alt.X("column:N", title=None, sort=list(columns.values()), axis=named)
    y = alt.Y(
        "row:N", title=None, sort=rows,
        axis=alt.Axis(
            labelExpr=SPLIT,
            ticks=False,
            domain=False,
            labelLimit=210,
            minExtent=200,  # room for the longest name in whatever font the reader's browser has
            labelPadding=8,
            labelFontSize=12,
        ),
    )  # fmt: skip
    shown = (
        alt.Legend(title=None, orient="bottom", columns=4, columnPadding=24, symbolType="square") if legend else None
    )
    ink = alt.Color("state:N", scale=alt.Scale(domain=list(STATES), range=list(STATES.values())), legend=shown)
    text = alt.condition("datum.white", alt.value("white"), alt.value("#33332f"))
    there, absent = base.transform_filter("datum.state != 'not run'"), base.transform_filter("datum.state == 'not run'")
    inset: dict[str, Any] = {"width": size[0] - 4, "height": size[1] - 4, "cornerRadius": 3}
    boxes = there.mark_rect(**inset).encode(x=x, y=y, color=ink)
    empty = absent.mark_rect(**inset, fill="white", stroke="#d0d0ca", strokeDash=[3, 3]).encode(x=x, y=y)
    shares = there.mark_text(fontSize=13, fontWeight=600, dy=-6).encode(x=x, y=y, text="share:N", color=text)
    seeds = there.mark_text(fontSize=9, dy=8).encode(x=x, y=y, text="seeds:N", color=text)
    return alt.layer(empty, boxes, shares, seeds).properties(width=size[0] * len(columns), height=size[1] * len(rows))


WORDS_OF_GRID = (
    "Episodes that the final agent solves, of 1,000, in the median seed.",
    "Lost: seeds that collapsed in training. Dashed: not run yet.",
)


def depth_figure(
    cells: Mapping[tuple[str, str], Reached | None], methods: Sequence[str], made: int, planned: int
) -> dict[str, Any]:
    """Draw how deep each method explores: tasks by methods."""
    columns = {method: label_of(method).replace(", ", ",|").replace(" D", "|D") for method in methods}
    seeds = [one.seeds for one in cells.values() if one is not None]
    subtitle = [made_of(made, planned, seeds), *WORDS_OF_GRID]
    heading = alt.TitleParams("How deep each method explores", subtitle=subtitle, **WORDS)
    return figure_of(grid(cells, columns).properties(title=heading))


def learned_figure(
    by_task: Mapping[str, Mapping[tuple[str, str], Reached | None]], methods: Sequence[str], made: int, planned: int
) -> dict[str, Any]:
    """Draw bonuses by methods, a grid for each task."""
    columns = {method: label_of(method).replace(", ", ",|").replace(" D", "|D") for method in methods}
    panels = []
    for n, (task, cells) in enumerate(by_task.items()):
        one = grid(cells, columns, size=(84, 32), heads=n == 0, legend=n == len(by_task) - 1)
        panels.append(one.properties(title=alt.TitleParams(task, fontSize=13, anchor="start", frame="group")))
    seeds = [one.seeds for cells in by_task.values() for one in cells.values() if one is not None]
    subtitle = [made_of(made, planned, seeds), *WORDS_OF_GRID]
    heading = alt.TitleParams("Which learned bonus suits which method", subtitle=subtitle, **WORDS)
    return figure_of(alt.vconcat(*panels, spacing=8).properties(title=heading))
