"""Importing an adapter without its host: one sentence that says which extra to install."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def host(name: str, install: str) -> Generator[None, None, None]:
    """Turn an import error of the host `name` into one that says how to `install` it.

    >>> with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: this adapter needs Gymnasium (No module named 'no_such_package'): pip install 'payback[gymnasium]'
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"this adapter needs {name} ({error}): {install}") from error
