"""The Ray engine: tasks on a cluster.

A node that sees the records folder, because it lies on a shared disk, does what a local process does: it resumes from
the checkpoints there, and writes checkpoints and records. One that does not see it needs only an installed payback-lab:
it begins from zero, and this process writes its results. Ray tries a task again, twice, if its worker or node dies.
"""

import logging
import os
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from payback_lab.locks import locked
from payback_lab.running.task import ONE_THREAD, Computed, Event, Task, compute, keep, perform
from payback_lab.user_error import UserError, writing_to

RETRIES = 2
THIS_MACHINE_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Has Ray listen on 127.0.0.1: its `_node_ip_address="127.0.0.1"` is replaced by the address on the network. Whoever
reaches a Ray port can run code; from 2.59 on Ray also asks for a token by itself."""


def events(tasks: Sequence[Task], workers: int | None, address: str | None) -> Iterator[Event]:
    """Compute the tasks on the cluster at `address` (None: one started here for the purpose) and keep the results.

    `workers` limits how many tasks are submitted at a time; None submits all.
    """
    ray = _connect(address, workers)
    try:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_make)
        left = list(reversed(tasks))
        out: dict[Any, Task] = {}
        with _marks(tasks) as marks:
            while left or out:
                while left and len(out) < (workers or len(tasks)):
                    task = left.pop()
                    # A node has a working directory of its own.
                    out[remote.remote(replace(task, out=task.out.absolute()), marks[task.out])] = task
                    yield Event(task, "started")
                ready, _ = ray.wait(list(out), num_returns=1)
                for reference in ready:
                    yield _finish(ray, reference, out.pop(reference))
    finally:
        ray.shutdown()


@contextmanager
def _marks(tasks: Sequence[Task]) -> Iterator[dict[Path, Path]]:
    """Put a file into each records folder, by whose name, used once, a node knows that it sees the folder itself."""
    marks = {out: out.absolute() / f".ray-{uuid.uuid4().hex}" for out in {task.out for task in tasks}}
    try:
        for out, mark in marks.items():
            with writing_to(out):
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
        yield marks
    finally:
        for mark in marks.values():
            mark.unlink(missing_ok=True)


def _make(task: Task, mark: Path) -> Computed | None:
    """Make a task on a node; return the results where the node does not see the records folder."""
    if not mark.exists():
        return compute(task, progress=lambda share: None)
    perform(task, progress=lambda share: None, waiting=lambda run: None)
    return None


def _connect(address: str | None, workers: int | None) -> Any:
    if not address:
        os.environ.update(THIS_MACHINE_ALONE)  # before Ray is imported, because it reads this once
    try:
        import ray
    except ModuleNotFoundError:
        raise UserError('--engine ray needs Ray: install it with `pip install "payback-lab[ray]"`.') from None
    if address:
        _refuse_silent(address)
    options: dict[str, Any] = {"address": address} if address else {"address": "local", "num_cpus": workers}
    try:
        ray.init(
            **options,
            runtime_env={"env_vars": ONE_THREAD},
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=None if address else False,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"Ray did not start (--address {address}): {reason}") from error
    return ray


def _refuse_silent(address: str) -> None:
    """Refuse a host and port where nothing listens, because Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():  # "auto": Ray looks for a cluster by itself, and says at once if there is none
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"No Ray cluster answers at {address} ({error}): check --address, or leave it out to start one here."
        ) from error


def _finish(ray: Any, reference: Any, task: Task) -> Event:
    try:
        computed = ray.get(reference)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, UserError):
            raise UserError(str(cause)) from None
        return Event(task, "failed", text=str(error))
    if computed is not None:
        with locked(task.out, [run.id for run in task.runs]):
            keep(task, computed)
    return Event(task, "done")
