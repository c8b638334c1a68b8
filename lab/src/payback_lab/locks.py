"""Locks, with which several processes share one folder of records or layouts: who makes a part of it holds its lock.

The lock is the kernel's (`flock`), which ends with its holder, also after kill -9: no lock can be stale.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from payback_lab.user_error import writing_to


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
