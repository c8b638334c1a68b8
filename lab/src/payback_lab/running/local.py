"""The local engine: tasks in processes of this machine, one thread each, pinned to cores if they fill the machine."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from payback_lab.running.task import ONE_THREAD, Event, Task, perform
from payback_lab.user_error import UserError

ATTEMPTS = 3


@dataclass(frozen=True)
class _Worker:
    """Hold which process makes which task, and which attempt it is."""

    process: SpawnProcess
    task: Task
    attempt: int
    core: int | None
    """The core it is pinned to; None for any."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def places(processes: int) -> list[int | None]:
    """Return the core that each of so many simultaneous processes is pinned to; None for any core.

    They are pinned only if there are as many as cores, because the processes of two commands side by side would
    otherwise share some cores while others are idle.

    >>> places(cores() + 1) == [None] * (cores() + 1)
    True
    """
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    return [*mine] if processes == len(mine) else [None] * processes


def events(tasks: Sequence[Task], workers: int) -> Iterator[Event]:
    """Compute the tasks in the order given, `workers` at a time, and yield what happens to them.

    Each task has a process of its own. If that process dies, the task is tried again, `ATTEMPTS` times in all. An
    exception fails the task at once, because it would come again. However the iteration ends, no process is left.
    """
    queue = deque((task, 1) for task in tasks)
    free = places(min(workers, len(tasks)))
    crew: dict[Connection, _Worker] = {}
    try:
        while queue or crew:
            while queue and free:
                task, attempt = queue.popleft()
                crew |= _start(task, attempt, free.pop())
                yield Event(task, "started")
            for connection in wait(list(crew)):
                assert isinstance(connection, Connection)
                event = _receive(connection, crew[connection])
                if event.kind in ("retried", "done", "failed"):
                    worker = crew.pop(connection)
                    worker.process.join()
                    free.append(worker.core)
                    if event.kind == "retried":
                        queue.appendleft((worker.task, worker.attempt + 1))
                yield event
    finally:
        for worker in crew.values():
            worker.process.terminate()
        for worker in crew.values():
            worker.process.join()


def _start(task: Task, attempt: int, core: int | None) -> dict[Connection, _Worker]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(task, there, core), daemon=True)
    with _environment(ONE_THREAD), _deaf_to_ctrl_c():
        process.start()
    there.close()  # otherwise the pipe would stay open when the process ends
    return {here: _Worker(process, task, attempt, core)}


def _receive(connection: Connection, worker: _Worker) -> Event:
    """Read one message of a worker; a closed pipe means that its process died."""
    try:
        kind, value = connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        text = f"its process died ({_cause(worker.process.exitcode)})"
        if worker.attempt < ATTEMPTS:
            return Event(worker.task, "retried", text=text)
        return Event(worker.task, "failed", text=f"{text} {ATTEMPTS} times")
    if kind == "user error":
        raise UserError(value)
    if kind == "progress":
        return Event(worker.task, "progress", share=value)
    return Event(worker.task, kind, text=value)


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        hint = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
        return f"killed by {signal.Signals(-code).name}{hint}"
    return f"exit status {code}"


def _work(task: Task, connection: Connection, core: int | None) -> None:
    """Perform one task in a worker process and send its events."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if core is not None:
        with suppress(OSError):  # the core may no longer be allowed; then any core is used
            os.sched_setaffinity(0, {core})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        perform(
            task,
            progress=lambda share: connection.send(("progress", float(share))),
            waiting=lambda run: connection.send(("waiting", run)),
        )
        connection.send(("done", ""))
    except UserError as error:
        connection.send(("user error", str(error)))
    except Exception:
        connection.send(("failed", traceback.format_exc()))


def _end_with_parent() -> None:
    """End this process when its parent is gone, even after kill -9, because nobody waits for its result."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Start a child with SIGINT blocked, because Ctrl-C during its imports would print a traceback.

    A SIGINT that arrives in the meantime is delivered to this process afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise it starts with the child and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(extra: dict[str, str]) -> Iterator[None]:
    """Start a child with more environment variables; those the user has set are kept."""
    added = {name: value for name, value in extra.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
