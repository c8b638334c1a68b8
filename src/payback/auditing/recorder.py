"""Recording what a learner is paid while it trains: a folder of small Parquet parts that `payback audit` reads."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.parts import PART, UNFINISHED, WORKER, part_path, parts_in, unfinished_path
from payback.auditing.read_parquet import parquet_module
from payback.core.validate import read_count, read_gamma

ROWS = 1 << 16
"""Rows of a part: what is kept in memory, and lost if the process is killed."""


class Recorder:
    """Write each step's rewards to a log that `payback audit FOLDER` reads without options.

    The log is a folder of numbered Parquet parts. A part is written under another name, flushed to the disk and then
    renamed, so that after a crash or `kill -9` every part but the last is there and whole. At most `rows` rows are kept
    in memory. Each recorder needs a folder of its own. One that is given the folder of an earlier one goes on with the
    next number; its environments get new ids, because a new process resets them and the episodes that were open never
    end. A folder that holds anything else is refused.

    >>> import tempfile, numpy as np, payback
    >>> from payback.auditing.log_file import audit_file
    >>> match = payback.match_after(0.9, 1)
    >>> with tempfile.TemporaryDirectory() as folder, Recorder(folder + "/log", gamma=0.9) as recorder:
    ...     state = match.init(np.zeros(2))
    ...     for t in range(6):
    ...         reward, done = np.array([1.0, 0.5]), np.array([t == 5, t % 3 == 2])
    ...         state, shaped = match.update(state, reward, done)
    ...         recorder.add(reward=reward, shaped=shaped, terminated=done, truncated=np.zeros(2, bool))
    ...     recorder.close()
    ...     audit_file(folder + "/log").ok
    True
    """

    def __init__(self, folder: str | Path, *, gamma: float, rows: int = ROWS, first_env: int = 0) -> None:
        self.folder = Path(folder)
        self.gamma = read_gamma(gamma)
        self._rows = read_count("rows", rows, 1)
        self._parquet = parquet_module()
        self._arrow: Any = import_module("pyarrow")
        self._part, self._step, env = _continued(self.folder, self._parquet)
        self._next_env = max(env, first_env)
        """The id of the next new environment. Workers that record beside each other begin far apart."""
        self._ids: np.ndarray = np.empty(0, dtype=np.int64)
        self._buffers: dict[str, np.ndarray] = {}
        self._count = 0
        """Steps in the buffers."""
        self._closed = False

    def add(
        self,
        *,
        reward: Any,
        shaped: Any,
        terminated: Any,
        truncated: Any,
        valid: Any = None,
        lent: Any = None,
    ) -> None:
        """Record one step of all environments: (B,) arrays of F, F', the two kinds of end, and where known the rest.

        `valid` is false on invalid rows, such as autoreset rows: one that was paid is written, to be found by the
        audit, others are left out. `lent` is F − F̄, what a centred bonus really lends.
        """
        buffers, at = self._buffers, self._count
        if not buffers:
            buffers = self._begin(reward, shaped, terminated, truncated, valid, lent)
        elif at == len(buffers["shaped"]):
            self.flush()  # the last attempt failed, for example because the disk was full
            at = 0
        try:
            buffers["env"][at] = self._ids
            buffers["reward"][at] = reward
            buffers["shaped"][at] = shaped
            buffers["terminated"][at] = terminated
            buffers["truncated"][at] = truncated
            if valid is not None:
                buffers["valid"][at] = valid
            if lent is not None:
                buffers["lent"][at] = lent
        except (ValueError, TypeError, KeyError) as error:
            shape = buffers["shaped"].shape[1:]
            raise ValueError(
                f"Recorder.add: every call takes the same columns, each of shape {shape}: {error}"
            ) from None
        self._count = at + 1
        if self._count == len(buffers["shaped"]):
            self.flush()

    def flush(self) -> None:
        """Write what is in memory as a part of its own."""
        if not self._count:
            return
        n = self._count
        columns = {name: column[:n].reshape(-1) for name, column in self._buffers.items()}
        columns["step"] = np.repeat(np.arange(self._step, self._step + n), len(self._ids))
        if "valid" in columns and not columns["valid"].all():
            kept = columns["valid"] | (columns["shaped"] != 0)
            columns = {name: column[kept] for name, column in columns.items()}
        if len(columns["step"]):
            self._write(columns)
        # Only now, because what could not be written is tried again.
        self._step, self._count = self._step + n, 0

    def _write(self, columns: dict[str, np.ndarray]) -> None:
        """Write a part: under another name first, then renamed into place."""
        columns["gamma"] = np.full(len(columns["step"]), self.gamma)
        whole, unfinished = part_path(self.folder, self._part), unfinished_path(self.folder, self._part)
        if whole.exists():
            raise ValueError(
                f"another Recorder has written {whole.name} in {self.folder} meanwhile; give each a folder of its own"
            )
        with open(unfinished, "wb") as file:
            self._parquet.write_table(self._arrow.table(columns), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, whole)
        self._part += 1

    def restart(self, where: Any = None) -> None:
        """Say that all environments, or those of the (B,) mask `where`, were reset in mid-episode.

        What was open in them stays unfinished, and is not judged: they go on under new ids.
        """
        if self._buffers:
            mask: np.ndarray = np.ones(len(self._ids), dtype=bool) if where is None else np.asarray(where, dtype=bool)
            self._ids = np.where(mask, self._next_env + np.cumsum(mask) - 1, self._ids)
            self._next_env += int(np.count_nonzero(mask))

    def close(self) -> None:
        """Write what is left; the recorder takes no more steps."""
        if not self._closed:
            self.flush()
            self._buffers, self._closed = {}, True

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, *given: Any) -> dict[str, np.ndarray]:
        """Make the buffers, from the shapes of the first step."""
        if self._closed:
            raise ValueError(f"the recorder of {self.folder} is closed; make a new one to go on in the same folder")
        reward, shaped, terminated, truncated, valid, lent = given
        shape = np.shape(shaped)
        if len(shape) != 1 or shape[0] == 0:
            raise ValueError(f"Recorder.add: shaped has shape {shape}; give (B,), one number for each environment")
        for name, column in zip(("reward", "terminated", "truncated"), (reward, terminated, truncated), strict=True):
            if np.shape(column) != shape:
                raise ValueError(f"Recorder.add: {name} has shape {np.shape(column)}, shaped has {shape}")
        steps = max(1, self._rows // shape[0])
        self._ids = np.arange(self._next_env, self._next_env + shape[0])
        self._next_env += shape[0]
        floats = {"reward": reward, "shaped": shaped} | ({} if lent is None else {"lent": lent})
        self._buffers = {name: np.empty((steps, *shape), _float_dtype(x)) for name, x in floats.items()}
        flags = ["terminated", "truncated"] + ([] if valid is None else ["valid"])
        self._buffers |= {name: np.empty((steps, *shape), dtype=bool) for name in flags}
        self._buffers["env"] = np.empty((steps, *shape), dtype=np.int64)
        return self._buffers


def _float_dtype(column: Any) -> np.dtype:
    """Return float32 for float32 arrays of any library, else float64."""
    return np.dtype(np.float32 if str(getattr(column, "dtype", "")).endswith("float32") else np.float64)


def _continued(folder: Path, parquet: Any) -> tuple[int, int, int]:
    """Return the numbers of the next part, step and environment; make the folder, or refuse what is not a log's."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a Recorder a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    ours = (PART, UNFINISHED, WORKER)
    other = [x.name for x in sorted(folder.iterdir()) if not any(name.fullmatch(x.name) for name in ours)]
    if other:
        raise ValueError(f"{folder} holds {other[0]!r}, which no Recorder wrote; give the Recorder a folder of its own")
    parts = parts_in(folder)
    most = {"step": -1, "env": -1}
    for part in parts:
        try:
            table = parquet.read_table(part, columns=list(most))
        except Exception as error:
            raise ValueError(f"{part} cannot be read, so that the log cannot be continued: {error}") from None
        most = {name: max(high, int(table[name].to_numpy().max())) for name, high in most.items()}
    return len(parts), most["step"] + 1, most["env"] + 1
