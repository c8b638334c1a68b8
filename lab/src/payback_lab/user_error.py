"""The error that a user can correct, printed in one sentence."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """Says in one sentence what is wrong, where, and what to do; the command line ends with status 2."""


@contextmanager
def writing_to(out: Path) -> Iterator[None]:
    """Convert an OSError about a folder that cannot be written into a `UserError`."""
    try:
        yield
    except OSError as error:
        where = error.filename or out
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"The disk of {out} is full: free some space or choose another --out, then give the same command "
                "again; what was finished is kept."
            ) from error
        reason = error.strerror or str(error)
        raise UserError(f"{where} cannot be written ({reason}): choose another --out.") from error
