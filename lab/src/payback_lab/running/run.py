"""`payback-lab run`: make the runs that were asked for and have no record yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from payback_lab import experiments, records
from payback_lab.running import local, ray
from payback_lab.running.asked import Asked
from payback_lab.running.committed import committed_runs
from payback_lab.running.experiment import Experiment
from payback_lab.running.plan import Run
from payback_lab.running.progress import Display, duration, say, seconds_left
from payback_lab.running.request import Request
from payback_lab.running.task import Event, Task
from payback_lab.user_error import UserError, writing_to


@dataclass(frozen=True)
class Outcome:
    """Hold what a request resulted in."""

    made: int
    """Runs made now."""
    failed: tuple[Event, ...]
    """The tasks that failed, with their errors."""


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


def run(request: Request, console: Console) -> Outcome:
    """Make the runs of a request that have no record yet; print the plan and the progress."""
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
    workers = request.workers or local.cores()
    where = f"{workers} process{'es' if workers > 1 else ''}" if not request.address else request.address
    estimate = duration(seconds_left(costs, {}, 0.0, workers))
    ahead = f"{len(left)} to make on {where}, about {estimate}" if left else "nothing to make"
    done = f"{len(runs) - len(left) - len(committed)} done already"
    done += f", {len(committed)} more in {request.summaries} (--again makes these too)" if committed else ""
    say(console, f"{request.experiment}: {len(runs)} runs planned, {done}, {ahead}.")
    if experiment.later and request.asked == Asked():
        say(console, experiment.later)
    return _follow(tasks, costs, workers, request, console)


def _follow(
    tasks: Sequence[Task], costs: dict[str, float], workers: int, request: Request, console: Console
) -> Outcome:
    """Run the tasks on the engine, show its events, and collect the failures."""
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
