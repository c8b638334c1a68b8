"""Add new runs to the committed summary of an experiment, so that work over several days adds up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from payback_lab.methods import in_order
from payback_lab.report.summary import Group, Summary
from payback_lab.running.plan import Experiment, Result
from payback_lab.user_error import Mistake


def merged(experiment: Experiment, new: Summary, old: Summary) -> Summary:
    """Return a summary of the runs of both; where both have a run, the new one. Claims are decided anew.

    Films are the new ones where there are any. What was made with another config or learner is refused.
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
    """Return the runs of a summary as results without curves, by run id."""
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
            raise Mistake(
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
    """Say how the runs of both were made; if none of the old ones is kept, the new ones alone."""
    if not kept:
        return new
    lists = ("commits", "commands", "python", "platform")
    overlap = new["first"] <= old["last"] and old["first"] <= new["last"]
    return {
        **new,
        **{name: sorted({*old[name], *new[name]}) for name in lists},
        "first": min(old["first"], new["first"]),
        "last": max(old["last"], new["last"]),
        # Runs that both have would count twice: then the longer time stands.
        "seconds": max(old["seconds"], new["seconds"]) if overlap else round(old["seconds"] + new["seconds"], 1),
    }
