"""The claims with their verdicts as a page of the docs, docs/claims.md: `payback-lab docs` writes it."""

from collections.abc import Sequence
from pathlib import Path

from payback_lab import experiments
from payback_lab.claims.claim import Claim, Figure
from payback_lab.report.claims_view import ClaimsView, ShownClaim, claims_view
from payback_lab.report.committed import committed, committed_claims
from payback_lab.report.dots import mean_said
from payback_lab.report.markdown import cell, rows
from payback_lab.report.tables import number

COLUMNS = ("verdict", "sentence", "here (paper)", "decided")
HEAD = """\
# The paper's claims, one by one

Made by `payback-lab docs` from [lab/results/](../lab/results); a test holds it against them. Under each table stand the
rules that several sentences share, and folded below them every sentence in full: intervals, tests, and what the paper
prints.

"Undecided" means that the intervals, or the number of seeds, leave it open. DoorKey's rules were written down before
its second seed was run. A name before a sentence is an ablation: there the sentence is decided again for a changed
experiment; with `other-matchings` it is a question of ours. The counts leave these out. Where the seeds of an
experiment with PPO leave a sentence open, its note says how many per cell would decide it in four cases of five, by
simulation from the seeds there are.

Runs with the same seed are equal to the bit on one kind of processor and not across kinds: on another kind 3 instead
of 4 seeds of 10 were optimal in one cell, while the verdicts agreed.
"""


def page(results: Path) -> str:
    """Return the page in Markdown, from `results` alone."""
    there = [name for name in experiments.MODULES if (results / name / "summary.json").is_file()]
    return "\n".join([HEAD, *(section(results, name) for name in there if committed_claims(results, name))])


def section(results: Path, experiment: str) -> str:
    """Return one experiment's claims: the count, a table, the rules, and every sentence in full."""
    view = claims_view(committed_claims(results, experiment))
    own, more = (rows(COLUMNS, [line(claim, experiment) for claim in shown]) for shown in (view.own, view.more))
    parts = (
        f"## {committed(results, experiment)['title']}",
        f"{view.tally}.",
        own,
        f"Decided again under ablations, and questions of ours:\n\n{more}" if view.more else "",
        rules(view, experiment),
        in_full([shown.claim for shown in (*view.own, *view.more)]),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def line(shown: ShownClaim, experiment: str) -> tuple[str, ...]:
    """Write one claim's row: the means alone, the paper's in brackets."""
    numbers = ", ".join(f"[{n}](#{experiment}-rule-{n})" for n in shown.rules)
    decided = " ".join(filter(None, (cell(shown.note), f"Rule {numbers}" if numbers else "")))
    claim = shown.claim
    marked = any(figure.paper is not None for figure in claim.figures)
    paper = f"(paper: {claim.paper})" if claim.paper and not marked else ""
    here = " ".join(filter(None, (figures_said(claim.figures) or claim.here, paper)))
    return f"**{claim.verdict}**", cell(claim.text), cell(here) or "–", decided or "–"


def figures_said(figures: Sequence[Figure]) -> str:
    """Say the means of a claim, the paper's in brackets, measure by measure and setting by setting.

    >>> ours = Figure("N̄", "(0.02, 0.995)", "im", 268.2, 263.4, 273.3, 3, paper=60.5)
    >>> figures_said([ours, Figure("N̄", "(0.02, 0.995)", "pbim", 624.6, 621.1, 629.5, 3)])
    'N̄ at (0.02, 0.995): im 268 (60.5), pbim 625'
    """
    parts: dict[str, list[str]] = {}
    for figure in figures:
        paper = "" if figure.paper is None else f" ({number(figure.paper)})"
        title = " at ".join(filter(None, (figure.measure, figure.setting)))
        parts.setdefault(title, []).append(f"{figure.scheme} {mean_said(figure)}{paper}")
    return "; ".join(f"{title}: {', '.join(said)}" for title, said in parts.items())


def rules(view: ClaimsView, experiment: str) -> str:
    """List the rules, each with the place that the table points to."""
    return "\n".join(
        f'{n}. <a id="{experiment}-rule-{n}"></a>{cell(rule)}' for n, rule in enumerate(view.rules, start=1)
    )


def in_full(claims: Sequence[Claim]) -> str:
    """Write every claim in full, folded."""
    items = []
    for claim in claims:
        parts = (f"Paper: {claim.paper}." if claim.paper else "", f"Here: {claim.here}." if claim.here else "")
        said = " ".join(cell(part) for part in (*parts, f"`{claim.where}`") if part)
        items.append(f"- **{claim.verdict}**: {cell(claim.text)} {said}")
    return "\n".join(["<details><summary>Every sentence in full</summary>", "", *items, "", "</details>"])


if __name__ == "__main__":
    Path("docs/claims.md").write_text(page(Path("lab/results")))
