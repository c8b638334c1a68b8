"""Summaries on disk, in lab/results/<experiment>/: written, read back, and added to."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from payback_lab.atomic_write import write_file
from payback_lab.claims.claim import DecidedClaim, read_claim
from payback_lab.methods import in_order
from payback_lab.policy import Policy
from payback_lab.records import json_bytes
from payback_lab.report.summary import CURVES, Group, Summary, as_json
from payback_lab.running.experiment import Experiment
from payback_lab.runs import Result
from payback_lab.user_error import UserError, writing_to


def committed(results: Path, experiment: str) -> dict[str, Any]:
    """Return the committed summary.json of an experiment."""
    return json.loads((results / experiment / "summary.json").read_text())


def committed_claims(results: Path, experiment: str) -> list[DecidedClaim]:
    """Return the committed claims about an experiment with their verdicts."""
    return [read_claim(stored) for stored in committed(results, experiment)["claims"]]


def save(folder: Path, summary: Summary) -> None:
    """Write one experiment's summary below `folder`."""
    place = folder / summary.experiment
    with writing_to(place):
        write_file(place / "curves.parquet", _parquet(_curve_columns(summary)))
        write_file(place / "policies.parquet", _parquet(_policy_columns(summary)))
        write_file(place / "films.parquet", _parquet(_film_columns(summary)))
        write_file(place / "summary.json", json_bytes(as_json(summary)))


def save_claims(folder: Path, summary: Summary) -> None:
    """Write the claims of a summary that is there; its curves, maps and films stay as they are."""
    path = folder / summary.experiment / "summary.json"
    stored = json.loads(path.read_text()) | {"claims": as_json(summary)["claims"]}
    with writing_to(path):
        write_file(path, json_bytes(stored))


def load(folder: Path) -> list[Summary]:
    """Read all summaries below `folder`; a `UserError` names a file that cannot be read."""
    summaries = []
    for place in sorted(path.parent for path in folder.glob("*/summary.json")):
        try:
            summaries.append(_load(place))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise UserError(
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


def _parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd", compression_level=19)
    return sink.getvalue()


def merged(experiment: Experiment, new: Summary, old: Summary) -> Summary:
    """Add new runs to a committed summary, so that work over several days adds up; the claims are decided again.

    Where both have a run or a film, the new one is kept. Runs of another config or learner version are refused.
    """
    before = {group.name: group for group in old.groups}
    after = {group.name: group for group in new.groups}
    order = experiment.sections([run["id"] for group in (*old.groups, *new.groups) for run in group.runs])
    names = [name for name in order if name in before or name in after]
    groups = [
        _merged(after[name], before[name]) if name in before and name in after else after.get(name) or before[name]
        for name in names
    ]
    return replace(new, groups=tuple(groups), claims=tuple(experiment.claims(results_of(groups))))


def results_of(groups: Sequence[Group]) -> dict[str, Result]:
    """Return the single figures of the runs, by run id; the curves are not in it."""
    return {
        run["id"]: Result({}, {}, {name: value for name, value in run.items() if name not in ("id", "scheme", "seed")})
        for group in groups
        for run in group.runs
    }


def _merged(new: Group, old: Group) -> Group:
    """Merge two groups of one name."""
    for part, ours, theirs in (
        ("config", new.config, old.config),
        ("learner_version", new.made["learner_version"], old.made["learner_version"]),
        ("number of points", len(new.x), len(old.x)),
    ):
        if ours != theirs:
            raise UserError(
                f"The committed summary of {new.name} was made with another {part}: move it away, or choose another "
                "--summaries."
            )
    runs = {(run["scheme"], run["seed"]): (group, run) for group in (old, new) for run in group.runs}
    schemes = dict.fromkeys(in_order([scheme for scheme, _ in runs]))
    keys = [(scheme, seed) for scheme in schemes for seed in sorted(seed for other, seed in runs if other == scheme)]
    columns = [c for c in next(iter(new.curves.values())) if all(c in own for own in old.curves.values())]
    return replace(
        new,
        runs=[runs[key][1] for key in keys],
        curves={
            scheme: {c: np.stack([_curve(*runs[key], c) for key in keys if key[0] == scheme]) for c in columns}
            for scheme in schemes
        },
        films={**old.films, **new.films},
        made=_made(new.made, old.made, kept=any(group is old for group, _ in runs.values())),
    )


def _curve(group: Group, run: dict[str, Any], column: str) -> np.ndarray:
    """Return the curve of one run of a group, whose curves lie in the order of its runs."""
    seeds = [other["seed"] for other in group.runs if other["scheme"] == run["scheme"]]
    return group.curves[run["scheme"]][column][seeds.index(run["seed"])]


def _made(new: dict[str, Any], old: dict[str, Any], *, kept: bool) -> dict[str, Any]:
    """Combine how the runs of both were made; if none of the old ones is kept, only the new ones count."""
    if not kept:
        return new
    lists = ("commits", "commands", "python", "platform")
    overlap = new["first"] <= old["last"] and old["first"] <= new["last"]
    return {
        **new,
        **{name: sorted({*old[name], *new[name]}) for name in lists},
        "first": min(old["first"], new["first"]),
        "last": max(old["last"], new["last"]),
        # If both hold the same runs, their sum would count these twice: the longer time is nearer to the truth.
        "seconds": max(old["seconds"], new["seconds"]) if overlap else round(old["seconds"] + new["seconds"], 1),
    }
