"""How many seeds would decide a sentence that those there are leave open: a power calculation by simulation.

Seeds are drawn with replacement from those of each cell, as many as are asked about, and the sentence is decided by its
own rule, over and over. So it serves every rule, also where a seed never got there. Drawn from k seeds a figure would
scatter too little, by (k − 1)/k in its variance; its deviations from the cell's mean are stretched to make up for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from payback_lab.claims.claim import Needed, Verdict
from payback_lab.claims.evidence import Cell, Evidence
from payback_lab.running.plan import Result

POWER = 0.8
"""The chance of a verdict with which a number of seeds is enough."""
NUMBERS = (5, 7, 10, 15, 20, 30, 50, 100)
"""The numbers of seeds per cell that are asked about."""
TRIES = 40


def seeds_needed(
    decide: Callable[[Evidence], tuple[str, Verdict]],
    evidence: Evidence,
    cells: Sequence[Cell],
    *,
    numbers: Sequence[int] = NUMBERS,
    tries: int = TRIES,
) -> Needed:
    """Return the least of some numbers of seeds per cell with which a sentence is decided; "more" if none is enough.

    The chance of a verdict grows with the number of seeds, so that halving finds the least one.
    """
    there = {cell: _stretched(evidence.cells[cell]) for cell in cells}
    wide = replace(evidence, cells={**evidence.cells, **there})
    below, above = 0, len(numbers)
    if not _decided(decide, wide, cells, numbers[-1], tries):
        return "more"
    while below < above - 1:
        middle = (below + above) // 2
        if _decided(decide, wide, cells, numbers[middle - 1], tries):
            above = middle
        else:
            below = middle
    return numbers[above - 1]


def said_needed(needed: Needed) -> str:
    """Say how many seeds would decide a sentence.

    >>> said_needed(20), said_needed("more")
    ('About 20 seeds per cell would decide it.', 'Even 100 seeds per cell would hardly decide it.')
    """
    if needed == "more":
        return f"Even {NUMBERS[-1]} seeds per cell would hardly decide it."
    return f"About {needed} seeds per cell would decide it."


def _decided(
    decide: Callable[[Evidence], tuple[str, Verdict]], evidence: Evidence, cells: Sequence[Cell], seeds: int, tries: int
) -> bool:
    """Say whether so many seeds decide often enough."""
    rng = np.random.default_rng(seeds)
    count = 0
    for _ in range(tries):
        drawn: Mapping[Cell, tuple[Result, ...]] = {
            cell: tuple(evidence.cells[cell][k] for k in rng.integers(len(evidence.cells[cell]), size=seeds))
            for cell in dict.fromkeys(cells)
        }
        count += decide(replace(evidence, cells={**evidence.cells, **drawn}))[1] != "undecided"
    return count >= POWER * tries


def _stretched(runs: tuple[Result, ...]) -> tuple[Result, ...]:
    """Move every figure that all runs have away from its mean, so that draws scatter as new seeds would."""
    if len(runs) < 2:
        return runs
    factor = np.sqrt(len(runs) / (len(runs) - 1))
    stretched = [dict(run.summary) for run in runs]
    for name in runs[0].summary:
        values = [run.summary.get(name) for run in runs]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            numbers = np.array(values, dtype=np.float64)
            for one, value in zip(stretched, numbers.mean() + factor * (numbers - numbers.mean()), strict=True):
                one[name] = float(value)
    return tuple(replace(run, summary=summary) for run, summary in zip(runs, stretched, strict=True))
