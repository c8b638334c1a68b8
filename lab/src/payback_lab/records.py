"""The record of a finished run: one folder, written atomically.

    <out>/<run id>/config.json     identity (run, config, learner_version) and provenance
                   curve.parquet   the learning curve, one row per point
                   arrays.npz      small arrays
                   summary.json    single figures
                   manifest.json   SHA-256 of the files above

A folder is used only if its files have the checksums of the manifest; otherwise the run counts as damaged and is made
again. A run's identity is its config and `learner_version`, not the commit. Nothing is stored with pickle.
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from payback_lab.atomic_write import write_folder
from payback_lab.runs import Result, Run
from payback_lab.user_error import UserError

FILES = ("config.json", "curve.parquet", "arrays.npz", "summary.json")
MANIFEST = "manifest.json"


class Damaged(Exception):  # noqa: N818 - a state of the folder, which the caller repairs
    """The folder of a run is not what was written; the message says in what."""


@dataclass(frozen=True)
class Record:
    """Hold one finished run as read back from its folder."""

    identity: dict[str, Any]
    """Which run it is: experiment, ablation, setting, scheme, seed, config, learner_version."""
    made: dict[str, Any]
    """How it was made (see `provenance`)."""
    result: Result
    """What it measured."""

    @property
    def run(self) -> Run:
        """Return which run it is; its config stays in `identity`."""
        return _run_of(self.identity)


def identity(run: Run, learner_version: int) -> dict[str, Any]:
    """Return everything that can change the result of a run, as plain JSON values."""
    fields = {**asdict(run), "learner_version": learner_version}
    return json.loads(json.dumps(fields, allow_nan=False))


def write(out: Path, run: Run, result: Result, learner_version: int, made: dict[str, Any]) -> None:
    """Store one finished run; a sound record that is already there stays. The caller holds the run's lock."""
    if flaw(out / run.id) is None:
        return
    kept = {"identity": identity(run, learner_version), "made": made}
    contents = {
        "config.json": json_bytes(kept),
        "curve.parquet": _parquet(result.columns),
        "arrays.npz": _npz(result.arrays),
        "summary.json": json_bytes({name: _plain(name, value) for name, value in result.summary.items()}),
    }
    manifest = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    write_folder(out / run.id, {**contents, MANIFEST: json_bytes(manifest)})


def read(folder: Path) -> Record:
    """Read one run back; raise `Damaged` with what is wrong if its files are not what was written."""
    data = _verified(folder)
    # A manifest only says that the bytes are those that were written, not who wrote them: each file is read on its own,
    # and whatever a reader raises on bytes that `write` would not have made is damage.
    kept = _parsed("config.json", data, _read_config)
    columns = _parsed("curve.parquet", data, _read_columns)
    arrays = _parsed("arrays.npz", data, _read_arrays)
    return Record(kept["identity"], kept["made"], Result(columns, arrays, _parsed("summary.json", data, _read_figures)))


def flaw(folder: Path) -> str | None:
    """Return what is wrong with a run's folder, also that it is missing; None if nothing is."""
    try:
        _verified(folder)
    except Damaged as error:
        return str(error)
    return None


def folders(out: Path, below: str = "") -> list[Path]:
    """List the run folders under `out`, damaged ones included, in order of their names."""
    found = [Path(top) for top, _, _ in os.walk(out / below) if re.fullmatch(r"seed\d+", Path(top).name)]
    return sorted(found, key=lambda p: (p.parent.parts, int(p.name.removeprefix("seed"))))


def refuse_others(out: Path, runs: Sequence[Run], learner_version: int) -> None:
    """Raise a `UserError` if `out` holds runs of the same experiment made with another config or version."""
    for example in {(run.group, run.setting): run for run in runs}.values():
        wanted = identity(example, learner_version)
        for folder in folders(out, "/".join(filter(None, (example.group, example.setting)))):
            there = _identity_there(folder)
            if there is None:
                continue
            difference = _difference(there, wanted)
            if difference is None and _run_of(there).id != folder.relative_to(out).as_posix():
                difference = f"it holds the run {_run_of(there).id}"
            if difference is not None:
                raise UserError(
                    f"{folder} is of another kind ({difference}): nothing was changed; choose another --out, "
                    "or move that folder away."
                )


def _identity_there(folder: Path) -> dict[str, Any] | None:
    """Return the identity in a folder's config.json; None if it cannot be read: damaged is not different."""
    try:
        there = json.loads((folder / "config.json").read_bytes())["identity"]
        _run_of(there)
        return {**there, "config": dict(there["config"]), "learner_version": int(there["learner_version"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _difference(there: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """Return the first field in which the configs or versions of two runs differ, None if there is none."""
    if there["learner_version"] != wanted["learner_version"]:
        return f"learner_version {there['learner_version']}, not {wanted['learner_version']}"
    ours, theirs = wanted["config"], there["config"]
    for name in [*ours, *theirs]:
        if theirs.get(name, "absent") != ours.get(name, "absent"):
            return f"{name} {theirs.get(name, 'absent')}, not {ours.get(name, 'absent')}"
    return None


def _run_of(there: dict[str, Any]) -> Run:
    names = ("experiment", "ablation", "setting", "scheme", "seed")
    return Run(**{name: there[name] for name in names}, config=None)


def _verified(folder: Path) -> dict[str, bytes]:
    """Return the files' bytes after comparing each with the manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise Damaged(f"{MANIFEST} is missing") from None
    except ValueError:
        raise Damaged(f"{MANIFEST} cannot be read") from None
    data = {}
    for name in FILES:
        try:
            data[name] = (folder / name).read_bytes()
        except FileNotFoundError:
            raise Damaged(f"{name} is missing") from None
        if not isinstance(manifest, dict) or hashlib.sha256(data[name]).hexdigest() != manifest.get(name):
            raise Damaged(f"{name} is not what was written (its checksum differs)")
    return data


def _parsed(name: str, data: dict[str, bytes], read: Callable[[bytes], Any]) -> Any:
    try:
        return read(data[name])
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise Damaged(f"{name} does not hold what a record holds ({reason})") from None


def _read_config(data: bytes) -> dict[str, Any]:
    kept = json.loads(data)
    there = kept["identity"]
    wanted = {"experiment": str, "scheme": str, "seed": int, "learner_version": int, "config": dict}
    for name, kind in wanted.items():
        if not isinstance(there[name], kind) or isinstance(there[name], bool):
            raise TypeError(f"{name} is not of type {kind.__name__}")
    if not all(isinstance(there[name], str | None) for name in ("ablation", "setting")):
        raise TypeError("ablation and setting are texts or null")
    if not isinstance(kept["made"], dict):
        raise TypeError("made is not an object")
    if Run.parse(_run_of(there).id) != _run_of(there):
        raise ValueError(f"{_run_of(there).id!r} is not the id of a run")
    return kept


def _read_columns(data: bytes) -> dict[str, np.ndarray]:
    table = pq.read_table(io.BytesIO(data))
    columns = {name: np.asarray(table[name]) for name in table.column_names}
    for name, column in columns.items():
        if column.dtype.kind not in "fiub":
            raise TypeError(f"column {name!r} holds {column.dtype}, not numbers")
    return columns


def _read_arrays(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return {name: np.asarray(stored[name]) for name in stored.files}


def _read_figures(data: bytes) -> dict[str, Any]:
    figures = json.loads(data, parse_constant=_refuse_constant)
    for name, value in dict(figures).items():
        if not isinstance(value, str | int | float | None):
            raise TypeError(f"figure {name!r} is no number or text")
    return figures


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def json_bytes(value: object) -> bytes:
    """Write a JSON file: indented, with its letters as they are, without NaN."""
    return (json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _plain(name: str, value: object) -> object:
    """Convert a NumPy scalar to a Python one; refuse NaN and infinity, which JSON does not have."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"summary figure {name!r} is {value}: use None for what was not reached.")
    return value


def _parquet(columns: dict[str, np.ndarray]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: np.asarray(column) for name, column in columns.items()}), sink, compression="zstd")
    return sink.getvalue()


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    objects = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if objects:
        raise TypeError(f"array {objects[0]!r} holds Python objects, which only pickle could store: use numbers.")
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)  # pyright: ignore[reportArgumentType]
    return sink.getvalue()
