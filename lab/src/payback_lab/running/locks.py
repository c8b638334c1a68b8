"""Let several processes share one records folder: whoever makes a run holds its lock.

The lock is the kernel's (`flock`): it ends with its holder, also after kill -9, so there is nothing stale to guess
at. Results are the same to the bit whoever makes them: a lock saves work, and the atomic rename keeps order.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from payback_lab.user_error import writing_to


@contextmanager
def locked(out: Path, runs: Iterable[str], waiting: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the locks of some runs; `waiting` is told the run that another process holds, then we wait.

    Locks are taken in sorted order, so two processes can never wait for each other.
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
            # The former holder may have removed the file while we waited: then ours is a lock on nothing.
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
