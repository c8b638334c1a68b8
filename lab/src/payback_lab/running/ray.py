"""The Ray engine: tasks on a cluster, whose results this process writes.

The nodes therefore need no shared disk, only an installed payback-lab. Ray tries a task again, twice, if its worker or
node dies.
"""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from payback_lab.running.locks import locked
from payback_lab.running.task import ONE_THREAD, Event, Task, compute, keep
from payback_lab.user_error import UserError

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
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_compute_quietly)
        left = list(reversed(tasks))
        out: dict[Any, Task] = {}
        while left or out:
            while left and len(out) < (workers or len(tasks)):
                task = left.pop()
                out[remote.remote(task)] = task
                yield Event(task, "started")
            ready, _ = ray.wait(list(out), num_returns=1)
            for reference in ready:
                yield _finish(ray, reference, out.pop(reference))
    finally:
        ray.shutdown()


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


def _compute_quietly(task: Task) -> Any:
    return compute(task, lambda share: None)


def _finish(ray: Any, reference: Any, task: Task) -> Event:
    try:
        computed = ray.get(reference)
    except ray.exceptions.RayError as error:
        return Event(task, "failed", text=str(error))
    with locked(task.out, [run.id for run in task.runs]):
        keep(task, computed)
    return Event(task, "done")
