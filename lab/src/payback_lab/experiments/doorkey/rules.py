"""Rules for sentences about DoorKey alone: who converges, who is tied with the best, all but one."""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from payback_lab.claims.claim import Verdict
from payback_lab.claims.comparison import interval_of_gap, welch
from payback_lab.claims.evidence import Cell, Evidence, cells
from payback_lab.claims.rules import compared
from payback_lab.claims.sentence import Decision, Rule, measuring, rule
from payback_lab.claims.verdicts import all_of, positive
from payback_lab.claims.wording import said, said_p, significance
from payback_lab.experiments.doorkey.measures import LENGTH, SETTLED, settles
from payback_lab.experiments.doorkey.printed import title
from payback_lab.methods import SCHEMES
from payback_lab.statistics import bootstrap_interval

TIE = 0.1
"""How far above the best N̄ the interval of a tie may reach, as a share of that N̄."""
DISTINCT = 0.05 / (len(SCHEMES) - 1)
"""Below this p there is no tie: the best is picked by its figure, so that each of seven others may look worse."""


@measuring(SETTLED)
@rule
def all_but_one(evidence: Evidence, setting: str, ones: Sequence[str], other: str) -> Decision:
    """Decide whether at most one of `ones` does not settle before the other scheme."""
    pairs = compared(evidence, SETTLED, cells([setting], ones), [(setting, other)])
    counts = {v: [one[1] for (one, _), found in pairs.items() if found == v] for v in get_args(Verdict)}
    here = f"faster: {_listed(counts['holds'])}; not faster: {_listed(counts['does not hold'])}"
    here += f"; open: {_listed(counts['undecided'])}. {said(evidence, SETTLED, cells([setting], (*ones, other)))}"
    here += f" ({significance(evidence, SETTLED, pairs)})"
    enough, refuted = len(counts["holds"]) >= len(ones) - 1, len(counts["does not hold"]) > 1
    return here, "holds" if enough else "does not hold" if refuted else "undecided"


def converges(*those: Cell) -> Rule:
    """Decide whether each cell settles in more than half of its seeds."""
    return _share(those, 1)


def fails(*those: Cell) -> Rule:
    """Decide whether each cell settles in less than half of its seeds."""
    return _share(those, -1)


@measuring(LENGTH)
@rule
def _share(evidence: Evidence, those: Sequence[Cell], sign: int) -> Decision:

    texts, verdicts = [], []
    for cell in those:
        shares = settles(evidence, cell)
        low, high = sorted(sign * (float(bound) - 0.5) for bound in bootstrap_interval(shares))
        verdicts.append(positive(low, high))
        untruncated = int((evidence.figures(cell, "converged") == 1).sum())
        kept = f"{int(shares.sum())} of {len(shares)} seeds settle, {untruncated} without truncation at the end"
        texts.append(f"{cell[1]} {title(cell[0])}: {kept}")
    return f"{'; '.join(texts)}. {said(evidence, LENGTH, those)}", all_of(verdicts)


@measuring(LENGTH)
@rule
def tied(evidence: Evidence, setting: str, schemes: Sequence[str]) -> Decision:
    """Decide whether the N̄ of each scheme is a tie with the lowest of all eight."""
    values = {s: evidence.values((setting, s), LENGTH) for s in SCHEMES}
    best = min(SCHEMES, key=lambda s: values[s].mean())
    texts: list[str] = []
    verdicts: list[Verdict] = []
    for scheme in schemes:
        low, high = interval_of_gap(values[scheme], values[best]) if scheme != best else (0.0, 0.0)
        p, near = welch(values[best], values[scheme]), high <= TIE * values[best].mean()
        verdicts.append("does not hold" if p < DISTINCT else "holds" if near else "undecided")
        shown = "" if scheme == best or np.isnan(p) else f", {said_p(p)}"
        gap = values[scheme].mean() - values[best].mean()
        texts.append(f"{scheme} {gap:+.1f} [{low:+.1f}, {high:+.1f}]{shown}")
    here = f"{title(setting)} above the lowest N̄ ({best} {values[best].mean():.1f}): {'; '.join(texts)}"
    return here, all_of(verdicts)


def _listed(schemes: Sequence[str]) -> str:
    return ", ".join(schemes) or "–"
