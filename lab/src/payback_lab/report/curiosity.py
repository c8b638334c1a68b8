"""The page docs/results/curiosity.md, from the committed summary of the experiment `curiosity` alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from payback_lab.claims.wording import said_p
from payback_lab.experiments.curiosity.comparison import (
    Compared,
    Runs,
    compare,
    gap,
    lengths,
    share,
    steps_until,
)
from payback_lab.experiments.curiosity.config import BONUSES, FEW, PAIRED, SCHEMES
from payback_lab.experiments.curiosity.experiment import EXPERIMENT
from payback_lab.experiments.curiosity.predicted import predictions
from payback_lab.methods import title
from payback_lab.report.committed import committed
from payback_lab.report.markdown import rows
from payback_lab.running.asked import Asked
from payback_lab.statistics import mean_estimate

PAIRS = (("grm-30", "im"), ("grm-30", "none"), ("grm-10", "im"), ("pbim", "im"), ("im", "none"))
"""What is held against what; the first two are the questions."""
COLUMNS = ("seeds", "share that solves it", "steps until then, thousands", "final length")
HEAD = """\
# Curiosity with Stable-Baselines3

MiniGrid DoorKey 6×6, PPO of Stable-Baselines3, the bonuses of `payback.bonuses` with their defaults, 300,032 steps.
Made by `payback-lab docs` from the summary in `lab/results/curiosity`; the runs are made by `payback-lab run curiosity`
(`pip install . './lab[sb3]'` from a clone). The rules were committed before the first run:
[predictions](../predictions.md).
"""
Cells = Mapping[tuple[str, str], Runs]
"""(bonus, scheme) → its runs; a cell that has not been run is not there."""


def page(results: Path) -> str:
    """Return the page in Markdown."""
    summary = committed(results, EXPERIMENT.name)
    cells = cells_of(summary["groups"])
    parts = [HEAD, _made(cells), _first(cells), _others(cells), _predicted(cells), "## How it was run\n"]
    return "\n".join([*parts, *(f"- {note}" for note in summary["notes"])]) + "\n"


def cells_of(groups: Sequence[Mapping[str, object]]) -> Cells:
    """Return the runs of a summary by bonus and scheme."""
    cells: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for group in groups:
        bonus = str(group["name"]).partition("/")[2]
        for run in group["runs"]:  # pyright: ignore[reportGeneralTypeIssues]
            cells.setdefault((bonus, run["scheme"]), []).append(run)
    return cells


def _made(cells: Cells) -> str:
    planned = len(EXPERIMENT.plan(Asked()))
    made = sum(map(len, cells.values()))
    if made >= planned:
        return f"All {planned} runs are in it.\n"
    return f"**{made} of the {planned} planned runs are in it so far**; what is missing may change every line below.\n"


def _first(cells: Cells) -> str:
    own = {scheme: cells[bonus, scheme] for bonus, scheme in cells if bonus == "rnd"}
    table = rows(
        ("RND", *COLUMNS),
        [(f"{title(s)} (`{s}`)", *_cell(own[s])) for s in SCHEMES if s in own],
    )
    several = {scheme for scheme, runs in own.items() if len(runs) >= FEW}
    pairs = {(a, b): compare(own[a], own[b]) for a, b in PAIRS if {a, b} <= several}
    held = rows(
        ("held against each other", "share that solves it", "steps, thousands", "final length", "gains"),
        [(f"`{a}` − `{b}`", *_difference(found)) for (a, b), found in pairs.items()],
    )
    drawn = "![Steps until solved and final length of every seed, by scheme](../figures/curiosity.svg)"
    return "\n\n".join(("## RND", _verdict(pairs), table, drawn, *([held] if pairs else []))) + "\n"


def _verdict(pairs: Mapping[tuple[str, str], Compared]) -> str:
    """Say in one paragraph what the conversion gains, by the rule that was committed before."""
    said = []
    for other, name in (("im", "the raw bonus"), ("none", "no bonus")):
        found = pairs.get(("grm-30", other))
        if found is None:
            said.append(
                f"Whether `grm-30` gains something compared with {name} cannot be said of fewer than {FEW} seeds each."
            )
        elif found.gains:
            said.append(f"**Compared with {name}, `grm-30` gains something**: {_which(found, 'better')}.")
        else:
            worse = f", and loses: {_which(found, 'worse')}" if "worse" in found.each else ""
            said.append(f"**Compared with {name}, `grm-30` gains nothing that these seeds decide**{worse}.")
    return " ".join(said)


def _which(found: Compared, kind: str) -> str:
    names = ("the share of seeds that solve it", "the steps until then", "the final length")
    return ", ".join(name for name, gain in zip(names, found.each, strict=True) if gain == kind)


def _others(cells: Cells) -> str:
    there = [b for b in BONUSES[1:] if all(len(cells.get((b, s), ())) >= FEW for s in PAIRED)]
    lines = [
        (f"`{bonus}`", title(scheme), *_cell(cells[bonus, scheme]))
        for bonus in BONUSES[1:]
        for scheme in PAIRED
        if (bonus, scheme) in cells
    ]
    table = rows(("bonus", "paid", *COLUMNS), lines)
    if not there:
        return f"## The other bonuses\n\n{table}\n"
    steps = gap([(steps_until(cells[b, "grm-30"]), steps_until(cells[b, "im"])) for b in there])
    final = gap([(lengths(cells[b, "grm-30"]), lengths(cells[b, "im"])) for b in there])
    text = (
        f"Three seeds are too few to judge a single bonus. Over {len(there)} together, `grm-30` minus raw is "
        f"{steps.said('.0f', per=1000)} thousand steps until solved and {final.said('.1f')} steps of final length."
    )
    return f"## The other bonuses\n\n{text}\n\n{table}\n"


def _predicted(cells: Cells) -> str:
    lines = [(found.text, found.here, found.verdict) for found in predictions(cells)]
    return f"## What was predicted\n\n{rows(('predicted', 'here', 'came out'), lines)}\n"


def _cell(runs: Runs) -> tuple[str, ...]:
    part = share(runs)
    solving = f"{round(part.value * len(runs))} of {len(runs)} [{part.low:.2f}, {part.high:.2f}]"
    steps, final = mean_estimate(steps_until(runs)), mean_estimate(lengths(runs))
    return f"{len(runs)}", solving, steps.said(".0f", per=1000), final.said(".1f")


def _difference(found: Compared) -> tuple[str, ...]:
    shown = f"{found.share:+.2f} ({said_p(found.p)})"
    steps, length = found.steps.said("+.0f", per=1000), found.length.said("+.1f")
    return shown, steps, length, "yes" if found.gains else "no"
