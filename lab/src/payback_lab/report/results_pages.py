"""The pages of docs/results whose tables are written into them from the committed summaries."""

from collections.abc import Callable
from pathlib import Path

from payback_lab.claims.wording import figure_said
from payback_lab.experiments.cliff.claims import FASTEST
from payback_lab.methods import SCHEMES
from payback_lab.prior_work import summary as prior_work
from payback_lab.report.committed import committed, committed_claims
from payback_lab.report.doorkey_tables import tables
from payback_lab.report.markdown import placed, rows
from payback_lab.user_error import UserError

CONVERGED = {"cliff": FASTEST.sentence, "long-cliff": None}
"""The sentence whose figures are the episodes to convergence, by experiment."""


def table(results: Path, experiment: str) -> str:
    """Return one experiment's table in Markdown: a row per scheme, from `results` alone."""
    runs = next(group["runs"] for group in committed(results, experiment)["groups"] if group["name"] == experiment)
    figures = {claim.sentence: claim.figures for claim in committed_claims(results, experiment) if claim.plain}
    sentence = CONVERGED[experiment]
    episodes = {figure.scheme: figure_said(figure) for figure in figures[sentence]} if sentence else {}
    header = ["scheme", *(["converged, episode"] if episodes else []), "optimal", "greedy return", "greedy moves"]
    header.append("largest law residual")
    lines = []
    for scheme in SCHEMES:
        own = [run for run in runs if run["scheme"] == scheme]
        row = [f"`{scheme}`", *([episodes[scheme]] if episodes else [])]
        row.append(f"{sum(run['optimal'] for run in own)} of {len(own)}")
        row += [f"{sum(run[name] for run in own) / len(own):.1f}" for name in ("greedy_return", "greedy_length")]
        paid = scheme not in ("none", "im")
        row.append(f"{max(run['law_residual'] for run in own):.0e}" if paid else "–")
        lines.append(row)
    return rows(header, lines)


def with_cliffs(page: str, results: Path) -> str:
    """Return docs/results/cliff.md with its tables in their places."""
    for experiment in CONVERGED:
        page = placed(page, f"table of {experiment}", table(results, experiment))
    return page


def with_doorkey(page: str, results: Path) -> str:
    """Return docs/results/doorkey.md with its tables in their places."""
    return placed(page, "tables of doorkey", tables(results))


def with_prior_work(page: str, results: Path) -> str:
    """Return docs/results/prior-work.md with its table and the notes to it."""
    decided = prior_work.load(results)
    if decided is None:
        raise UserError(f"There is no table of prior work in {results}: bring it back from git.")
    notes = "\n".join(f"- {note}" for note in prior_work.NOTES)
    return placed(page, "table of prior work", f"{prior_work.as_markdown(decided.table)}\n\n{notes}")


FILLED: dict[str, Callable[[str, Path], str]] = {
    "docs/results/cliff.md": with_cliffs,
    "docs/results/doorkey.md": with_doorkey,
    "docs/results/prior-work.md": with_prior_work,
}
"""Each page, and what fills it."""
