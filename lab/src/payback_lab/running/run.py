"""`payback-lab run` and `payback-lab list`: make the runs that have no record yet, and show what is left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from payback_lab import experiments, records
from payback_lab.methods import OTHERS, RIVALS, SCHEMES
from payback_lab.running import local, ray
from payback_lab.running.experiment import Experiment, committed_runs
from payback_lab.running.progress import Display, duration, say, seconds_left
from payback_lab.running.request import Request
from payback_lab.running.task import Event, Task
from payback_lab.runs import Asked, Run
from payback_lab.user_error import UserError, writing_to


@dataclass(frozen=True)
class Outcome:
    """Hold what a request resulted in."""

    made: int
    """Runs made now."""
    failed: tuple[Event, ...]
    """The tasks that failed, with their errors."""


@dataclass(frozen=True)
class Prepared:
    """Hold what a request leaves to do."""

    experiment: Experiment
    planned: int
    """Runs that were asked for."""
    committed: int
    """How many of them are left out, because their summary is committed."""
    left: tuple[Run, ...]
    """Runs to make."""
    tasks: tuple[Task, ...]
    costs: dict[str, float]
    """Task → estimated seconds on one core."""

    @property
    def done(self) -> int:
        """Return how many runs have a record already."""
        return self.planned - len(self.left) - self.committed


def planned(request: Request) -> tuple[Experiment, list[Run]]:
    """Return the experiment and the runs of a request; refuse with a `UserError` what cannot be asked for."""
    experiment = experiments.load(request.experiment).informed(request.summaries)
    for scheme in request.schemes:
        try:
            experiment.refuse_scheme(scheme)
        except ValueError as error:
            raise UserError(str(error)) from None
    if not experiment.settings:  # where there are some, the plan also accepts others of the same form
        _refuse_unknown("setting", request.settings, ())
    if request.ablation is not None:
        _refuse_unknown("ablation", (request.ablation,), tuple(experiment.ablations))
    for option, value in (("--seeds", request.seeds), ("--steps", request.steps), ("--workers", request.workers)):
        if value is not None and value < 1:
            raise UserError(f"{option} must be at least 1, got {value}.")
    if request.first_seed < 0:
        raise UserError(f"--first-seed must be at least 0, got {request.first_seed}.")
    if request.address is not None and request.engine != "ray":
        raise UserError("--address names a Ray cluster: add --engine ray, or leave it out.")
    runs = experiment.plan(request.asked)
    experiment.prepare(runs)
    return experiment, runs


def prepare(request: Request, console: Console) -> Prepared:
    """Return what a request leaves to do, and print which records are damaged."""
    experiment, runs = planned(request)
    committed = set() if request.again else committed_runs(request.summaries, experiment, runs)
    if not request.out.is_dir():
        _try_folder(request.out)
    records.refuse_others(request.out, runs, experiment.learner_version)
    left = _left_to_make(request.out, [run for run in runs if run.id not in committed], console)
    if left:  # a finished folder may lie on a read-only disk
        _try_folder(request.out)
    tasks = _tasks(experiment, left, list(dict.fromkeys(run.seed for run in runs)), request)
    costs = {task.name: experiment.cost(task.runs) for task in tasks}
    return Prepared(experiment, len(runs), len(committed), tuple(left), tuple(tasks), costs)


def run(request: Request, console: Console) -> Outcome:
    """Make the runs of a request that have no record yet; print the plan and the progress."""
    found = prepare(request, console)
    workers = request.workers or local.cores()
    where = f"{workers} process{'es' if workers > 1 else ''}" if not request.address else request.address
    estimate = duration(seconds_left(found.costs, {}, 0.0, workers))
    ahead = f"{len(found.left)} to make on {where}, about {estimate}" if found.left else "nothing to make"
    done = f"{found.done} done already"
    done += f", {found.committed} more in {request.summaries} (--again makes these too)" if found.committed else ""
    say(console, f"{request.experiment}: {found.planned} runs planned, {done}, {ahead}.")
    if found.experiment.later and request.asked == Asked():
        say(console, found.experiment.later)
    return follow([found], request, console)


def follow(prepared: Sequence[Prepared], request: Request, console: Console) -> Outcome:
    """Run the tasks on the engine that a request names, show the progress of all of them, and collect the failures."""
    tasks = [task for one in prepared for task in one.tasks]
    costs = {name: cost for one in prepared for name, cost in one.costs.items()}
    workers = request.workers or local.cores()
    made, failed = 0, []
    if not tasks:
        return Outcome(0, ())
    events: Iterator[Event]
    if request.engine == "ray":
        events = ray.events(tasks, request.workers, request.address)
    else:
        events = local.events(tasks, workers)
    with Display(costs, workers, console) as display:
        for event in events:
            display.show(event)
            if event.kind == "done":
                made += len(event.task.runs)
            if event.kind == "failed":
                failed.append(event)
    return Outcome(made, tuple(failed))


def _left_to_make(out: Path, runs: Sequence[Run], console: Console) -> list[Run]:
    """Return the runs without a valid record, and print which records are damaged."""
    left = []
    for run in runs:
        flaw = records.flaw(out / run.id)
        if flaw is None:
            continue
        left.append(run)
        if (out / run.id).exists():
            say(console, f"{out / run.id} is damaged ({flaw}): it is made again.")
    return left


def _tasks(experiment: Experiment, runs: list[Run], seeds: list[int], request: Request) -> list[Task]:
    """Group the runs into tasks, in the plan's order of seeds; then the longest first, because one left for the end
    would run alone.
    """
    batches = sorted(experiment.batches(runs), key=lambda batch: (seeds.index(batch[0].seed), -experiment.cost(batch)))
    module = experiments.MODULES[request.experiment]
    return [Task(module, tuple(batch), request.out, request.command) for batch in batches]


def _try_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, before time is spent on runs."""
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".probe"
        probe.write_bytes(b"payback")
        probe.unlink(missing_ok=True)


def _refuse_unknown(what: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            choice = f"choose among {', '.join(known)}" if known else f"this experiment has no {what}s"
            raise UserError(f'There is no {what} "{name}": {choice}.')


def overview(out: Path, summaries: Path, console: Console) -> None:
    """Print one line per experiment and ablation: runs done, runs left, and about how long they take."""
    if not out.is_dir() and out != Request.out:
        raise UserError(f"There is no folder {out}: give the one you passed to `payback-lab run --out`.")
    table = Table("experiment", "ablation", "done", "left", "time left", box=None, pad_edge=False)
    for name in experiments.MODULES:
        experiment = experiments.load(name).informed(summaries)
        for ablation in (None, *experiment.ablations):
            table.add_row(*_overview_row(experiment, ablation, out, summaries))
    console.print(table)
    console.print(f"schemes: {' '.join(SCHEMES)}", highlight=False)
    console.print(f"beyond the paper, by name: {' '.join(OTHERS)} im-centred", highlight=False)
    console.print(f"in the arena also: {' '.join(RIVALS)}", highlight=False)
    console.print("in the arena and the studies: grm-adv-D-L two-critics-L, such as grm-adv-300-0.99", highlight=False)
    console.print(f"records: {out}", markup=False, highlight=False)


def _overview_row(experiment: Experiment, ablation: str | None, out: Path, summaries: Path) -> tuple[str, ...]:
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
    time = duration(seconds_left(costs, {}, 0.0, local.cores())) if left else "–"
    more = f" ({damaged} damaged)" if damaged else ""
    time += ", then more" if experiment.later else ""
    return (*name, str(len(runs) - len(left)), f"{len(left)}{more}", time)
