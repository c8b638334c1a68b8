"""The summary of an experiment: what the report shows of its runs, small enough to commit.

    lab/results/<experiment>/summary.json       claims, settings, how it was made, the single figures of every run
                             curves.parquet     every run's learning curve, thinned to some hundreds of block means
                             policies.parquet   by scheme and cell: the most common greedy action and its mean Q
                             films.parquet      by scheme and step: one episode of a trained agent

The report is always drawn from a `Summary`, made from full runs or read back from these files: both give the same page.
Claims are decided on the full curves, before thinning, and stored with their verdict.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from payback_lab.claims.claim import DecidedClaim, stored_claim
from payback_lab.methods import in_order
from payback_lab.policy import Policy, majority
from payback_lab.records import Record
from payback_lab.running.experiment import Experiment
from payback_lab.runs import GroupName

CURVES = ("return", "length", "window_mean", "window_std")
FILM = "film_"
"""Arrays of this prefix are (steps, episodes): the states of a few episodes of the trained agent."""


@dataclass(frozen=True)
class Group:
    """Hold the runs that share one config: the paper's setting, or an ablation."""

    name: str
    """A `GroupName`: "cliff", "cliff+wide-rnd", "doorkey/a0.02-g0.995"."""
    config: dict[str, Any]
    """The config all of them share."""
    made: dict[str, Any]
    """Commits, commands, package versions and time, over all runs."""
    runs: list[dict[str, Any]]
    """One entry per run: scheme, seed, and its single figures."""
    axis: str
    """What the curves run over: "episode" or "step"."""
    x: np.ndarray
    """(points,) the middle of each block of episodes or steps."""
    curves: dict[str, dict[str, np.ndarray]]
    """Scheme → column → (seeds, points) block means; NaN where there is none."""
    policies: dict[str, Policy]
    """Scheme → the most common action in each cell."""
    films: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """Scheme → the states of one episode of the trained agent, (steps,) per part."""

    @property
    def ablation(self) -> str | None:
        """Return the ablation, or the label, in the group's name; None for the paper's setting."""
        return GroupName.parse(self.name).ablation

    @property
    def setting(self) -> str | None:
        """Return the point of the sweep; None where there is no sweep."""
        return GroupName.parse(self.name).setting


@dataclass(frozen=True)
class Summary:
    """Hold all that the report says about one experiment."""

    experiment: str
    """Its name."""
    title: str
    """Its heading."""
    notes: tuple[str, ...]
    """Sentences for the reader."""
    paper: dict[str, dict[str, str]]
    """The paper's own figures: summary key → scheme → figure."""
    fields: dict[str, str]
    """Config field → what it means."""
    reference: dict[str, tuple[str, float]]
    """Lines in the curves: column → label and value."""
    claims: tuple[DecidedClaim, ...]
    """What is claimed, with verdicts."""
    groups: tuple[Group, ...]
    """The paper's setting first, then the ablations."""


def summarise(experiment: Experiment, records: Mapping[str, Record]) -> Summary:
    """Make the summary of an experiment from its records, by run id."""
    results = {
        name: replace(record.result, summary=experiment.figures(record.result, record.identity["config"]))
        for name, record in records.items()
    }
    records = {name: replace(record, result=results[name]) for name, record in records.items()}
    groups = [
        _group(name, [records[member] for member in members], experiment.points)
        for name, members in experiment.sections(list(records)).items()
    ]
    return Summary(
        experiment=experiment.name,
        title=experiment.title,
        notes=tuple(experiment.notes),
        paper={key: dict(by_scheme) for key, by_scheme in experiment.paper.items()},
        fields=field_docs(experiment.config),
        reference={column: (label, value) for column, (label, value) in experiment.reference.items()},
        claims=tuple(experiment.claims(results)),
        groups=tuple(groups),
    )


def thin(curve: np.ndarray, points: int) -> np.ndarray:
    """Replace a long curve (…, n) by the means of equal blocks, at most `points`; the last may be shorter.

    NaN values are left out of a block's mean; a block that holds nothing else is NaN.

    >>> thin(np.arange(7.0), points=3)
    array([1., 4., 6.])
    """
    n = curve.shape[-1]
    starts = np.arange(0, n, max(1, -(-n // points)))
    there = ~np.isnan(curve)
    sums = np.add.reduceat(np.where(there, curve, 0.0).astype(np.float64), starts, axis=-1)
    with np.errstate(invalid="ignore"):
        return sums / np.add.reduceat(there, starts, axis=-1, dtype=np.int64)


def field_docs(config: type) -> dict[str, str]:
    """Return the docstring under each field of a dataclass.

    >>> field_docs(DecidedClaim)["verdict"]
    'Whether the claim holds here.'
    """
    docs: dict[str, str] = {}
    for owner in reversed(config.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)
        for line, below in zip(body.body, body.body[1:], strict=False):
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                docs[line.target.id] = " ".join(str(below.value.value).split())
    return docs


def _group(name: str, members: Sequence[Record], points: int) -> Group:
    schemes = dict.fromkeys(in_order([record.identity["scheme"] for record in members]))
    rank = {scheme: place for place, scheme in enumerate(schemes)}
    members = sorted(members, key=lambda r: (rank[r.identity["scheme"]], r.identity["seed"]))
    by_scheme = {s: [r for r in members if r.identity["scheme"] == s] for s in schemes}
    first = members[0].result.columns
    names = [c for c in CURVES if all(c in record.result.columns for record in members)]
    length = len(first[names[0]]) if names else 0
    x = first["steps"] if "steps" in first else np.arange(1, length + 1)
    return Group(
        name=name,
        # The last, since No IM, which comes first, has no α of its own.
        config=members[-1].identity["config"],
        made=_made(members),
        runs=[_figures(record) for record in members],
        axis="step" if "steps" in first else "episode",
        x=thin(x, points) if length else np.zeros(0),
        curves={
            scheme: {c: thin(np.stack([r.result.columns[c] for r in own]), points).astype(np.float32) for c in names}
            for scheme, own in by_scheme.items()
        },
        policies={
            scheme: majority(np.stack([r.result.arrays["q"] for r in own]))
            for scheme, own in by_scheme.items()
            if all("q" in r.result.arrays for r in own)
        },
        films={scheme: film for scheme, own in by_scheme.items() if (film := _film(own[0]))},
    )


def _film(record: Record) -> dict[str, np.ndarray]:
    """Return the first filmed episode of a run, {} if none was filmed; its layout is the same for every run."""
    arrays = record.result.arrays
    if f"{FILM}length" not in arrays:
        return {}
    steps = int(arrays[f"{FILM}length"][0])
    parts = {n.removeprefix(FILM): a for n, a in arrays.items() if n.startswith(FILM) and a.ndim == 2}
    return {name: part[:steps, 0] for name, part in parts.items()}


def _figures(record: Record) -> dict[str, Any]:
    run = record.run
    return {"id": run.id, "scheme": run.scheme, "seed": run.seed, **record.result.summary}


def _made(members: Sequence[Record]) -> dict[str, Any]:
    """Combine how the runs of a group were made; every commit and command is listed."""
    made = [record.made for record in members]
    times = sorted(str(m.get("created")) for m in made)
    return {
        "commits": sorted({str(m.get("commit")) for m in made}),
        "commands": sorted({str(m.get("command")) for m in made}),
        "packages": max(made, key=lambda m: str(m.get("created"))).get("packages", {}),
        "python": sorted({str(m.get("python")) for m in made}),
        "platform": sorted({str(m.get("platform")) for m in made}),
        "first": times[0],
        "last": times[-1],
        "seconds": round(sum(float(m.get("seconds") or 0.0) for m in made), 1),
        "learner_version": members[0].identity["learner_version"],
    }


def as_json(summary: Summary) -> dict[str, Any]:
    """Return what summary.json holds: everything but the arrays."""
    groups = [
        {"name": g.name, "config": g.config, "made": g.made, "runs": g.runs, "axis": g.axis, "x": g.x.tolist()}
        for g in summary.groups
    ]
    rest = {name: getattr(summary, name) for name in ("experiment", "title", "notes", "paper", "fields", "reference")}
    return {**rest, "claims": [stored_claim(claim) for claim in summary.claims], "groups": groups}
