"""The rules of docs/predictions.md by which claims about the arena are decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from payback_lab.claims.claim import Verdict, combined, holds_if, positive
from payback_lab.claims.decide import FEWEST
from payback_lab.claims.evidence import Cell, Evidence, Measure
from payback_lab.claims.rules import Decision, Rule, rule
from payback_lab.claims.wording import format_cells
from payback_lab.experiments.arena.finished import SEEDS, Figures
from payback_lab.experiments.arena.measures import is_found, is_solved, over_fewest, scores, shares, solved_steps
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.over_tasks import probability_of_improvement
from payback_lab.statistics import Estimate, bootstrap_interval


def runs_of(evidence: Evidence, cell: Cell) -> list[Figures]:
    """Return the single figures of the runs of a cell."""
    return [run.summary for run in evidence.cells[cell]]


def of_first_seeds(evidence: Evidence) -> Evidence:
    """Return the evidence with as many seeds of every cell as the sweep of the time limit has."""
    return replace(evidence, cells={cell: runs[:SEEDS] for cell, runs in evidence.cells.items()})


def _of_task(measure: Callable[[str, Sequence[Figures]], np.ndarray]) -> Callable[[Evidence, Cell], np.ndarray]:
    return lambda evidence, cell: measure(parse_setting(cell[0]).task, runs_of(evidence, cell))


SHARE = Measure("goal reached", lambda evidence, cell: shares(runs_of(evidence, cell)), 3, label="share solved")
OVER = Measure("length over the fewest steps", _of_task(over_fewest), 2)
SCORE = Measure("score", _of_task(scores), 3)
STEPS = Measure(
    "solved from step",
    lambda evidence, cell: solved_steps(runs_of(evidence, cell)),
    never=lambda run: run.summary.get("solved_step") is None,
)


@rule
def solved(evidence: Evidence, measure: Measure, cell: Cell, expected: bool) -> Decision:
    """Decide whether a method solves a task, or does not if that was expected."""
    return format_cells(evidence, measure, [cell]), holds_if(is_solved(runs_of(evidence, cell)) == expected)


@rule
def found(evidence: Evidence, measure: Measure, cell: Cell) -> Decision:
    """Decide whether a method's median seed finds the goal."""
    return format_cells(evidence, measure, [cell]), holds_if(is_found(runs_of(evidence, cell)))


@rule
def if_found(evidence: Evidence, measure: Measure, those: Sequence[Cell], part: Rule) -> Decision:
    """Leave a claim about lengths open if none of these cells finds the goal, because all have the time limit's."""
    here, verdict = part(evidence)
    there = any(is_found(runs_of(evidence, cell)) for cell in those)
    return f"{format_cells(evidence, measure, those)}. {here}", verdict if there else "undecided"


@rule
def more_than(evidence: Evidence, measure: Measure, cell: Cell, least: float) -> Decision:
    """Decide whether the mean of a cell is above a number."""
    low, high = bootstrap_interval(evidence.values(cell, measure))
    return format_cells(evidence, measure, [cell]), positive(low - least, high - least)


@rule
def not_significantly_different(evidence: Evidence, measure: Measure, cells: Sequence[Cell]) -> Decision:
    """Decide whether no interval of the probability of improvement between two of some cells leaves out one half."""
    texts, different = [format_cells(evidence, measure, cells)], False
    for one, other in combinations(cells, 2):
        text, chance = _improvement(evidence, measure, [one], [other])
        texts.append(text)
        different |= chance.low > 0.5 or chance.high < 0.5
    return "; ".join(texts), holds_if(not different)


@rule
def lies_between(
    evidence: Evidence, measure: Measure, low: Sequence[Cell], middle: Sequence[Cell], high: Sequence[Cell]
) -> Decision:
    """Decide whether one method is better than a second and a third better than it, over all tasks together."""
    verdicts: list[Verdict] = []
    texts = []
    for better, worse in ((middle, low), (high, middle)):
        text, chance = _improvement(evidence, measure, better, worse)
        texts.append(text)
        verdicts.append("holds" if chance.low > 0.5 else "does not hold" if chance.high < 0.5 else "undecided")
    return f"probability of improvement: {'; '.join(texts)}", combined(verdicts)


def _improvement(
    evidence: Evidence, measure: Measure, better: Sequence[Cell], worse: Sequence[Cell]
) -> tuple[str, Estimate]:
    """Compare two methods over tasks; no interval where a task has fewer than three seeds."""
    values = [[evidence.values(cell, measure) for cell in cells] for cells in (better, worse)]
    chance = probability_of_improvement(*values)
    enough = all(len(own) >= FEWEST for method in values for own in method)
    text = chance.format(".2f") if enough else f"not compared, fewer than {FEWEST} seeds"
    return f"{better[0][1]} over {worse[0][1]} {text}", chance


@rule
def long_episodes_fail(
    evidence: Evidence, measure: Measure, own: Sequence[Cell], longest: Sequence[Cell], expected: bool
) -> Decision:
    """Decide whether at the longest limit no D is solved while at the task's own some D is."""
    evidence = of_first_seeds(evidence)
    at_own, at_longest = (any(is_solved(runs_of(evidence, cell)) for cell in cells) for cells in (own, longest))
    return format_cells(evidence, measure, (*own, *longest)), holds_if((at_own and not at_longest) == expected)


@rule
def smaller_delay_helps(
    evidence: Evidence, measure: Measure, own: Mapping[int, Cell], longest: Mapping[int, Cell], expected: bool
) -> Decision:
    """Decide whether the best mean score at the longest limit belongs to a smaller D than at the task's own."""
    evidence = of_first_seeds(evidence)
    best = [
        max(cells, key=lambda delay: float(evidence.values(cells[delay], measure).mean())) for cells in (own, longest)
    ]
    here = format_cells(evidence, measure, (*own.values(), *longest.values()))
    return f"best D {best[0]}, at the longest limit {best[1]} ({here})", holds_if((best[1] < best[0]) == expected)
