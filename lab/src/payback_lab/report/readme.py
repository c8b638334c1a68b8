"""The README's tables of results, written into it from the committed ones: `python -m payback_lab.report.readme`."""

from pathlib import Path

from payback_lab.claims.wording import figures_said
from payback_lab.experiments.cliff.claims import FASTEST
from payback_lab.methods import SCHEMES
from payback_lab.report.committed import committed, committed_claims
from payback_lab.report.markdown import placed, rows
from payback_lab.report.readme_doorkey import tables

CONVERGED = {"cliff": FASTEST.sentence, "long-cliff": None}
"""The sentence whose figures are the episodes to convergence, by experiment."""


def table(results: Path, experiment: str) -> str:
    """Return one experiment's table in Markdown: a row per scheme, from `results` alone."""
    runs = next(group["runs"] for group in committed(results, experiment)["groups"] if group["name"] == experiment)
    here = {claim.sentence: claim.here for claim in committed_claims(results, experiment) if claim.plain}
    sentence = CONVERGED[experiment]
    episodes = figures_said(here[sentence]) if sentence else {}
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


def verdicts(results: Path, experiment: str) -> str:
    """Count how the paper's sentences about an experiment came out, its ablations left aside."""
    own = [claim.verdict for claim in committed_claims(results, experiment) if claim.plain]
    holds, fails, open_ = (own.count(verdict) for verdict in ("holds", "does not hold", "undecided"))
    return f"{len(own)} sentences: {holds} hold, {fails} do not, {open_} undecided"


def filled(page: str, results: Path) -> str:
    """Return the README with the tables of the results in their places."""
    for experiment in CONVERGED:
        page = placed(page, f"table of {experiment}", table(results, experiment))
    return placed(page, "tables of doorkey", tables(results))


if __name__ == "__main__":
    readme = Path("README.md")
    readme.write_text(filled(readme.read_text(), Path("lab/results")))
