"""The tables of docs/reach.md, from the committed summary of `reach`."""

from payback_lab.claims.claim import Claim
from payback_lab.experiments.reach.measures import Row
from payback_lab.methods import title
from payback_lab.report.charts.reach import reach_rows
from payback_lab.report.doorkey_tables import reached_said, spread_said
from payback_lab.report.markdown import cell, placed, rows
from payback_lab.report.summary import Summary

HEADER = ("grid", "method", "seeds", "solved", "stays short from", "final length over the optimum", "reaches it")
VERDICTS = ("verdict", "predicted", "measured")


def filled(page: str, summary: Summary) -> str:
    """Return the page with the results in their places."""
    page = placed(page, "table of reach", rows(HEADER, map(line, reach_rows(summary))))
    return placed(page, "verdicts of reach", verdicts(summary.claims))


def line(row: Row) -> tuple[str, ...]:
    """Write one row."""
    said = {True: "yes", False: "no", None: "too few seeds"}[row.reaches]
    return (
        f"{row.size}×{row.size}",
        title(row.scheme),
        f"{row.seeds}",
        spread_said(row.solved, ".0%"),
        reached_said(row.settled),
        spread_said(row.over_optimum, unit=" ×"),
        said,
    )


def verdicts(claims: tuple[Claim, ...]) -> str:
    """Write what was predicted and came out as a table."""
    return rows(VERDICTS, ((claim.verdict, claim.text, cell(claim.here)) for claim in claims))
