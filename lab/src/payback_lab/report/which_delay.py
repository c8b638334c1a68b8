"""The tables of docs/which-delay.md, from the committed summaries of `delay` and of the two `center` experiments."""

from collections.abc import Mapping, Sequence

import numpy as np

from payback_lab.claims.claim import Claim, Verdict
from payback_lab.claims.evidence import Cell, Evidence, gather
from payback_lab.experiments.delay.claims import ALL
from payback_lab.experiments.delay.config import LAMBDAS, SCHEMES, setting
from payback_lab.experiments.delay.felt import NAMES
from payback_lab.experiments.delay.ordering import (
    correlated,
    correlation,
    felt_by_cell,
    figures_of,
    learns,
    middle,
    outcomes,
)
from payback_lab.methods import title
from payback_lab.report.doorkey_tables import spread_said
from payback_lab.report.markdown import placed, rows
from payback_lab.report.reach import verdicts
from payback_lab.report.store import results_of
from payback_lab.report.summary import Summary

CENTERS = ("center", "center-cliff")


def filled(page: str, summaries: Mapping[str, Summary]) -> str:
    """Return the page with the results in their places; what has not been run is said to be missing."""
    summary = summaries.get("delay")
    evidence = gather(results_of(summary.groups), "delay") if summary else Evidence({})
    page = placed(page, "delays at a glance", glance(evidence))
    page = placed(page, "table of delay", cells_table(evidence))
    page = placed(page, "correlations of delay", correlations_table(evidence))
    page = placed(page, "verdicts of delay", verdicts(summary.claims if summary else ()))
    decided = [claim for name in CENTERS if name in summaries for claim in summaries[name].claims]
    return placed(page, "verdicts of center", f"{default_mean(decided)}\n\n{verdicts(tuple(decided))}")


def soonest(evidence: Evidence, lam: float) -> str | None:
    """Return the matching that learns soonest at a λ, by its median seed; None where none learns."""
    there = [(setting(lam), scheme) for scheme in SCHEMES if (setting(lam), scheme) in evidence.cells]
    medians = {scheme: middle(steps) for (_, scheme), steps in zip(there, outcomes(evidence, there), strict=True)}
    learning = {scheme: step for scheme, step in medians.items() if np.isfinite(step)}
    return min(learning, key=lambda scheme: learning[scheme]) if learning else None


def glance(evidence: Evidence) -> str:
    """Write when each matching learns at each λ, the soonest of a λ in bold."""
    lines = []
    for lam in sorted(LAMBDAS):
        said = {scheme: _outcome(evidence, (setting(lam), scheme))[1] for scheme in SCHEMES}
        best = soonest(evidence, lam)
        lines.append((f"{lam:g}", *(f"**{text}**" if scheme == best else text for scheme, text in said.items())))
    return rows(("λ", *map(title, SCHEMES)), lines)


def cells_table(evidence: Evidence) -> str:
    """Write every planned cell: its candidates, and when it learns."""
    known = felt_by_cell(ALL)
    lines = []
    for lam, cell in ((lam, cell) for lam in LAMBDAS for cell in ALL if cell[0] == setting(lam)):
        figures = [f"{value:.3f}" for value in known[cell]]
        lines.append((f"{lam:g}", title(cell[1]), *figures, *_outcome(evidence, cell)))
    return rows(("λ", "matching", *NAMES.values(), "seeds", "stays short from, median"), lines)


def _outcome(evidence: Evidence, cell: Cell) -> tuple[str, str]:
    if cell not in evidence.cells:
        return "0", "not run"
    (steps,) = outcomes(evidence, [cell])
    there = int(np.isfinite(steps).sum())
    said = f"{middle(steps) / 1e6:.2f} M" if learns(steps) else "never"
    return f"{len(steps)}", said if there in (0, len(steps)) else f"{said} ({there} of {len(steps)} learn)"


def correlations_table(evidence: Evidence) -> str:
    """Write each candidate's rank correlation with how soon cells learn: at each λ, and over all cells there are."""
    there = [cell for cell in ALL if cell in evidence.cells]
    if not there:
        return "Nothing has been run yet."
    lines = []
    for name, symbol in NAMES.items():
        own = [_within(evidence, name, [cell for cell in there if cell[0] == setting(lam)]) for lam in LAMBDAS]
        # One seed per cell has no interval.
        lines.append((symbol, *own, spread_said(correlated(evidence, there, name), ".2f")))
    header = ("figure", *(f"λ = {lam:g}" for lam in LAMBDAS), f"all {len(there)} cells there are")
    return rows(header, lines)


def _within(evidence: Evidence, name: str, cells: Sequence[Cell]) -> str:
    steps = outcomes(evidence, cells)
    if sum(map(learns, steps)) < 2:
        return "–"
    return f"{float(correlation(figures_of(cells)[name], np.array([middle(one) for one in steps]))):.2f}"


def default_mean(claims: Sequence[Claim]) -> str:
    """Say which mean is the better default by the rule of docs/predictions.md.

    >>> default_mean([])
    'Nothing has been run yet: the default stays the cumulative mean.'
    """
    found: list[Verdict] = [claim.verdict for claim in claims]
    if not found:
        return "Nothing has been run yet: the default stays the cumulative mean."
    sooner, later = found.count("holds"), found.count("does not hold")
    count = f"Of {len(found)} cells a recent mean is sooner in {sooner} and later in {later}"
    if any(claim.lacking for claim in claims) or len(found) < CELLS:
        return f"{count}, so far: not all of the {CELLS} cells have been run, and the default stays."
    if sooner and not later:
        return f"{count}: **a recent mean is the better default**."
    if later and not sooner:
        return f"{count}: **the cumulative mean is the better default**."
    return f"{count}: neither is the better default."


CELLS = 7
"""Four on DoorKey, three on the cliff."""
