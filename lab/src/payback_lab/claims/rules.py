"""Rules that decide sentences of any experiment; an experiment's own rules stand in its folder.

A sentence of several comparisons holds if each does, does not hold if one is contradicted, and is undecided otherwise.
"""

from collections.abc import Sequence

from payback_lab.claims.comparison import interval_of_gap, interval_of_ratio, welch
from payback_lab.claims.evidence import Cell, Evidence, Measure, cells
from payback_lab.claims.sentence import Decision, Rule, rule
from payback_lab.claims.verdicts import all_of, holds_if, in_range, not_negative, opposite_of, positive
from payback_lab.claims.wording import Pairs, ratio_with_interval, said, significance
from payback_lab.statistics import bootstrap_interval


def compared(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Pairs:
    """Say of every pair whether the one is lower on average than the other; alike to the last digit is not."""
    values = {cell: evidence.values(cell, measure) for cell in (*ones, *others)}
    return {(a, b): positive(*interval_of_gap(values[b], values[a])) for a in ones for b in others}


@rule
def lower(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide whether each of `ones` is lower on average than each of `others`."""
    pairs = compared(evidence, measure, ones, others)
    return said(evidence, measure, (*ones, *others)), all_of(pairs.values())


@rule
def lower_tested(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide the same, and say p and the probability of improvement."""
    pairs = compared(evidence, measure, ones, others)
    here = f"{said(evidence, measure, (*ones, *others))} ({significance(evidence, measure, pairs)})"
    return here, all_of(pairs.values())


@rule
def surely_lower(evidence: Evidence, measure: Measure, one: Cell, other: Cell, level: float) -> Decision:
    """Decide whether one cell is lower than another by Welch's test at a level of its own.

    For comparisons that are made several at once, because one interval in twenty would err.
    """
    here, verdict = lower_tested(measure, [one], [other])(evidence)
    p = welch(evidence.values(one, measure), evidence.values(other, measure))
    return here, "holds" if p < level else "undecided" if verdict == "holds" else verdict


def outperforms(settings: Sequence[str], ones: Sequence[str], others: Sequence[str], *measures: Measure) -> Rule:
    """Decide whether at every setting each of `ones` is lower than each of `others` in all measures."""
    return both(*(lower_tested(m, cells([k], ones), cells([k], others)) for k in settings for m in measures))


@rule
def times(evidence: Evidence, measure: Measure, ones: Sequence[Cell], reference: Cell, at_most: float) -> Decision:
    """Decide whether each of `ones` is on average at most so many times the reference; the ratios are said."""
    base = evidence.values(reference, measure)
    texts = [f"{cell[1]} {ratio_with_interval(evidence.values(cell, measure), base)}" for cell in ones]
    return "; ".join(texts), _at_most(evidence, measure, ones, [reference], at_most)


@rule
def at_most(
    evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell], factor: float
) -> Decision:
    """Decide whether each of `ones` is on average at most so many times each of `others`; the means are said."""
    verdict = _at_most(evidence, measure, ones, others, factor)
    return said(evidence, measure, (*ones, *others)), verdict


@rule
def alike(evidence: Evidence, measure: Measure, one: Cell, other: Cell, factor: float) -> Decision:
    """Decide whether two cells are within a factor of each other."""
    low, high = _ratio(evidence, measure, one, other)
    return _ratio_said(evidence, measure, one, other), in_range(low, high, 1 / factor, factor)


@rule
def apart(evidence: Evidence, measure: Measure, one: Cell, other: Cell, factor: float) -> Decision:
    """Decide whether one of two cells, whichever, is at least so many times the other."""
    low, high = _ratio(evidence, measure, one, other)
    there, within = low >= factor or high <= 1 / factor, low > 1 / factor and high < factor
    verdict = "holds" if there else "does not hold" if within else "undecided"
    return _ratio_said(evidence, measure, one, other), verdict


@rule
def between(evidence: Evidence, measure: Measure, those: Sequence[Cell], least: float, most: float) -> Decision:
    """Decide whether the mean of each cell lies between two numbers."""
    bounds = [bootstrap_interval(evidence.values(cell, measure)) for cell in those]
    return said(evidence, measure, those), all_of(in_range(low, high, least, most) for low, high in bounds)


@rule
def if_all_reach(evidence: Evidence, measure: Measure, those: Sequence[Cell], part: Rule) -> Decision:
    """Leave a sentence open if a seed of these cells did not get there, because its figure would be a stand-in."""
    here, verdict = part(evidence)
    there = not any(measure.never(run) for cell in those for run in evidence.cells[cell])
    return here, verdict if there else "undecided"


@rule
def if_told_apart(evidence: Evidence, measure: Measure, one: Cell, other: Cell, part: Rule) -> Decision:
    """Leave a comparison open whose cells are equal in every seed, as where no seed gets there."""
    here, verdict = part(evidence)
    values = {float(value) for cell in (one, other) for value in evidence.values(cell, measure)}
    return here, verdict if len(values) > 1 else "undecided"


@rule
def both(evidence: Evidence, *parts: Rule) -> Decision:
    """Decide a sentence of several parts."""
    decisions = [part(evidence) for part in parts]
    return ". ".join(here for here, _ in decisions), all_of(verdict for _, verdict in decisions)


def some(*parts: Rule) -> Rule:
    """Decide whether at least one of several parts holds."""
    return opposite(both(*(opposite(part) for part in parts)))


@rule
def opposite(evidence: Evidence, part: Rule) -> Decision:
    """Decide the contrary of a sentence."""
    here, verdict = part(evidence)
    return here, opposite_of(verdict)


@rule
def not_shown(evidence: Evidence, part: Rule) -> Decision:
    """Decide that something is not so: holds unless it is shown to be, because seeds cannot show that two are alike."""
    here, verdict = part(evidence)
    return here, holds_if(verdict != "holds")


def _at_most(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell], factor: float):
    bounds = [_ratio(evidence, measure, one, other) for one in ones for other in others]
    return all_of(not_negative(factor - high, factor - low) for low, high in bounds)


def _ratio(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> tuple[float, float]:
    return interval_of_ratio(evidence.values(one, measure), evidence.values(other, measure))


def _ratio_said(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> str:
    ratio = ratio_with_interval(evidence.values(one, measure), evidence.values(other, measure))
    return f"{said(evidence, measure, (one, other))}: {ratio}"
