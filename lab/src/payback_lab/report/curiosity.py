"""The tables and the figure of docs/results/curiosity.md, from the committed summary of `curiosity`."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from payback_lab.claims.wording import format_p
from payback_lab.experiments.curiosity.comparison import (
    Compared,
    Runs,
    compare,
    gap,
    lengths,
    predictions,
    share,
    solved,
    steps_until,
)
from payback_lab.experiments.curiosity.experiment import BONUSES, FEW, PAIRED, SCHEMES
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.seeds import seed_rows, seeds_panel
from payback_lab.report.charts.style import WORDS, Layered, figure_of
from payback_lab.report.markdown import rows
from payback_lab.report.summary import Summary
from payback_lab.statistics import Estimate, mean_estimate

PAIRS = (("grm-30", "im"), ("grm-30", "none"), ("grm-10", "im"), ("pbim", "im"), ("im", "none"))
"""What is compared; the first two pairs are the questions."""
COLUMNS = ("seeds", "seeds that solve it", "steps until then, thousands", "final length")
Cells = Mapping[tuple[str, str], Runs]
"""(bonus, scheme) → its runs; a cell that has not been run is not there."""
NAMES = {
    "none": "no bonus",
    "im": "raw bonus",
    "pbim": "PBIM (repaid at the end)",
    "grm-10": "GRM (repaid bonus), D = 10",
    "grm-30": "GRM (repaid bonus), D = 30",
}


def cells_of(summary: Summary) -> Cells:
    """Return the runs by bonus and scheme."""
    cells: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for group in summary.groups:
        for run in group.runs:
            cells.setdefault((group.setting or "", run["scheme"]), []).append(run)
    return cells


def rnd_table(cells: Cells) -> str:
    """Write every scheme of RND."""
    own = {scheme: cells["rnd", scheme] for scheme in SCHEMES if ("rnd", scheme) in cells}
    return rows(("RND", *COLUMNS), [(f"{name_of(s)} (`{s}`)", *_cell(runs)) for s, runs in own.items()])


def rnd_comparisons(cells: Cells) -> str:
    """Write how the schemes of RND compare, pair by pair; a scheme with few seeds is left out."""
    own = {scheme: runs for (bonus, scheme), runs in cells.items() if bonus == "rnd" and len(runs) >= FEW}
    header = ("difference", "seeds that solve it", "steps, thousands", "final length", "better")
    lines = [(f"`{a}` − `{b}`", *_difference(compare(own[a], own[b]))) for a, b in PAIRS if {a, b} <= own.keys()]
    return rows(header, lines)


def others_table(cells: Cells) -> str:
    """Write the other bonuses, raw and repaid."""
    lines = [
        (f"`{bonus}`", name_of(scheme), *_cell(cells[bonus, scheme]))
        for bonus in BONUSES[1:]
        for scheme in PAIRED
        if (bonus, scheme) in cells
    ]
    return rows(("bonus", "paid", *COLUMNS), lines)


def others_together(cells: Cells) -> tuple[Estimate, Estimate]:
    """Return how much GRM with D = 30 differs from the raw bonus over the other bonuses: steps and final length."""
    pairs = [(cells[bonus, "grm-30"], cells[bonus, "im"]) for bonus in BONUSES[1:]]
    steps = gap([(steps_until(one), steps_until(other)) for one, other in pairs])
    return steps, gap([(lengths(one), lengths(other)) for one, other in pairs])


def predictions_table(cells: Cells) -> str:
    """Write every prediction with what came out."""
    lines = [(found.text, found.here, found.verdict) for found in predictions(cells)]
    return rows(("predicted", "measured", "came out"), lines)


def _cell(runs: Runs) -> tuple[str, ...]:
    part = share(runs)
    solving = f"{round(part.value * len(runs))} of {len(runs)} [{part.low:.2f}, {part.high:.2f}]"
    steps, final = mean_estimate(steps_until(runs)), mean_estimate(lengths(runs))
    return f"{len(runs)}", solving, steps.format(".0f", per=1000), final.format(".1f")


def _difference(found: Compared) -> tuple[str, ...]:
    shown = f"{found.share:+.2f} ({format_p(found.p)})"
    steps, length = found.steps.format("+.0f", per=1000), found.length.format("+.1f")
    return shown, steps, length, "yes" if found.gains else "no"


def curiosity_figure(summary: Summary) -> dict[str, Any]:
    """Draw both measures of RND's schemes side by side, as a Vega-Lite specification that holds its data."""
    runs = [run for group in summary.groups if group.setting == "rnd" for run in group.runs]
    own = {scheme: those for scheme in SCHEMES if (those := [run for run in runs if run["scheme"] == scheme])}
    steps = _panel(own, "steps", "step from which it is solved", labelled=True)
    final = _panel(own, "length", "steps per episode of the trained agent", labelled=False)
    heading = alt.TitleParams(
        "RND on MiniGrid DoorKey 6×6, PPO of Stable-Baselines3",
        subtitle="Every seed (plus signs: not solved), the mean and its 95 % bootstrap interval.",
        **WORDS,
    )
    return figure_of(alt.hconcat(steps, final, spacing=30).properties(title=heading))


def _panel(own: Mapping[str, Runs], measure: str, label: str, *, labelled: bool) -> Layered:
    rows = curiosity_rows(own, measure)
    return seeds_panel(rows, list(own), [NAMES[scheme] for scheme in own], label, labelled=labelled)


def curiosity_rows(own: Mapping[str, Runs], measure: str) -> list[dict[str, Any]]:
    """Return one row per seed of every scheme: the steps until it solves the task, or its final length."""
    found = []
    for scheme, runs in own.items():
        values = steps_until(runs) if measure == "steps" else lengths(runs)
        found += seed_rows(scheme, NAMES[scheme], values, solved(runs))
    return found
