"""The README's tables of results, written into it from the committed ones: `python -m payback_lab.report.readme`."""

import json
from pathlib import Path
from typing import Any

from payback_lab.claims.claim import read_claim
from payback_lab.methods import SCHEMES
from payback_lab.report.markdown import placed, rows
from payback_lab.report.readme_doorkey import tables

CONVERGED = {"cliff": "No IM is the fastest to converge.", "long-cliff": None}
"""The claim whose figures are the episodes to convergence, by experiment."""


def committed(results: Path, experiment: str) -> dict[str, Any]:
    """Return the committed summary of an experiment."""
    return json.loads((results / experiment / "summary.json").read_text())


def table(results: Path, experiment: str) -> str:
    """Return one experiment's table in Markdown: a row per scheme, from `results` alone."""
    summary = committed(results, experiment)
    runs = next(group["runs"] for group in summary["groups"] if group["name"] == experiment)
    episodes = _figures(summary["claims"], CONVERGED[experiment])
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
    claims = map(read_claim, committed(results, experiment)["claims"])
    own = [claim.verdict for claim in claims if claim.plain]
    holds, fails, open_ = (own.count(verdict) for verdict in ("holds", "does not hold", "undecided"))
    return f"{len(own)} sentences: {holds} hold, {fails} do not, {open_} undecided"


def _figures(claims: list[dict[str, Any]], sentence: str | None) -> dict[str, str]:
    for claim in claims:
        if claim["sentence"] == sentence:
            return dict(part.split(" ", 1) for part in claim["here"].split("; "))
    return {}


def filled(page: str, results: Path) -> str:
    """Return the README with the tables of the results in their places."""
    for experiment in CONVERGED:
        page = placed(page, f"table of {experiment}", table(results, experiment))
    return placed(page, "tables of doorkey", tables(results))


if __name__ == "__main__":
    readme = Path("README.md")
    readme.write_text(filled(readme.read_text(), Path("lab/results")))
