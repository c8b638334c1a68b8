"""The paper's sentences with their verdicts, as a page of the docs: `python -m payback_lab.report.claims`."""

from pathlib import Path

from payback_lab.claims.claim import Claim
from payback_lab.report.committed import committed, committed_claims
from payback_lab.report.markdown import rows
from payback_lab.report.readme import verdicts

EXPERIMENTS = ("cliff", "long-cliff", "doorkey")
COLUMNS = ("verdict", "sentence", "paper", "here", "where it stands, and how it is decided")
HEAD = """\
# The paper's claims, one by one

Made by `make readme` from [lab/results/](../lab/results); a test holds it against them. "Undecided" means that the
intervals, or the number of seeds, leave it open. DoorKey's rules were written down before its second seed was run. A
name before a sentence is an ablation: there the sentence is decided again for a changed experiment; with
`other-matchings` it is a question of ours. The counts leave these out. Where the seeds leave a sentence about DoorKey
open, its note says how many per cell would decide it in four cases of five, by simulation from the seeds there are.
"""


def page(results: Path) -> str:
    """Return the page in Markdown, from `results` alone."""
    return "\n".join([HEAD, *(section(results, name) for name in EXPERIMENTS)])


def section(results: Path, experiment: str) -> str:
    """Return one experiment's claims as a table under its count of verdicts."""
    table = rows(COLUMNS, map(line, committed_claims(results, experiment)))
    return f"## {committed(results, experiment)['title']}\n\n{verdicts(results, experiment)}.\n\n{table}\n"


def line(claim: Claim) -> tuple[str, ...]:
    """Write one claim's row."""
    where = f"`{claim.where}`. {claim.note}".strip()
    cells = (claim.verdict, claim.text, claim.paper or "–", claim.here or "–", where)
    return tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)


if __name__ == "__main__":
    Path("docs/claims.md").write_text(page(Path("lab/results")))
