"""A task: the runs that one process computes together, and the events that report on it."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from payback_lab import records
from payback_lab.atomic_write import remove_file
from payback_lab.locks import locked
from payback_lab.provenance import provenance
from payback_lab.running.experiment import Experiment
from payback_lab.runs import Result, Run, checkpoint_of
from payback_lab.user_error import writing_to

# One thread per process, because processes are the parallelism and a thread pool may change the order of a sum.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Task:
    """Hold the runs of one batch, where their records go, and the module of their experiment."""

    module: str
    """Import path of the experiment's module."""
    runs: tuple[Run, ...]
    """The runs, all of one experiment."""
    out: Path
    """The records folder."""
    command: str
    """The command that asked for it, stored in the record."""

    @property
    def name(self) -> str:
        """Return a short name: the common part of the run ids and how many there are."""
        parents = {run.id.rpartition("/")[0] for run in self.runs}
        if len(self.runs) == 1 or len(parents) > 1:
            return self.runs[0].id + (f" and {len(self.runs) - 1} more" if len(self.runs) > 1 else "")
        return f"{parents.pop()} ({len(self.runs)} seeds)"


@dataclass(frozen=True)
class Event:
    """Report what happened to a task."""

    task: Task
    kind: Literal["started", "progress", "waiting", "retried", "done", "failed"]
    share: float = 0.0
    """The share of the task that is done, 0 … 1."""
    text: str = ""
    """The error, or the run that is waited for."""


Computed = tuple[dict[str, Result], dict[str, Any]]


def compute(task: Task, progress: Callable[[float], None], out: Path | None = None) -> Computed:
    """Train the runs of a task; return the results by run id, and their provenance.

    Checkpoints are written to `out`, none if it is None.
    """
    experiment: Experiment = importlib.import_module(task.module).EXPERIMENT
    begin = time.perf_counter()
    results: dict[str, Result] = {}
    batches = experiment.batches(list(task.runs))
    for i, batch in enumerate(batches):
        results |= experiment.execute(batch, lambda share, i=i: progress((i + share) / len(batches)), out)
    absent = [run.id for run in task.runs if run.id not in results]
    if absent:
        raise RuntimeError(f"{task.module} gave no result for {', '.join(absent)}.")
    seconds = round((time.perf_counter() - begin) / len(task.runs), 3)
    return results, {**provenance(task.command), "seconds": seconds}


def keep(task: Task, computed: Computed) -> None:
    """Write the records of a computed task and remove its checkpoints; the caller holds the locks."""
    results, made = computed
    version = importlib.import_module(task.module).EXPERIMENT.learner_version
    with writing_to(task.out):
        for run in task.runs:
            records.write(task.out, run, results[run.id], version, made)
            remove_file(checkpoint_of(task.out, run))


def perform(task: Task, progress: Callable[[float], None], waiting: Callable[[str], None]) -> None:
    """Compute and store the runs of a task that no other process has finished in the meantime."""
    with locked(task.out, [run.id for run in task.runs], waiting):
        left = tuple(run for run in task.runs if records.flaw(task.out / run.id))
        if left:
            remaining = Task(task.module, left, task.out, task.command)
            keep(remaining, compute(remaining, progress, task.out))
