"""The claims of an experiment as they are shown: counts, small charts, and the tables of docs/claims.md."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from payback_lab import experiments
from payback_lab.claims.claim import DecidedClaim, Figure, Verdict
from payback_lab.claims.decide import format_needed
from payback_lab.report.dots import Panel, format_figure_mean, panels_of_claim
from payback_lab.report.markdown import cell, folded, rows
from payback_lab.report.store import committed, committed_claims
from payback_lab.report.tables import number

COLUMNS = ("verdict", "claim", "here (paper)")
WORDS = {"holds": ("holds", "hold"), "does not hold": ("does not", "do not"), "undecided": ("undecided", "undecided")}
"""Verdict → how one and how several are counted."""

REWORDED = (
    ("stays short from, M steps", "solved from, M steps"),
    ("but ends more than 10 times the fewest steps from it", "but takes more than 10 times the shortest path"),
    ("over the fewest steps", "relative to the shortest path"),
    ("the fewest steps", "the shortest path"),
    (
        "No interval tells GRM D = 30, PIES and phased-in repayment apart",
        "GRM D = 30, PIES and phased-in repayment do not differ significantly",
    ),
)
"""Words of committed summaries, which are not written again, and what the pages say instead."""


@dataclass(frozen=True)
class Count:
    """Hold one part of the bar of verdicts."""

    verdict: str
    number: int
    words: str
    """ "16 hold"."""


@dataclass(frozen=True)
class ShownClaim:
    """Hold one claim as it is shown."""

    claim: DecidedClaim
    verdict_class: str
    panels: list[Panel]
    note: str
    """How many seeds would decide it, if it is open, and its rule."""


@dataclass(frozen=True)
class ClaimsView:
    """Hold all claims of an experiment as they are shown."""

    counts: tuple[Count, ...]
    tally: str
    own: list[ShownClaim]
    """What the bar counts."""
    more: list[ShownClaim]
    """Decided again under ablations, and questions of ours."""


def claims_view(claims: Sequence[DecidedClaim]) -> ClaimsView:
    """Prepare the claims; those about ablations, and questions of ours beside the paper's, are not counted."""
    counted = own_claims(claims)
    own = [_shown(claim) for claim in counted]
    more = [_shown(claim) for claim in claims if not any(claim is other for other in counted)]
    return ClaimsView(counts(counted), tally(claims), own, more)


def _shown(claim: DecidedClaim) -> ShownClaim:
    return ShownClaim(claim, slug(claim.verdict), panels_of_claim(claim.figures), note(claim))


def note(claim: DecidedClaim) -> str:
    """Return how many seeds would decide a claim, if it is open, and its rule."""
    return " ".join(filter(None, ("" if claim.needed is None else format_needed(claim.needed), claim.note)))


def own_claims(claims: Sequence[DecidedClaim]) -> list[DecidedClaim]:
    """Return the claims about the experiment itself; if there are none, all of them."""
    return [claim for claim in claims if claim.plain] or list(claims)


def counts(claims: Sequence[DecidedClaim]) -> tuple[Count, ...]:
    """Count the verdicts; a verdict that none has is left out.

    >>> verdicts = ("holds", "undecided")
    >>> [count.words for count in counts([DecidedClaim("", "", "", "", verdict) for verdict in verdicts])]
    ['1 holds', '1 undecided']
    """
    found = Counter(claim.verdict for claim in claims)
    return tuple(
        Count(slug(verdict), n, f"{n} {WORDS[verdict][n != 1]}")
        for verdict in get_args(Verdict)
        if (n := found[verdict])
    )


def tally(claims: Sequence[DecidedClaim]) -> str:
    """Count the verdicts in words.

    >>> tally([DecidedClaim("", "", "", "", "holds"), DecidedClaim("", "", "", "", "undecided")])
    '2 claims: 1 holds, 1 undecided'
    """
    own = own_claims(claims)
    many = f"{len(own)} claim{'s' * (len(own) != 1)}"
    return f"{many}: {', '.join(count.words for count in counts(own))}" if own else many


def slug(verdict: str) -> str:
    """Write a verdict as a class of the style sheet."""
    return {"holds": "holds", "does not hold": "fails"}.get(verdict, "open")


def claims_of_all(results: Path) -> str:
    """Write the claims of every committed experiment for docs/claims.md."""
    there = [name for name in experiments.MODULES if (results / name / "summary.json").is_file()]
    decided = {name: found for name in there if (found := committed_claims(results, name))}
    return "\n\n".join((overview(results, decided), *(section(results, name) for name in decided)))


def overview(results: Path, decided: Mapping[str, Sequence[DecidedClaim]]) -> str:
    """Count the verdicts of every experiment in one table."""
    lines = []
    for name, claims in decided.items():
        found = Counter(claim.verdict for claim in own_claims(claims))
        lines.append((committed(results, name)["title"], *(f"{found[verdict]}" for verdict in get_args(Verdict))))
    return rows(("experiment", *get_args(Verdict)), lines)


def section(results: Path, experiment: str) -> str:
    """Return one experiment's claims: the count, a table, and every claim in full, folded."""
    view = claims_view(committed_claims(results, experiment))
    own, more = (rows(COLUMNS, [line(shown.claim) for shown in part]) for part in (view.own, view.more))
    again = folded(more, f"{len(view.more)} verdicts under ablations, and on questions of our own", longest=0)
    parts = (
        f"## {committed(results, experiment)['title']}",
        f"{view.tally}.",
        folded(own, f"All {len(view.own)} claims", longest=0),
        again if view.more else "",
        in_full(experiment, [shown.claim for shown in (*view.own, *view.more)]),
    )
    return "\n\n".join(filter(None, parts))


def reworded(text: str) -> str:
    """Write the text of a committed claim in the words of the pages, for a cell of a table.

    >>> reworded("length over the fewest steps: im 4.6")
    'length relative to the shortest path: im 4.6'
    """
    for then, now in REWORDED:
        text = text.replace(then, now)
    return cell(text)


def line(claim: DecidedClaim) -> tuple[str, ...]:
    """Write one claim's row: the means alone, the paper's in brackets."""
    marked = any(figure.paper is not None for figure in claim.figures)
    paper = f"(paper: {claim.paper})" if claim.paper and not marked else ""
    here = " ".join(filter(None, (format_figures(claim.figures) or claim.here, paper)))
    return f"**{claim.verdict}**", reworded(claim.text), reworded(here) or "–"


def format_figures(figures: Sequence[Figure]) -> str:
    """Write the means of a claim, the paper's in brackets, measure by measure and setting by setting.

    >>> ours = Figure("N̄", "(0.02, 0.995)", "im", 268.2, 263.4, 273.3, 3, paper=60.5)
    >>> format_figures([ours, Figure("N̄", "(0.02, 0.995)", "pbim", 624.6, 621.1, 629.5, 3)])
    'N̄ at (0.02, 0.995): im 268 (60.5), pbim 625'
    """
    parts: dict[str, list[str]] = {}
    for figure in figures:
        paper = "" if figure.paper is None else f" ({number(figure.paper)})"
        title = " at ".join(filter(None, (figure.measure, figure.setting)))
        parts.setdefault(title, []).append(f"{figure.scheme} {format_figure_mean(figure)}{paper}")
    return "; ".join(f"{title}: {', '.join(values)}" for title, values in parts.items())


def in_full(experiment: str, claims: Sequence[DecidedClaim]) -> str:
    """Write every claim in full, folded: intervals, tests, what the paper prints, and the rule."""
    items = []
    for claim in claims:
        parts = (
            f"Paper: {claim.paper}." if claim.paper else "",
            f"Here: {claim.here}." if claim.here else "",
            f"*Rule*: {rule}" if (rule := note(claim)) else "",
        )
        text = " ".join(reworded(part) for part in (*parts, f"`{claim.where}`") if part)
        items.append(f"- **{claim.verdict}**: {reworded(claim.text)} {text}")
    return "\n".join([f"<details><summary>Every claim in full: {experiment}</summary>", "", *items, "", "</details>"])


def verdicts(claims: Sequence[DecidedClaim]) -> str:
    """Write what was predicted and what came out as a table."""
    return rows(("verdict", "predicted", "measured"), ((c.verdict, reworded(c.text), reworded(c.here)) for c in claims))
