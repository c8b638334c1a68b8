"""Rules that decide claims of any experiment; an experiment's own rules are in its folder.

A claim of several comparisons holds if each does, does not hold if one is contradicted, and is undecided otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from payback_lab.claims.claim import Verdict, combined, holds_if, in_range, negated_verdict, not_negative, positive
from payback_lab.claims.evidence import Cell, Evidence, Measure, cells
from payback_lab.claims.wording import Pairs, format_cells, ratio_with_interval, significance
from payback_lab.statistics import bootstrap_interval, interval_of_gap, interval_of_ratio, welch

Decision = tuple[str, Verdict]
"""What was measured, in words, and the verdict."""
Rule = Callable[[Evidence], Decision]
P = ParamSpec("P")


def rule(decide: Callable[Concatenate[Evidence, P], Decision]) -> Callable[P, Rule]:
    """Make a rule of a function that decides: called without the evidence, it returns what waits for it.

    The rule knows which measures it was given, itself or in its parts, so that their figures can be drawn.
    """

    def made(*args: P.args, **kwargs: P.kwargs) -> Rule:
        given = (*args, *kwargs.values())
        own = (given_measure for given_measure in given if isinstance(given_measure, Measure))
        inner = (measure for part in given for measure in measures_of(part))
        return MeasuringRule(lambda evidence: decide(evidence, *args, **kwargs), tuple(dict.fromkeys((*own, *inner))))

    return made


@dataclass(frozen=True)
class MeasuringRule:
    """Hold a rule and what it measures."""

    decide: Rule
    measures: tuple[Measure, ...]

    def __call__(self, evidence: Evidence) -> Decision:
        """Decide."""
        return self.decide(evidence)


def measures_of(found: object) -> tuple[Measure, ...]:
    """Return what a rule measures; () for anything that does not say."""
    return found.measures if isinstance(found, MeasuringRule) else ()


def measuring(*measures: Measure) -> Callable[[Callable[P, Rule]], Callable[P, Rule]]:
    """Declare what a rule measures that is not given its measures."""
    return lambda make: lambda *args, **kwargs: MeasuringRule(make(*args, **kwargs), measures)


def compare_pairs(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Pairs:
    """Decide for every pair whether the one is lower on average than the other; equal is not."""
    values = {cell: evidence.values(cell, measure) for cell in (*ones, *others)}
    return {(a, b): positive(*interval_of_gap(values[b], values[a])) for a in ones for b in others}


@rule
def lower(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide whether each of `ones` is lower on average than each of `others`."""
    pairs = compare_pairs(evidence, measure, ones, others)
    return format_cells(evidence, measure, (*ones, *others)), combined(pairs.values())


@rule
def lower_tested(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell]) -> Decision:
    """Decide the same, and report p and the probability of improvement."""
    pairs = compare_pairs(evidence, measure, ones, others)
    here = f"{format_cells(evidence, measure, (*ones, *others))} ({significance(evidence, measure, pairs)})"
    return here, combined(pairs.values())


@rule
def lower_at_level(evidence: Evidence, measure: Measure, one: Cell, other: Cell, level: float) -> Decision:
    """Decide whether one cell is lower than another by Welch's test at a level of its own.

    For comparisons that are made several at once, because one interval in twenty would err.
    """
    here, verdict = lower_tested(measure, [one], [other])(evidence)
    p = welch(evidence.values(one, measure), evidence.values(other, measure))
    return here, "holds" if p < level else "undecided" if verdict == "holds" else verdict


def outperforms(settings: Sequence[str], ones: Sequence[str], others: Sequence[str], *measures: Measure) -> Rule:
    """Decide whether at every setting each of `ones` is lower than each of `others` in all measures."""
    return all_of(*(lower_tested(m, cells([k], ones), cells([k], others)) for k in settings for m in measures))


@rule
def ratio_at_most(
    evidence: Evidence, measure: Measure, ones: Sequence[Cell], reference: Cell, at_most: float
) -> Decision:
    """Decide whether each of `ones` is on average at most so many times the reference; report the ratios."""
    base = evidence.values(reference, measure)
    texts = [f"{cell[1]} {ratio_with_interval(evidence.values(cell, measure), base)}" for cell in ones]
    return "; ".join(texts), _at_most(evidence, measure, ones, [reference], at_most)


@rule
def at_most_times(
    evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell], factor: float
) -> Decision:
    """Decide whether each of `ones` is on average at most so many times each of `others`; report the means."""
    verdict = _at_most(evidence, measure, ones, others, factor)
    return format_cells(evidence, measure, (*ones, *others)), verdict


@rule
def within_factor(evidence: Evidence, measure: Measure, one: Cell, other: Cell, factor: float) -> Decision:
    """Decide whether two cells are within a factor of each other."""
    low, high = _ratio(evidence, measure, one, other)
    return _format_ratio(evidence, measure, one, other), in_range(low, high, 1 / factor, factor)


@rule
def differs_by(evidence: Evidence, measure: Measure, one: Cell, other: Cell, factor: float) -> Decision:
    """Decide whether one of two cells, whichever, is at least so many times the other."""
    low, high = _ratio(evidence, measure, one, other)
    there, within = low >= factor or high <= 1 / factor, low > 1 / factor and high < factor
    verdict = "holds" if there else "does not hold" if within else "undecided"
    return _format_ratio(evidence, measure, one, other), verdict


@rule
def between(evidence: Evidence, measure: Measure, those: Sequence[Cell], least: float, most: float) -> Decision:
    """Decide whether the mean of each cell lies between two numbers."""
    bounds = [bootstrap_interval(evidence.values(cell, measure)) for cell in those]
    return format_cells(evidence, measure, those), combined(in_range(low, high, least, most) for low, high in bounds)


@rule
def undecided_unless_reached(evidence: Evidence, measure: Measure, those: Sequence[Cell], part: Rule) -> Decision:
    """Leave a claim open if a seed of these cells did not get there, because its figure would be a stand-in."""
    here, verdict = part(evidence)
    there = not any(measure.never(run) for cell in those for run in evidence.cells[cell])
    return here, verdict if there else "undecided"


@rule
def undecided_if_equal(evidence: Evidence, measure: Measure, one: Cell, other: Cell, part: Rule) -> Decision:
    """Leave a comparison open whose cells are equal in every seed, as where no seed gets there."""
    here, verdict = part(evidence)
    values = {float(value) for cell in (one, other) for value in evidence.values(cell, measure)}
    return here, verdict if len(values) > 1 else "undecided"


@rule
def all_of(evidence: Evidence, *parts: Rule) -> Decision:
    """Decide a claim of several parts: all of them must hold."""
    decisions = [part(evidence) for part in parts]
    return ". ".join(here for here, _ in decisions), combined(verdict for _, verdict in decisions)


def any_of(*parts: Rule) -> Rule:
    """Decide whether at least one of several parts holds."""
    return negated(all_of(*(negated(part) for part in parts)))


@rule
def negated(evidence: Evidence, part: Rule) -> Decision:
    """Decide the negation of a claim."""
    here, verdict = part(evidence)
    return here, negated_verdict(verdict)


@rule
def not_established(evidence: Evidence, part: Rule) -> Decision:
    """Decide that something is not so: holds unless it is established, because seeds cannot show that two are equal."""
    here, verdict = part(evidence)
    return here, holds_if(verdict != "holds")


def _at_most(evidence: Evidence, measure: Measure, ones: Sequence[Cell], others: Sequence[Cell], factor: float):
    bounds = [_ratio(evidence, measure, one, other) for one in ones for other in others]
    return combined(not_negative(factor - high, factor - low) for low, high in bounds)


def _ratio(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> tuple[float, float]:
    return interval_of_ratio(evidence.values(one, measure), evidence.values(other, measure))


def _format_ratio(evidence: Evidence, measure: Measure, one: Cell, other: Cell) -> str:
    ratio = ratio_with_interval(evidence.values(one, measure), evidence.values(other, measure))
    return f"{format_cells(evidence, measure, (one, other))}: {ratio}"
