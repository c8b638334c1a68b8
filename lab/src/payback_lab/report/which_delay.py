"""The tables and figures of docs/which-delay.md, from the committed summaries of `delay`."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

import payback
from payback_lab.claims.evidence import Cell, Evidence, gather
from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.delay.experiment import ALL, LAMBDAS, SCHEMES, setting
from payback_lab.experiments.delay.felt import NAMES, felt
from payback_lab.experiments.delay.ordering import (
    correlated,
    correlation,
    felt_by_cell,
    figures_of,
    learns,
    middle,
    outcomes,
)
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.style import WORDS, Layered, figure_of
from payback_lab.report.doorkey_tables import format_mean
from payback_lab.report.markdown import rows
from payback_lab.report.store import results_of
from payback_lab.report.summary import Summary

INK = {"0.8": "#009e73", "0.95": "#0072b2", "0.99": "#d55e00", "1": "#4d4d4d"}
"""One colour per λ."""
NEVER = 3.6
"""Where a seed that does not learn within 3 million steps is drawn, in million steps."""
WIDTH, HEIGHT = 250, 220
GAMMA = 0.995


def evidence_of(summary: Summary) -> Evidence:
    """Sort the runs of the summary into cells."""
    return gather(results_of(summary.groups), summary.experiment)


def soonest(evidence: Evidence, lam: float) -> str | None:
    """Return the matching that learns soonest at a λ, by its median seed; None where none learns."""
    there = [(setting(lam), scheme) for scheme in SCHEMES if (setting(lam), scheme) in evidence.cells]
    medians = {scheme: middle(steps) for (_, scheme), steps in zip(there, outcomes(evidence, there), strict=True)}
    learning = {scheme: step for scheme, step in medians.items() if np.isfinite(step)}
    return min(learning, key=lambda scheme: learning[scheme]) if learning else None


def glance(evidence: Evidence) -> str:
    """Write when each matching learns at each λ, the soonest of a λ in bold."""
    lines = []
    for lam in sorted(LAMBDAS):
        steps = {scheme: _outcome(evidence, (setting(lam), scheme))[1] for scheme in SCHEMES}
        best = soonest(evidence, lam)
        lines.append((f"{lam:g}", *(f"**{text}**" if scheme == best else text for scheme, text in steps.items())))
    return rows(("λ", *map(name_of, SCHEMES)), lines)


def cells_table(evidence: Evidence) -> str:
    """Write every planned cell: its candidates, and when it learns."""
    known = felt_by_cell(ALL)
    lines = []
    for lam, cell in ((lam, cell) for lam in LAMBDAS for cell in ALL if cell[0] == setting(lam)):
        figures = [f"{value:.3f}" for value in known[cell]]
        lines.append((f"{lam:g}", name_of(cell[1]), *figures, *_outcome(evidence, cell)))
    return rows(("λ", "matching", *NAMES.values(), "seeds", "solved from, median"), lines)


def _outcome(evidence: Evidence, cell: Cell) -> tuple[str, str]:
    if cell not in evidence.cells:
        return "0", "not run"
    (steps,) = outcomes(evidence, [cell])
    there = int(np.isfinite(steps).sum())
    median = f"{middle(steps) / 1e6:.2f} M" if learns(steps) else "never"
    return f"{len(steps)}", median if there in (0, len(steps)) else f"{median} ({there} of {len(steps)} learn)"


def correlations_table(evidence: Evidence) -> str:
    """Write each candidate's rank correlation with how soon cells learn: at each λ, and over all cells there are."""
    there = [cell for cell in ALL if cell in evidence.cells]
    lines = []
    for name, symbol in NAMES.items():
        own = [_within(evidence, name, [cell for cell in there if cell[0] == setting(lam)]) for lam in LAMBDAS]
        # One seed per cell has no interval.
        lines.append((symbol, *own, format_mean(correlated(evidence, there, name), ".2f")))
    header = ("figure", *(f"λ = {lam:g}" for lam in LAMBDAS), f"all {len(there)} cells")
    return rows(header, lines)


def _within(evidence: Evidence, name: str, cells: Sequence[Cell]) -> str:
    steps = outcomes(evidence, cells)
    if sum(map(learns, steps)) < 2:
        return "–"
    return f"{float(correlation(figures_of(cells)[name], np.array([middle(one) for one in steps]))):.2f}"


def delay_points(summary: Summary) -> list[dict[str, Any]]:
    """List every cell at every candidate: the median over its seeds, and each seed; never is drawn above all."""
    evidence = evidence_of(summary)
    points = []
    for cell in evidence.cells:
        (steps,) = outcomes(evidence, [cell])
        _, _, gamma, lam = parse_sized_setting(cell[0])
        known = felt(cell[1], gamma, lam)
        shared = {"λ": f"{lam:g}", "scheme": name_of(cell[1]), "seeds": len(steps), "learns": learns(steps)}
        for name, symbol in NAMES.items():
            at = shared | {"figure": symbol, "value": getattr(known, name), "median": _drawn(float(middle(steps)))}
            points += [at | {"seed": n, "step": _drawn(float(step))} for n, step in enumerate(steps)]
    return points


def _drawn(step: float) -> float:
    return NEVER if np.isinf(step) else step / 1e6


def delay_figure(summary: Summary) -> dict[str, Any]:
    """Draw when the cells learn against each candidate, one panel each, as a Vega-Lite specification with its data."""
    points = delay_points(summary)
    panels = [panel(points, symbol, first=n == 0) for n, symbol in enumerate(NAMES.values())]
    counts = [point["seeds"] for point in points] or [0]
    cells = len({(point["λ"], point["scheme"]) for point in points})
    subtitle = (
        f"{cells} of 26 cells, seeds per cell: {least_to_most(counts)}. Large: the median of a cell; small: each seed."
    )
    heading = alt.TitleParams("Which figure says how soon an agent learns? DoorKey 11×11", subtitle=subtitle, **WORDS)
    return figure_of(alt.concat(*panels, columns=3, spacing=24).properties(title=heading))


def panel(points: list[dict[str, Any]], symbol: str, first: bool) -> Layered:
    """Draw when the cells learn against one candidate; the first panel has the legend."""
    data = alt.Chart(alt.Data(values=[point for point in points if point["figure"] == symbol]))
    x = alt.X("value:Q", title=symbol, scale=alt.Scale(nice=False, padding=12), axis=alt.Axis(grid=False, tickCount=5))
    scale = alt.Scale(type="log", domain=[0.2, 4.2], nice=False)
    ticks = alt.Axis(values=[0.2, 0.5, 1, 2, 3, NEVER], labelExpr=f"datum.value == {NEVER} ? 'never' : datum.label")
    # Only the panels at the left say what is drawn upwards.
    y_title = "solved from (M steps)" if first or symbol == list(NAMES.values())[3] else None
    legend = alt.Legend(title="λ", orient="right") if first else None
    ink = alt.Color("λ:N", scale=alt.Scale(domain=list(INK), range=list(INK.values())), legend=legend)
    seeds = data.mark_point(filled=True, size=16, opacity=0.45).encode(
        x=x, y=alt.Y("step:Q", title=y_title, scale=scale, axis=ticks), color=ink
    )
    names = ["scheme:N", "λ:N", "value:Q", "median:Q", "seeds:Q"]
    medians = data.transform_filter("datum.seed == 0").mark_point(filled=True, size=110, opacity=0.9)
    large = medians.encode(x=x, y=alt.Y("median:Q", scale=scale), color=ink, tooltip=[alt.Tooltip(n) for n in names])
    return alt.layer(seeds, large).properties(width=WIDTH, height=HEIGHT)


def felt_figure() -> dict[str, Any]:
    """Draw effective share and interest against the delay, for four λ and two lengths of rollout."""
    delays = np.unique(np.geomspace(1, 300, 60).round().astype(int)).tolist()
    rows = [
        {
            "delay": delay,
            "λ": f"{lam:g}",
            "felt": payback.felt_share(payback.grm(GAMMA, delay), lam, **more),
            "with": name,
        }
        for lam in LAMBDAS
        for name, more in (("whole episodes", {}), ("128-step rollouts", {"rollout": 128}))
        for delay in delays
    ]
    interest = [{"delay": delay, "interest": payback.interest(payback.grm(GAMMA, delay))} for delay in delays]
    x = alt.X(
        "delay:Q",
        title="delay D (steps)",
        scale=alt.Scale(type="log", domain=[1, 300], nice=False),
        axis=alt.Axis(grid=False, values=[1, 3, 10, 30, 100, 300]),
    )
    # Room for the words in whatever font the reader's browser has.
    line: dict[str, Any] = {"orient": "right", "columns": 1, "labelLimit": 260, "symbolType": "stroke"}
    ink = alt.Color(
        "λ:N",
        scale=alt.Scale(domain=list(INK), range=list(INK.values())),
        legend=alt.Legend(title="λ", symbolStrokeWidth=3, **line),
    )
    dash = alt.StrokeDash(
        "with:N",
        title=None,
        scale=alt.Scale(domain=["whole episodes", "128-step rollouts"], range=[[1, 0], [5, 3]]),
        legend=alt.Legend(symbolSize=400, **line),
    )
    share = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=alt.Y("felt:Q", title="effective share of the bonus, η", scale=alt.Scale(domain=[0, 1])),
            color=ink,
            strokeDash=dash,
        )
    )
    price = (
        alt.Chart(alt.Data(values=interest))
        .mark_line(strokeWidth=2, color="#222222")
        .encode(x=x, y=alt.Y("interest:Q", title="interest at γ = 0.995", scale=alt.Scale(domain=[1, 5])))
    )
    size = {"width": 330, "height": 240}
    return figure_of(alt.hconcat(share.properties(**size), price.properties(**size), spacing=30))
