"""How a sentence about DoorKey is decided: every comparison by its 95 % bootstrap interval over seeds.

A sentence of several comparisons holds if each does, does not hold if one is contradicted, and is undecided
otherwise; with cells, seeds or steps wanting it is undecided whatever the figures are.
"""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from payback_lab.claims.verdicts import (
    all_of,
    interval_of_gap,
    interval_of_ratio,
    not_negative,
    positive,
    ratio_with_interval,
)
from payback_lab.experiments.doorkey.comparison import Pairs, said, said_p, significance, welch
from payback_lab.experiments.doorkey.evidence import LENGTH, SETTLED, SHARE, Cell, Evidence, Measure, figure
from payback_lab.experiments.doorkey.printed import title
from payback_lab.experiments.doorkey.sentence import Decide, Decision, cells
from payback_lab.methods import SCHEMES
from payback_lab.running.plan import Verdict
from payback_lab.statistics import bootstrap_interval

TIE = 0.1
"""How far above the best N̄ the interval of a tie may reach, as a share of that N̄."""
DISTINCT = 0.05 / (len(SCHEMES) - 1)
"""Below this p there is no tie: the best is picked by its figure, so that each of seven others may look worse."""


def below(measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Decide:
    """Decide whether each of `ones` is lower on average than each of `others`."""

    def decide(evidence: Evidence) -> Decision:
        pairs = compared(evidence, measure, ones, others)
        here = f"{said(evidence, measure, (*ones, *others))} ({significance(evidence, measure, pairs)})"
        return here, all_of(pairs.values())

    return decide


def compared(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Pairs:
    """Say of every pair whether the one is lower on average than the other; alike to the last digit is not."""
    values = {cell: evidence.values(cell, measure) for cell in (*ones, *others)}
    return {(a, b): positive(*interval_of_gap(values[b], values[a])) for a in ones for b in others}


def surely_below(measure: Measure, one: Cell, other: Cell, level: float) -> Decide:
    """Decide whether one cell is lower than another by Welch's test at a level of its own.

    For comparisons that are made several at once, where one interval in twenty would err.
    """

    def decide(evidence: Evidence) -> Decision:
        here, verdict = below(measure, [one], [other])(evidence)
        p = welch(evidence.values(one, measure), evidence.values(other, measure))
        return here, "holds" if p < level else "undecided" if verdict == "holds" else verdict

    return decide


def outperforms(settings: Sequence[str], ones: Sequence[str], others: Sequence[str], *measures: Measure) -> Decide:
    """Decide whether at every setting each of `ones` is lower than each of `others` in all measures."""
    return both(*(below(m, cells([k], ones), cells([k], others)) for k in settings for m in measures))


def all_but_one(setting: str, ones: Sequence[str], other: str) -> Decide:
    """Decide whether at most one of `ones` does not settle before the other scheme."""

    def decide(evidence: Evidence) -> Decision:
        pairs = compared(evidence, SETTLED, cells([setting], ones), [(setting, other)])
        counts = {v: [one[1] for (one, _), found in pairs.items() if found == v] for v in get_args(Verdict)}
        here = f"faster: {_listed(counts['holds'])}; not faster: {_listed(counts['does not hold'])}"
        here += f"; open: {_listed(counts['undecided'])}. {said(evidence, SETTLED, cells([setting], (*ones, other)))}"
        here += f" ({significance(evidence, SETTLED, pairs)})"
        enough, refuted = len(counts["holds"]) >= len(ones) - 1, len(counts["does not hold"]) > 1
        return here, "holds" if enough else "does not hold" if refuted else "undecided"

    return decide


def converges(*those: Cell) -> Decide:
    """Decide whether each cell settles in more than half of its seeds."""
    return _share(those, 1)


def fails(*those: Cell) -> Decide:
    """Decide whether each cell settles in less than half of its seeds."""
    return _share(those, -1)


def _share(those: Sequence[Cell], sign: int) -> Decide:
    def decide(evidence: Evidence) -> Decision:
        texts, verdicts = [], []
        for cell in those:
            shares = evidence.values(cell, SHARE)
            low, high = sorted(sign * (float(bound) - 0.5) for bound in bootstrap_interval(shares))
            verdicts.append(positive(low, high))
            untruncated = sum(figure(run, "converged") == 1 for run in evidence.cells[cell])
            kept = f"{int(shares.sum())} of {len(shares)} seeds settle, {untruncated} without truncation at the end"
            texts.append(f"{cell[1]} {title(cell[0])}: {kept}")
        return f"{'; '.join(texts)}. {said(evidence, LENGTH, those)}", all_of(verdicts)

    return decide


def at_most(measure: Measure, ones: Sequence[Cell], others: Sequence[Cell], factor: float) -> Decide:
    """Decide whether each of `ones` is on average at most so many times each of `others`."""

    def decide(evidence: Evidence) -> Decision:
        bounds = [_ratio(evidence, measure, one, other) for one in ones for other in others]
        verdicts: list[Verdict] = [not_negative(factor - high, factor - low) for low, high in bounds]
        return said(evidence, measure, (*ones, *others)), all_of(verdicts)

    return decide


def alike(measure: Measure, one: Cell, other: Cell, factor: float) -> Decide:
    """Decide whether two cells are within a factor of each other."""

    def decide(evidence: Evidence) -> Decision:
        low, high = _ratio(evidence, measure, one, other)
        return _ratio_said(evidence, measure, one, other), all_of(
            (not_negative(low - 1 / factor, high - 1 / factor), not_negative(factor - high, factor - low))
        )

    return decide


def apart(measure: Measure, one: Cell, other: Cell, factor: float) -> Decide:
    """Decide whether one of two cells, whichever, is at least so many times the other."""

    def decide(evidence: Evidence) -> Decision:
        low, high = _ratio(evidence, measure, one, other)
        there, within = low >= factor or high <= 1 / factor, low > 1 / factor and high < factor
        verdict = "holds" if there else "does not hold" if within else "undecided"
        return _ratio_said(evidence, measure, one, other), verdict

    return decide


def between(measure: Measure, those: Sequence[Cell], least: float, most: float) -> Decide:
    """Decide whether the mean of each cell lies between two numbers."""

    def decide(evidence: Evidence) -> Decision:
        verdicts = []
        for cell in those:
            low, high = (float(bound) for bound in bootstrap_interval(evidence.values(cell, measure)))
            verdicts += [not_negative(low - least, high - least), not_negative(most - high, most - low)]
        return said(evidence, measure, those), all_of(verdicts)

    return decide


def tied(setting: str, schemes: Sequence[str]) -> Decide:
    """Decide whether the N̄ of each scheme is a tie with the lowest of all eight."""

    def decide(evidence: Evidence) -> Decision:
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

    return decide


def both(*parts: Decide) -> Decide:
    """Decide a sentence of several parts."""

    def decide(evidence: Evidence) -> Decision:
        decisions = [part(evidence) for part in parts]
        return ". ".join(here for here, _ in decisions), all_of(verdict for _, verdict in decisions)

    return decide


def if_all_reach(measure: Measure, those: Sequence[Cell], part: Decide) -> Decide:
    """Leave a sentence open if a seed of these cells did not get there, so that its figure would be a stand-in."""

    def decide(evidence: Evidence) -> Decision:
        here, verdict = part(evidence)
        there = not any(measure.never(run) for cell in those for run in evidence.cells[cell])
        return here, verdict if there else "undecided"

    return decide


def some(*parts: Decide) -> Decide:
    """Decide whether at least one of several parts holds."""
    return opposite(both(*(opposite(part) for part in parts)))


def opposite(part: Decide) -> Decide:
    """Decide the contrary of a sentence."""
    turned: dict[Verdict, Verdict] = {"holds": "does not hold", "does not hold": "holds", "undecided": "undecided"}

    def decide(evidence: Evidence) -> Decision:
        here, verdict = part(evidence)
        return here, turned[verdict]

    return decide


def _ratio(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> tuple[float, float]:
    return interval_of_ratio(evidence.values(one, measure), evidence.values(other, measure))


def _ratio_said(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> str:
    ratio = ratio_with_interval(evidence.values(one, measure), evidence.values(other, measure))
    return f"{said(evidence, measure, (one, other))}: {ratio}"


def _listed(schemes: Sequence[str]) -> str:
    return ", ".join(schemes) or "–"
