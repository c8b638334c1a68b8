"""A sentence that has been decided: what is stored, printed and counted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["holds", "does not hold", "undecided"]
Needed = int | Literal["more"]
"""How many seeds per cell would decide a sentence; "more" than were asked about."""


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
class Claim:
    """Set one sentence beside what was measured here."""

    where: str
    """TeX label or section."""
    sentence: str
    """What the paper states, in short."""
    paper: str
    """The paper's figure, "" if it gives none."""
    here: str
    """Our figure with its interval over seeds."""
    verdict: Verdict
    """Whether the sentence holds here."""
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
        """Return whether it is a sentence of the paper about the paper's own experiment."""
        return self.ablation is None and self.question is None

    @property
    def text(self) -> str:
        """Return the sentence as it is printed, the name of its ablation or question before it.

        >>> Claim("", "IM is slow.", "", "", "holds", ablation="wide-rnd").text
        'wide-rnd: IM is slow.'
        """
        label = self.ablation or self.question
        return f"{label}: {self.sentence}" if label else self.sentence


_LABELLED = {
    "cumulative-mean": "ablation",
    "wide-rnd": "ablation",
    "plain-settlement": "ablation",
    "learner-discount-0.99": "ablation",
    "entropy-0.001": "ablation",
    "other-matchings": "question",
}
"""The names that the summaries committed before `ablation` and `question` were fields have before sentences."""


def read_claim(stored: Mapping[str, Any]) -> Claim:
    """Read a claim out of a summary.json.

    The oldest summaries have no fields for ablation and question, but the name before the sentence; the names they
    can hold are a closed list, and this is the only place that looks for one.

    >>> old = {"where": "", "sentence": "wide-rnd: IM is slow.", "paper": "", "here": "", "verdict": "holds"}
    >>> (read_claim(old).ablation, read_claim(old).sentence)
    ('wide-rnd', 'IM is slow.')
    """
    stored = {**stored, "figures": tuple(Figure(**figure) for figure in stored.get("figures", ()))}
    label, _, sentence = stored["sentence"].partition(": ")
    if "ablation" in stored or label not in _LABELLED:
        return Claim(**stored)
    return Claim(**{**stored, "sentence": sentence, _LABELLED[label]: label})


def stored_claim(claim: Claim) -> dict[str, Any]:
    """Return what a summary.json keeps of a claim; fields are left out where they say nothing.

    >>> stored_claim(Claim("", "", "", "", "holds", figures=(Figure("N̄", "", "im", 1.0, 1.0, 1.0, 3),)))["figures"]
    [{'measure': 'N̄', 'setting': '', 'scheme': 'im', 'mean': 1.0, 'low': 1.0, 'high': 1.0, 'seeds': 3}]
    """
    stored = asdict(claim)
    stored["figures"] = [
        {name: value for name, value in figure.items() if value is not None and (name, value) != ("never", 0)}
        for figure in stored["figures"]
    ]
    return {name: value for name, value in stored.items() if value or name not in ("lacking", "needed")}
