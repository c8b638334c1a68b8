"""What every experiment is described by, with the defaults that most share; see `plan.Experiment`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from payback_lab.claims.claim import Claim
from payback_lab.claims.sentence import Claims
from payback_lab.methods import SCHEMES, parse_scheme
from payback_lab.running.plan import Result, Run, Scalar, by_group


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Describe an experiment but for how its runs are planned and made, which its kind says."""

    name: str
    title: str
    config: type
    notes: tuple[str, ...]
    learner_version: int
    points: int
    adds_up: bool
    settings: tuple[str, ...] = ()
    seeds: int = 3
    ablations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    paper: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reference: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    claimed: Claims | None = None
    """What is claimed about it; None if nothing is, yet."""

    @property
    def later(self) -> str:
        """Return "", because everything is planned at once unless an experiment says otherwise."""
        return ""

    def informed(self, summaries: Path) -> Self:
        """Return the experiment itself: its plan does not depend on results unless it says otherwise."""
        return self

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the paper's eight."""
        return SCHEMES

    def refuse_scheme(self, scheme: str) -> None:
        """Refuse a name that is no reward scheme."""
        parse_scheme(scheme)

    def prepare(self, runs: Sequence[Run]) -> None:
        """Expect nothing of this machine."""

    def batches(self, runs: list[Run]) -> list[tuple[Run, ...]]:
        """Give every run a process of its own."""
        return [(run,) for run in runs]

    def claims(self, results: Mapping[str, Result]) -> list[Claim]:
        """Decide what is claimed from the results there are."""
        claimed = self.claimed_of(results)
        return claimed.decide(results) if claimed else []

    def claimed_of(self, results: Mapping[str, Result]) -> Claims | None:
        """Return what is claimed; it does not depend on the results unless an experiment says so."""
        return self.claimed

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the figures as they were measured."""
        return result.summary

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Report the paper's setting and each ablation apart."""
        return by_group(ids)
