"""A decided claim: what is stored, printed and counted; and how intervals and several verdicts give one verdict.

Every comparison is decided by its 95 % bootstrap interval over seeds. A verb such as "around" or "much" is given a
number, and the claim's note says which.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

Verdict = Literal["holds", "does not hold", "undecided"]
Bound = float | np.ndarray
Needed = int | Literal["more"]
"""How many seeds per cell would decide a claim; "more" than were asked about."""


@dataclass(frozen=True)
class Figure:
    """Hold what was measured of one cell, as a small chart draws it."""

    measure: str
    """What was measured."""
    setting: str
    """The setting in words, "" if there is none."""
    scheme: str
    mean: float
    low: float
    """The lower end of the 95 % interval over seeds."""
    high: float
    seeds: int
    never: int = 0
    """In how many seeds it did not get there."""
    paper: float | None = None
    """What the paper prints for the same cell, None if it prints nothing."""


@dataclass(frozen=True)
class DecidedClaim:
    """Set a claim beside what was measured here."""

    where: str
    """TeX label or section."""
    statement: str
    """What the paper states, in short; summary.json calls it "sentence"."""
    paper: str
    """The paper's figure, "" if it gives none."""
    here: str
    """Our figure with its interval over seeds."""
    verdict: Verdict
    """Whether the claim holds here."""
    note: str = ""
    """What a reader should know about it."""
    ablation: str | None = None
    """The ablation on whose runs it is decided; None for the experiment as the paper has it."""
    question: str | None = None
    """The name of the question of ours it belongs to, e.g. "other-matchings"; None if the paper states it."""
    figures: tuple[Figure, ...] = ()
    """What was measured of each cell it is about; () where the rule has no measure of cells."""
    lacking: bool = False
    """Whether it is undecided because cells, seeds or training are lacking."""
    needed: Needed | None = None
    """How many seeds would decide it, where those there are leave it open and it was asked."""

    @property
    def plain(self) -> bool:
        """Return whether it is a claim of the paper about the paper's own experiment."""
        return self.ablation is None and self.question is None

    @property
    def text(self) -> str:
        """Return the claim as it is printed, the name of its ablation or question before it.

        >>> DecidedClaim("", "IM is slow.", "", "", "holds", ablation="wide-rnd").text
        'wide-rnd: IM is slow.'
        """
        label = self.ablation or self.question
        return f"{label}: {self.statement}" if label else self.statement


_LABELLED = {
    "cumulative-mean": "ablation",
    "wide-rnd": "ablation",
    "plain-settlement": "ablation",
    "learner-discount-0.99": "ablation",
    "entropy-0.001": "ablation",
    "other-matchings": "question",
}
"""The names that the summaries committed before `ablation` and `question` were fields have before claims."""


def read_claim(stored: Mapping[str, Any]) -> DecidedClaim:
    """Read a claim out of a summary.json.

    The oldest summaries have no fields for ablation and question, but the name before the statement; the names they
    can hold are a closed list, and this is the only place that looks for one.

    >>> old = {"where": "", "sentence": "wide-rnd: IM is slow.", "paper": "", "here": "", "verdict": "holds"}
    >>> (read_claim(old).ablation, read_claim(old).statement)
    ('wide-rnd', 'IM is slow.')
    """
    stored = {**stored, "figures": tuple(Figure(**figure) for figure in stored.get("figures", ()))}
    stored["statement"] = stored.pop("sentence")
    label, _, statement = stored["statement"].partition(": ")
    if "ablation" in stored or label not in _LABELLED:
        return DecidedClaim(**stored)
    return DecidedClaim(**{**stored, "statement": statement, _LABELLED[label]: label})


def stored_claim(claim: DecidedClaim) -> dict[str, Any]:
    """Return what a summary.json keeps of a claim; fields are left out where they say nothing.

    >>> figures = (Figure("N̄", "", "im", 1.0, 1.0, 1.0, 3),)
    >>> stored_claim(DecidedClaim("", "", "", "", "holds", figures=figures))["figures"]
    [{'measure': 'N̄', 'setting': '', 'scheme': 'im', 'mean': 1.0, 'low': 1.0, 'high': 1.0, 'seeds': 3}]
    """
    stored = {"sentence" if name == "statement" else name: value for name, value in asdict(claim).items()}
    stored["figures"] = [
        {name: value for name, value in figure.items() if value is not None and (name, value) != ("never", 0)}
        for figure in stored["figures"]
    ]
    return {name: value for name, value in stored.items() if value or name not in ("lacking", "needed")}


def holds_if(condition: bool | np.bool_) -> Verdict:
    """Return the verdict on what is simply true or false of the seeds there are."""
    return "holds" if condition else "does not hold"


def positive(low: Bound, high: Bound) -> Verdict:
    """Decide whether a quantity with this interval is above zero; a constant zero is not."""
    return "holds" if low > 0 else "does not hold" if high < 0 or low == high == 0 else "undecided"


def not_negative(low: Bound, high: Bound) -> Verdict:
    """Decide whether a quantity with this interval is at least zero."""
    return "holds" if low >= 0 else "does not hold" if high < 0 else "undecided"


def in_range(low: Bound, high: Bound, least: float, most: float) -> Verdict:
    """Decide whether a quantity with this interval lies between two numbers."""
    return combined((not_negative(low - least, high - least), not_negative(most - high, most - low)))


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine the verdicts on several parts: one contradiction decides, one doubt leaves it open."""
    found = set(verdicts)
    return "does not hold" if "does not hold" in found else "undecided" if "undecided" in found else "holds"


def negated_verdict(verdict: Verdict) -> Verdict:
    """Negate a verdict; undecided stays undecided."""
    return "does not hold" if verdict == "holds" else "holds" if verdict == "does not hold" else "undecided"
