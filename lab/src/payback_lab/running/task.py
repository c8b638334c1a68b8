"""A task: the runs that one process computes together, the events that report on it, and the locks on its runs.

Several processes can share one records folder, because the process that makes a run holds its lock. The lock is the
kernel's (`flock`), which ends with its holder, also after kill -9: no lock can be stale.
"""

import fcntl
import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from payback_lab import records
from payback_lab.atomic_write import remove_file
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


@contextmanager
def locked(out: Path, runs: Iterable[str], waiting: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the locks of some runs; if another process holds one, call `waiting` with the run's id, then wait.

    Locks are taken in sorted order, because two processes could otherwise wait for each other.
    """
    with ExitStack() as stack:
        with writing_to(out):
            for run in sorted(runs):
                place = out / run
                stack.enter_context(_lock(place.parent / f".{place.name}.lock", lambda run=run: waiting(run)))
        yield


@contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            # The former holder may have removed the file while we waited; then we hold a lock on a deleted file.
            if not _is_there(path, handle):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)


def _is_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
