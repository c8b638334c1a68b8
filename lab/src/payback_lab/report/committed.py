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
