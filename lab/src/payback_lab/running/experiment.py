"""What an experiment consists of: runs to make, results to keep, claims to decide; and which of its runs are committed.

Each `experiments/*/experiment.py` has one object `EXPERIMENT`. Runner, records, report and command line know an
experiment through this class alone.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from payback_lab.claims.claim import DecidedClaim
from payback_lab.claims.decide import Claims
from payback_lab.methods import SCHEMES, parse_scheme
from payback_lab.runs import Asked, Result, Run, Scalar, by_group
from payback_lab.user_error import UserError


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """Describe one experiment: constants, how to run it, how to judge it, with the defaults that most share."""

    name: str
    """The name on the command line and in run ids."""
    title: str
    """The heading in the report."""
    config: type
    """The frozen dataclass of every choice, a docstring under each field."""
    notes: tuple[str, ...]
    """Notes for the report: how open choices were made, where the paper differs."""
    learner_version: int
    """The number that is increased only when results would change."""
    points: int
    """To how many points a committed curve is thinned."""
    adds_up: bool
    """Whether runs can be added to committed summaries, because claims need only single figures."""
    settings: tuple[str, ...] = ()
    """The points of the sweep; () if there is none."""
    seeds: int = 3
    """How many seeds are run by default."""
    ablations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name, the config fields that an ablation replaces."""
    paper: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The paper's own figures: summary key → scheme → figure as printed ({} if it gives none)."""
    reference: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Lines to draw into the curves: column → label and value, e.g. the optimum."""
    claimed: Claims | None = None
    """What is claimed about it; None if nothing is, yet."""

    @property
    def later(self) -> str:
        """Return what is planned only once earlier runs are committed, in one sentence; "" if nothing is."""
        return ""

    def informed(self, summaries: Path) -> Self:
        """Return the experiment as the committed summaries leave it, where its plan depends on earlier results."""
        return self

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the schemes that are run by default: the paper's eight, or those an ablation is about."""
        return SCHEMES

    def refuse_scheme(self, scheme: str) -> None:
        """Raise a ValueError, one sentence, for a scheme that this experiment cannot run."""
        parse_scheme(scheme)

    def prepare(self, runs: Sequence[Run]) -> None:  # noqa: B027 - most experiments expect nothing of the machine
        """Raise a `UserError` if this machine lacks what the runs need; called before any of them is started."""

    @abstractmethod
    def plan(self, asked: Asked) -> list[Run]:
        """List the runs that are asked for: every scheme × setting × seed."""

    def batches(self, runs: list[Run]) -> list[tuple[Run, ...]]:
        """Group runs that one process computes together; the grouping does not affect the results."""
        return [(run,) for run in runs]

    @abstractmethod
    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train the runs of one batch; return the results by run id; `progress` is called with the share done, 0 … 1.

        A long run may write `checkpoint_of(out, run)` and resume from it; `out` is None where there is no disk. The
        first call of `progress` has what a checkpoint held, and must come before any training.
        """

    @abstractmethod
    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds a batch takes, for the ETA and to start the longest first."""

    def claims(self, results: Mapping[str, Result]) -> list[DecidedClaim]:
        """Decide what is claimed from the results there are, by run id."""
        claimed = self.claimed_of(results)
        return claimed.decide(results) if claimed else []

    def claimed_of(self, results: Mapping[str, Result]) -> Claims | None:
        """Return what is claimed; it does not depend on the results unless an experiment says so."""
        return self.claimed

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the single figures of a result by their present definition, also for older records."""
        return result.summary

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Return which runs are reported together: a name each, the paper's own first, and the run ids."""
        return by_group(ids)


def committed_runs(summaries: Path, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    """Return the ids of these runs that are in the committed summary of an experiment that adds up over days.

    A run is the same if its id and its number of training steps are. A summary made by another learner is refused.
    """
    if not experiment.adds_up:
        return set()
    there = committed_figures(summaries, experiment)
    return {run.id for run in runs if (run.id, run.config.total_steps) in there}


def committed_figures(summaries: Path, experiment: Experiment) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the single figures of the committed runs, by id and steps of training; {} if there is no summary."""
    path = summaries / experiment.name / "summary.json"
    if not path.exists():
        return {}
    try:
        groups = json.loads(path.read_text())["groups"]
        versions = {group["made"]["learner_version"] for group in groups}
        there = {(run["id"], run["trained_steps"]): run for group in groups for run in group["runs"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The summary {path} cannot be read ({error}): bring it back from git, or move it away."
        ) from error
    if versions - {experiment.learner_version}:
        raise UserError(
            f"The summary {path} was made by learner version {min(versions)}, not {experiment.learner_version}: "
            "move it away, or choose another --summaries."
        )
    return there
