"""The committed summaries, as the pages of the docs quote them."""

import json
from pathlib import Path
from typing import Any

from payback_lab.claims.claim import Claim, read_claim


def committed(results: Path, experiment: str) -> dict[str, Any]:
    """Return the committed summary of an experiment."""
    return json.loads((results / experiment / "summary.json").read_text())


def committed_claims(results: Path, experiment: str) -> list[Claim]:
    """Return what was decided about an experiment."""
    return [read_claim(stored) for stored in committed(results, experiment)["claims"]]


def verdicts(results: Path, experiment: str) -> str:
    """Count how the paper's sentences about an experiment came out, its ablations left aside."""
    own = [claim.verdict for claim in committed_claims(results, experiment) if claim.plain]
    holds, fails, open_ = (own.count(verdict) for verdict in ("holds", "does not hold", "undecided"))
    return f"{len(own)} sentences: {holds} hold, {fails} do not, {open_} undecided"
