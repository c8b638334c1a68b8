"""Record what a learner is paid while it trains: a folder of small Parquet parts that `payback audit` reads."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.read import PART, WORKER, parquet_module, part_path, parts_in
from payback.auditing.rows import FLAGS
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_count, read_gamma

UNFINISHED = re.compile(r"\.part-\d{6,}\.parquet(?:\.(\d+))?\.unfinished")
"""A part that a process, here with its id, is writing, or was writing when it was killed; it is not read."""
ROWS = 1 << 16  # rows of a part: what is kept in memory, and lost if the process is killed


class Recorder:
    """Write each step's rewards to a log that `payback audit FOLDER` reads without options.

    Pass the transform that shapes the bonus: the recorder then logs its γ and what it lends, which is F − F̄ for a
    centred bonus and which the audit needs to name the cause of a leak. `state` is the state from which the transform
    goes on, after a resume. Without a transform, pass `gamma`.

    The log is a folder of numbered Parquet parts. A part is written under another name, flushed to the disk and then
    renamed, so after a crash or `kill -9` every part but the last is there and whole. At most `rows` rows are kept in
    memory. Each recorder needs a folder of its own. One that is given the folder of an earlier one goes on with the
    next number; its environments get new ids, because a new process resets them and open episodes never end. A folder
    that holds anything else is refused.

    >>> import tempfile, numpy as np, payback
    >>> shaping = payback.grm(0.9, delay=1)
    >>> with tempfile.TemporaryDirectory() as folder, Recorder(folder + "/log", shaping) as recorder:
    ...     state = shaping.init(np.zeros(2))
    ...     for t in range(6):
    ...         reward, done = np.array([1.0, 0.5]), np.array([t == 5, t % 3 == 2])
    ...         state, shaped = shaping.update(state, reward, done)
    ...         recorder.add(reward=reward, shaped=shaped, terminated=done, truncated=np.zeros(2, bool))
    ...     recorder.close()
    ...     payback.audit_file(folder + "/log").ok
    True
    """

    def __init__(
        self,
        folder: str | Path,
        transform: RewardTransform | None = None,
        *,
        gamma: float | None = None,
        state: Any = None,
        rows: int = ROWS,
        first_env: int = 0,
    ) -> None:
        if transform is None and gamma is None:
            raise ValueError("Recorder needs the transform that shapes the bonus: Recorder(folder, shaping), or gamma=")
        if not (transform is None or isinstance(transform, Match)):
            raise ValueError("Recorder needs a transform that repays, such as grm: only loans can be audited")
        self.folder, self._match, self._state = Path(folder), transform, state
        self.gamma = read_gamma(transform.gamma if transform is not None and gamma is None else gamma)
        self._rows = read_count("rows", rows, 1)
        self._parquet = parquet_module()
        self._part, self._step, env = _continued(self.folder, self._parquet)
        # Workers that record beside each other begin far apart.
        self._next_env = max(env, first_env)
        self._ids: np.ndarray = np.empty(0, dtype=np.int64)
        self._buffers: dict[str, np.ndarray] = {}
        self._count, self._closed = 0, False

    def add(
        self, *, reward: Any, shaped: Any, terminated: Any, truncated: Any, valid: Any = None, lent: Any = None
    ) -> None:
        """Record one step of all environments: (B,) arrays of F, of what the learner got for it, and of both ends.

        Pass the environment's own `terminated` and `truncated`, not the `done` that the shaping got: the audit finds
        the difference. `valid` is false on invalid rows, such as autoreset rows: one that was paid is written, so that
        the audit finds it, others are left out. `lent` replaces what the recorder reads from its transform.
        """
        if lent is None and self._match is not None:
            lent = self._lent(self._match, reward, valid)
        step = {"reward": reward, "shaped": shaped, "terminated": terminated, "truncated": truncated}
        step |= ({} if valid is None else {"valid": valid}) | ({} if lent is None else {"lent": lent})
        if not self._buffers:
            self._begin(step)
        elif self._count == len(self._buffers["shaped"]):
            self.flush()  # the last attempt failed, for example because the disk was full
        step["env"] = self._ids
        try:
            if step.keys() != self._buffers.keys():
                raise ValueError(f"got {', '.join(step)}")
            for name, column in step.items():
                self._buffers[name][self._count] = column
        except (ValueError, TypeError) as error:
            what = f"the same columns, each of shape {self._ids.shape}"
            raise ValueError(f"Recorder.add: every call takes {what}: {error}") from None
        self._count += 1
        if self._count == len(self._buffers["shaped"]):
            self.flush()

    def _lent(self, match: Match, reward: Any, valid: Any) -> Any:
        """Return the loans of one step, by stepping the transform beside the caller's own."""
        reward = reward if hasattr(reward, "dtype") else np.asarray(reward, dtype=np.float64)
        if self._state is None:
            with warnings.catch_warnings():  # the caller's own `init` has warned
                warnings.simplefilter("ignore")
                self._state = match.init(reward)
        self._state, lent = step_without_debt(match, self._state, reward, valid)
        return lent

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
        whole = part_path(self.folder, self._part)
        unfinished = self.folder / f".{whole.name}.{os.getpid()}.unfinished"
        if whole.exists():
            raise ValueError(f"another Recorder has written {whole.name} in {self.folder}; give each its own folder")
        with open(unfinished, "wb") as file:
            self._parquet.write_table(import_module("pyarrow").table(columns), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, whole)
        self._part += 1

    def restart(self, where: Any = None) -> None:
        """Go on under new ids where environments, all or a (B,) mask, were reset: open episodes are not judged."""
        if self._buffers:
            mask: np.ndarray = np.ones(len(self._ids), dtype=bool) if where is None else np.asarray(where, dtype=bool)
            self._ids = np.where(mask, self._next_env + np.cumsum(mask) - 1, self._ids)
            self._next_env += int(np.count_nonzero(mask))

    def close(self) -> None:
        """Write what is left; the recorder takes no more steps."""
        self.flush()
        self._buffers, self._closed = {}, True

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, step: dict[str, Any]) -> None:
        """Make the buffers, from the shapes of the first step."""
        if self._closed:
            raise ValueError(f"the recorder of {self.folder} is closed; make a new one to go on in the same folder")
        shape = np.shape(step["shaped"])
        if len(shape) != 1 or shape[0] == 0:
            raise ValueError(f"Recorder.add: shaped has shape {shape}; give (B,), one number for each environment")
        rows, buffers = (max(1, self._rows // shape[0]), *shape), dict[str, np.ndarray]()
        for name, column in step.items():
            if np.shape(column) != shape:
                raise ValueError(f"Recorder.add: {name} has shape {np.shape(column)}, shaped has {shape}")
            single = str(getattr(column, "dtype", "")).endswith("float32")  # of any library
            buffers[name] = np.empty(rows, np.bool_ if name in FLAGS else np.float32 if single else np.float64)
        self._ids = np.arange(self._next_env, self._next_env + shape[0])
        self._next_env += shape[0]
        self._buffers = buffers | {"env": np.empty(rows, np.int64)}


def step_without_debt(match: Match, state: Any, reward: Any, valid: Any) -> tuple[Any, Any]:
    """Take a step with all debts dropped: it pays the whole loan, F − F̄ or a scaled bonus, and repays nothing."""
    none = reward != reward
    return match.update(match.drop(state, ~none), reward, none, valid)


def _continued(folder: Path, parquet: Any) -> tuple[int, int, int]:
    """Return the numbers of the next part, step and environment; make the folder, or refuse what is not a log's."""
    if os.path.isfile(folder):  # unlike `is_file`, no error where it cannot be looked up
        raise ValueError(f"{folder} is a file; give a Recorder a folder of its own")
    _make_writable(folder)
    ours = (PART, UNFINISHED, WORKER)
    other = [x.name for x in sorted(folder.iterdir()) if not any(name.fullmatch(x.name) for name in ours)]
    if other:
        raise ValueError(f"{folder} holds {other[0]!r}, which no Recorder wrote; give the Recorder a folder of its own")
    parts, step, env = parts_in(folder), -1, -1
    for part in parts:
        try:
            table = parquet.read_table(part, columns=["step", "env"])
        except Exception as error:
            raise ValueError(f"{part} cannot be read, so that the log cannot be continued: {error}") from None
        step, env = (max(high, int(x.to_numpy().max())) for high, x in zip((step, env), table.columns, strict=True))
    return len(parts), step + 1, env + 1


def _make_writable(folder: Path) -> None:
    """Make the folder, remove what killed recorders left half-written, and fail now if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            match = UNFINISHED.fullmatch(path.name)
            if match and not (match[1] and _runs(int(match[1]))):
                path.unlink(missing_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"the Recorder cannot write in {folder}: {error}") from None


def _runs(process: int) -> bool:
    """Whether a process of this machine is running; on Windows it is taken to be, because to ask would end it."""
    try:
        if os.name != "nt":
            os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
