"""`payback-lab list`: what there is to run, what is done, and what is left."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from payback_lab import experiments, records
from payback_lab.methods import OTHERS, RIVALS, SCHEMES
from payback_lab.running.asked import Asked
from payback_lab.running.committed import committed_runs
from payback_lab.running.experiment import Experiment
from payback_lab.running.local import cores
from payback_lab.running.progress import duration, seconds_left
from payback_lab.running.request import Request
from payback_lab.user_error import UserError


def show(out: Path, summaries: Path, console: Console) -> None:
    """Print one line per experiment and ablation: runs done, runs left, and about how long they take."""
    if not out.is_dir() and out != Request.out:
        raise UserError(f"There is no folder {out}: give the one you passed to `payback-lab run --out`.")
    table = Table("experiment", "ablation", "done", "left", "time left", box=None, pad_edge=False)
    for name in experiments.MODULES:
        experiment = experiments.load(name).informed(summaries)
        for ablation in (None, *experiment.ablations):
            table.add_row(*_row(experiment, ablation, out, summaries))
    console.print(table)
    console.print(f"schemes: {' '.join(SCHEMES)}", highlight=False)
    console.print(f"beyond the paper, by name: {' '.join(OTHERS)}", highlight=False)
    console.print(f"in the arena also: {' '.join(RIVALS)}", highlight=False)
    console.print(f"records: {out}", markup=False, highlight=False)


def _row(experiment: Experiment, ablation: str | None, out: Path, summaries: Path) -> tuple[str, ...]:
    """Count the runs of the experiment's plan: all schemes, settings and seeds, in full length."""
    runs = experiment.plan(Asked(ablation=ablation))
    name = (experiment.name, ablation or "–")
    try:
        records.refuse_others(out, runs, experiment.learner_version)
    except UserError:
        # Short runs, or runs of another learner version, do not count as runs of the paper's plan.
        there = sum(len(records.folders(out, group)) for group in {run.group for run in runs})
        return (*name, "0", str(len(runs)), f"(the {there} runs there are of another kind)")
    committed = committed_runs(summaries, experiment, runs)
    flaws = {run: None if run.id in committed else records.flaw(out / run.id) for run in runs}
    left = [run for run, flaw in flaws.items() if flaw]
    damaged = sum((out / run.id).exists() for run in left)
    costs = {str(i): experiment.cost(batch) for i, batch in enumerate(experiment.batches(left))}
    time = duration(seconds_left(costs, {}, 0.0, cores())) if left else "–"
    more = f" ({damaged} damaged)" if damaged else ""
    time += ", then more" if experiment.later else ""
    return (*name, str(len(runs) - len(left)), f"{len(left)}{more}", time)
