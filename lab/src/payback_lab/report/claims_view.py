"""The claims of an experiment as the page shows them: verdicts as a bar, small charts, shared rules in one list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from payback_lab.claims.claim import Claim, Verdict
from payback_lab.claims.power import said_needed
from payback_lab.report.dots import Panel, panels_of_claim
from payback_lab.report.shared_rules import shared_rules

WORDS = {"holds": ("holds", "hold"), "does not hold": ("does not", "do not"), "undecided": ("undecided", "undecided")}
"""Verdict → how one and how several are counted."""


@dataclass(frozen=True)
class Count:
    """Hold one part of the bar of verdicts."""

    verdict: str
    number: int
    words: str
    """ "16 hold"."""
    share: float
    """In percent of the bar."""


@dataclass(frozen=True)
class ShownClaim:
    """Hold one claim as it is shown."""

    claim: Claim
    verdict_class: str
    panels: list[Panel]
    note: str
    """How many seeds would decide it, if it is open, and what its note says that no other says."""
    rules: tuple[int, ...]
    """The numbers of the rules by which it is decided."""


@dataclass(frozen=True)
class ClaimsView:
    """Hold all claims of an experiment as they are shown."""

    counts: tuple[Count, ...]
    tally: str
    own: list[ShownClaim]
    """What the bar counts."""
    more: list[ShownClaim]
    """Decided again under ablations, and questions of ours."""
    rules: tuple[str, ...]


def claims_view(claims: Sequence[Claim]) -> ClaimsView:
    """Prepare the claims; those about ablations, and questions of ours beside the paper's, are not counted."""
    notes = shared_rules([claim.note for claim in claims])
    shown = [
        ShownClaim(claim, slug(claim.verdict), panels_of_claim(claim.figures), _note(claim, own), rules)
        for claim, own, rules in zip(claims, notes.own, notes.shared, strict=True)
    ]
    counted = own_claims(claims)
    own = [view for view in shown if any(view.claim is claim for claim in counted)]
    more = [view for view in shown if not any(view.claim is claim for claim in counted)]
    return ClaimsView(counts(counted), tally(claims), own, more, notes.rules)


def _note(claim: Claim, own: str) -> str:
    return " ".join(filter(None, ("" if claim.needed is None else said_needed(claim.needed), own)))


def own_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims about the experiment itself; if there are none, all of them."""
    return [claim for claim in claims if claim.plain] or list(claims)


def counts(claims: Sequence[Claim]) -> tuple[Count, ...]:
    """Count the verdicts; a verdict that none has is left out.

    >>> [count.words for count in counts([Claim("", "", "", "", "holds"), Claim("", "", "", "", "undecided")])]
    ['1 holds', '1 undecided']
    """
    found = Counter(claim.verdict for claim in claims)
    return tuple(
        Count(slug(verdict), n, f"{n} {WORDS[verdict][n != 1]}", round(100 * n / len(claims), 1))
        for verdict in get_args(Verdict)
        if (n := found[verdict])
    )


def tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts in words.

    >>> tally([Claim("", "", "", "", "holds"), Claim("", "", "", "", "undecided")])
    '2 sentences: 1 holds, 1 undecided'
    """
    own = own_claims(claims)
    many = f"{len(own)} sentence{'s' * (len(own) != 1)}"
    return f"{many}: {', '.join(count.words for count in counts(own))}" if own else many


def slug(verdict: str) -> str:
    """Write a verdict as a class of the style sheet."""
    return {"holds": "holds", "does not hold": "fails"}.get(verdict, "open")
