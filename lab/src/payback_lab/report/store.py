"""Write summaries to results/<experiment>/ and read them back."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from payback_lab.claims.claim import read_claim
from payback_lab.policy import Policy
from payback_lab.report.summary import CURVES, Group, Summary, as_json
from payback_lab.running.plan import Experiment, Run
from payback_lab.user_error import Mistake, writing_to


def save(folder: Path, summary: Summary) -> None:
    """Write one experiment's summary below `folder`, each file whole or not at all."""
    place = folder / summary.experiment
    with writing_to(place):
        place.mkdir(parents=True, exist_ok=True)
        _write_parquet(place / "curves.parquet", _curve_columns(summary))
        _write_parquet(place / "policies.parquet", _policy_columns(summary))
        _write_parquet(place / "films.parquet", _film_columns(summary))
        text = json.dumps(as_json(summary), indent=1, ensure_ascii=False, allow_nan=False)
        _replace(place / "summary.json", (text + "\n").encode())


def committed_runs(folder: Path, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    """Return which of these runs are in the committed summary of an experiment that adds up over days, by run id.

    A run is the same if its id and the length of its training are; a summary made by another learner is refused.
    """
    path = folder / experiment.name / "summary.json"
    if not experiment.adds_up or not path.exists():
        return set()
    try:
        groups = json.loads(path.read_text())["groups"]
        versions = {group["made"]["learner_version"] for group in groups}
        there = {(run["id"], run["trained_steps"]) for group in groups for run in group["runs"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Mistake(
            f"The summary {path} cannot be read ({error}): bring it back from git, or move it away."
        ) from error
    if versions - {experiment.learner_version}:
        raise Mistake(
            f"The summary {path} was made by learner version {min(versions)}, not {experiment.learner_version}: "
            "move it away, or choose another --summaries."
        )
    return {run.id for run in runs if (run.id, run.config.total_steps) in there}


def load(folder: Path) -> list[Summary]:
    """Read all summaries below `folder`; a `Mistake` names a file that cannot be read."""
    summaries = []
    for place in sorted(path.parent for path in folder.glob("*/summary.json")):
        try:
            summaries.append(_load(place))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise Mistake(
                f"The summary in {place} cannot be read ({error}): make it again with "
                "`payback-lab report --save-summaries`."
            ) from error
    return summaries


def _load(place: Path) -> Summary:
    stored = json.loads((place / "summary.json").read_text())
    curves = pq.read_table(place / "curves.parquet").to_pydict()
    policies = pq.read_table(place / "policies.parquet").to_pydict()
    films = pq.read_table(place / "films.parquet").to_pydict()
    groups = tuple(_load_group(group, curves, policies, films) for group in stored.pop("groups"))
    claims = tuple(read_claim(claim) for claim in stored.pop("claims"))
    stored["reference"] = {column: (label, value) for column, (label, value) in stored["reference"].items()}
    return Summary(**{**stored, "notes": tuple(stored["notes"])}, claims=claims, groups=groups)


def _load_group(
    group: dict[str, Any], curves: dict[str, list], policies: dict[str, list], films: dict[str, list]
) -> Group:
    schemes = dict.fromkeys(run["scheme"] for run in group["runs"])
    names = [name for name in CURVES if name in curves]
    points = len(group["x"])
    drawn = {}
    for scheme in schemes if points else ():
        rows = _rows(curves, group["name"], scheme)
        drawn[scheme] = {c: np.array(curves[c], np.float32)[rows].reshape(-1, points) for c in names}
    maps = {}
    for scheme in schemes:
        rows = _rows(policies, group["name"], scheme)
        if len(rows):
            shape = (max(policies["row"][i] for i in rows) + 1, -1)
            maps[scheme] = Policy(*(np.array(policies[c])[rows].reshape(shape) for c in ("action", "share", "value")))
    return Group(
        **{**group, "x": np.array(group["x"])},
        curves=drawn,
        policies=maps,
        films=_load_films(films, group["name"], schemes),
    )


def _load_films(films: dict[str, list], group: str, schemes: Iterable[str]) -> dict[str, dict[str, np.ndarray]]:
    rows = {scheme: _rows(films, group, scheme) for scheme in schemes}
    parts = [name for name in films if name not in ("group", "scheme")]
    return {s: {name: np.array(films[name])[at] for name in parts} for s, at in rows.items() if len(at)}


def _rows(table: dict[str, list], group: str, scheme: str) -> np.ndarray:
    pairs = zip(table["group"], table["scheme"], strict=True)
    return np.array([i for i, pair in enumerate(pairs) if pair == (group, scheme)], dtype=int)


def _curve_columns(summary: Summary) -> dict[str, Any]:
    """Lay the curves out as one table: group, scheme, seed, point, and the curves, in that order of rows."""
    index = [
        (group.name, run["scheme"], run["seed"], point)
        for group in summary.groups
        for run in group.runs
        for point in range(len(group.x))
    ]
    names = [c for c in CURVES if all(c in d for g in summary.groups for d in g.curves.values())]
    values = {
        name: np.concatenate([c[name].ravel() for g in summary.groups for c in g.curves.values()] or [np.zeros(0)])
        for name in names
    }
    return {**_keys(index, ("group", "scheme", "seed", "point")), **values}


def _policy_columns(summary: Summary) -> dict[str, Any]:
    cells = list(_cells(summary))
    columns = _keys([cell[:4] for cell in cells], ("group", "scheme", "row", "column"))
    kinds = {"action": np.int8, "share": np.float32, "value": np.float32}
    return columns | {n: np.array([c[i] for c in cells], k) for i, (n, k) in enumerate(kinds.items(), start=4)}


def _film_columns(summary: Summary) -> dict[str, Any]:
    """Lay the films out as one table: group, scheme, and the parts of the state, step by step."""
    films = [(g.name, scheme, film) for g in summary.groups for scheme, film in g.films.items()]
    parts = dict.fromkeys(name for _, _, film in films for name in film)
    lengths = [len(next(iter(film.values()))) for _, _, film in films]
    names = [pair for (group, scheme, _), n in zip(films, lengths, strict=True) for pair in [(group, scheme)] * n]
    return _keys(names, ("group", "scheme")) | {n: np.concatenate([film[n] for _, _, film in films]) for n in parts}


def _cells(summary: Summary) -> Iterator[tuple[str, str, int, int, int, float, float]]:
    for group in summary.groups:
        for scheme, policy in group.policies.items():
            for row, column in np.ndindex(policy.action.shape):
                at = (row, column)
                figures = int(policy.action[at]), float(policy.share[at]), float(policy.value[at])
                yield group.name, scheme, row, column, *figures


def _keys(index: list[tuple], names: tuple[str, ...]) -> dict[str, pa.Array]:
    """Make the leading columns: two of text, then numbers."""
    kinds = [pa.string(), pa.string(), pa.int32(), pa.int32()]
    return {n: pa.array([row[i] for row in index], kinds[i]) for i, n in enumerate(names)}


def _write_parquet(path: Path, columns: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns), draft, compression="zstd", compression_level=19)
    os.replace(draft, path)


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(data)
    os.replace(draft, path)
