"""`payback-lab reproduce`: the main job in one command, with the time left of the whole and three findings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import arg

from payback_lab.running.request import Request

SHORT = 1_499_136
"""Steps of the short DoorKey runs: a whole number of updates."""
ELEVEN = "s11-a0.02-g0.995-l0.95"
STEPS = (
    Request("cliff"),
    Request("cliff", ablation="cumulative-mean"),
    Request("cliff", ablation="wide-rnd"),
    Request("long-cliff"),
    Request("doorkey", schemes=("none", "im", "grm-10"), settings=("a0.02-g0.995",), seeds=1, steps=SHORT),
    Request("reach", schemes=("none", "im", "grm-30"), settings=(ELEVEN,), seeds=1, steps=SHORT),
)
"""The cliffs in full, DoorKey 8×8 and 11×11 cut short."""


@dataclass(frozen=True)
class ReproduceCommand:
    """Make the main job: the cliffs in full, short DoorKey runs on 8×8 and 11×11, the report, and three findings.

    Takes about a quarter of an hour on two cores. Stop it whenever you like: the same command goes on where it was.
    """

    out: Annotated[Path, arg(metavar="DIR")] = Path("runs")
    """The records folder."""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one per core)")] = None
    """How many processes at a time."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of committed summaries, which the report draws beside runs that were cut short."""


def reproduce(command: ReproduceCommand, console: Console, steps: Sequence[Request] = STEPS) -> int:
    """Make the runs, write the report, and print the findings and where the report is; return the exit status."""
    from payback_lab.report.command import report
    from payback_lab.running.run import follow, prepare

    steps = [replace(step, out=command.out, workers=command.workers, summaries=command.summaries) for step in steps]
    prepared = [prepare(step, console) for step in steps]
    _print_plan(steps, prepared, console)
    outcome = follow(prepared, steps[0], console)
    if outcome.failed:
        from payback_lab.cli import print_failures

        return print_failures(outcome)
    status = report(command.out, command.summaries, False, console)
    print_findings(command.out, command.summaries, console)
    console.print(f"\nReport: {(command.out / 'report.html').resolve()}", markup=False, highlight=False)
    return status


def _print_plan(steps: Sequence[Request], prepared: Sequence, console: Console) -> None:
    """Print what is run, step by step, and how long all of it takes."""
    from payback_lab.running.local import cores
    from payback_lab.running.progress import duration, roughly, say, seconds_left

    table = Table("step", "runs", "done", "to make", "one core", box=None, pad_edge=False)
    for step, one in zip(steps, prepared, strict=True):
        name = " ".join(filter(None, (step.experiment, step.ablation, f"{step.steps:,} steps" if step.steps else "")))
        table.add_row(
            name, str(one.planned), str(one.done), str(len(one.left)), duration(sum(one.costs.values())) or "–"
        )
    console.print(table)
    workers = steps[0].workers or cores()
    costs = {name: cost for one in prepared for name, cost in one.costs.items()}
    time = roughly(seconds_left(costs, {}, 0.0, workers))
    say(console, f"{len(costs)} tasks on {workers} process{'es' * (workers > 1)}: {time} to do.")


def print_findings(out: Path, summaries: Path, console: Console) -> None:
    """Print the three findings, with the numbers of these runs and of the committed full results."""
    from payback_lab.report.command import summaries_of
    from payback_lab.report.findings import FINDINGS
    from payback_lab.report.store import load

    here = {summary.experiment: summary for summary in summaries_of(out)}
    full = {summary.experiment: summary for summary in load(summaries)} if summaries.is_dir() else {}
    for number, finding in enumerate(FINDINGS, start=1):
        table = Table(*finding.header, box=None, pad_edge=False)
        for name, found in (("these runs", here), ("full results, committed", full)):
            if summary := found.get(finding.experiment):
                table.add_row(name, *(finding.value(summary, scheme) for scheme in finding.schemes))
        console.print(f"\n{number}. {finding.sentence}", highlight=False)
        console.print(table)
