"""A claim, the cells it needs and the rule that decides it; and how the claims about an experiment are decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from payback_lab.claims.claim import DecidedClaim, Needed
from payback_lab.claims.evidence import Cell, Evidence, figures_of, gather
from payback_lab.claims.rules import Rule, measures_of
from payback_lab.claims.wording import least_to_most
from payback_lab.runs import Result

FEWEST = 3
"""With fewer seeds an interval says nothing."""
POWER = 0.8
"""The chance of a verdict with which a number of seeds is enough."""
NUMBERS = (5, 7, 10, 15, 20, 30, 50, 100)
"""The numbers of seeds per cell that are asked about."""
TRIES = 40


@dataclass(frozen=True)
class Claim:
    """Hold one claim and how it is decided."""

    where: str
    """TeX label or section; "ours" for a question of ours."""
    statement: str
    needs: tuple[Cell, ...]
    """The cells it is about."""
    rule: Rule
    note: str = ""
    paper: str = ""
    """The paper's figure, "" if it gives none."""


def of_ablation(ablation: str, cell: Cell) -> Cell:
    """Name the cell of an ablation where it stands beside the same cell of the experiment itself.

    >>> of_ablation("recent-mean", ("s8", "grm-10"))
    ('recent-mean/s8', 'grm-10')
    """
    setting, scheme = cell
    return f"{ablation}/{setting}", scheme


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Hold all that is claimed about one experiment, and what its runs must be to decide it."""

    experiment: str
    full: int
    """Length of training from which on a run counts as trained in full."""
    longer: Mapping[str, int] = field(default_factory=dict)
    """Settings whose runs count as full at another length only."""
    unit: str = "steps"
    """What that length is counted in: "episodes" or "steps"."""
    trained: Callable[[Result], int] = lambda run: int(run.summary.get("trained_steps") or 0)
    """How long a run was trained, in that unit."""
    stated: Sequence[Claim]
    """What the paper states."""
    ablated: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    """What is decided again under each ablation."""
    beside: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    """What compares an ablation with the experiment itself; the ablation's cells are named by `of_ablation`."""
    untouched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Schemes that an ablation leaves as they are: the runs of the experiment itself serve where it has none."""
    questions: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    """Questions of ours by name; each is asked once the first cell it needs has been run."""
    title: Callable[[str], str] = str
    """How a setting is written in words."""
    settings_of: Callable[[str], Sequence[str]] = lambda setting: (setting,)
    """At which settings a run counts, from the setting in its id."""
    forecast: bool = False
    """Whether to find how many seeds would decide an undecided claim, which takes a while."""
    notes_say_seeds: bool = True
    """Whether every note has the number of seeds: where runs are added day by day, it changes."""

    def gather(self, results: Mapping[str, Result], ablation: str | None = None) -> Evidence:
        """Sort the results of the experiment, or of an ablation, into cells."""
        return gather(results, self.experiment, ablation, self.title, self.settings_of)

    def decide(self, results: Mapping[str, Result]) -> list[DecidedClaim]:
        """Decide every claim, some of them again under each ablation that was run, then questions of ours."""
        main = self.gather(results)
        decided = [self.decide_one(claim, main) for claim in self.stated]
        for name, claims in self.ablated.items():
            own = self.gather(results, name).cells
            untouched = self.untouched.get(name, ())
            kept = {cell: runs for cell, runs in main.cells.items() if cell[1] in untouched and cell not in own}
            evidence = Evidence({**kept, **own}, self.title)
            for claim in claims:
                if any(cell in own for cell in claim.needs):
                    borrowed = [s for s in untouched if any(cell[1] == s and cell in kept for cell in claim.needs)]
                    decided.append(self.decide_one(claim, evidence, borrowed, ablation=name))
        for name, claims in self.beside.items():
            own = {of_ablation(name, cell): runs for cell, runs in self.gather(results, name).cells.items()}
            evidence = Evidence({**main.cells, **own}, self._title_beside)
            asked = [claim for claim in claims if any(cell in own for cell in claim.needs)]
            decided += [self.decide_one(claim, evidence, ablation=name) for claim in asked]
        for name, claims in self.questions.items():
            asked = [claim for claim in claims if claim.needs[0] in main.cells]
            decided += [self.decide_one(claim, main, question=name) for claim in asked]
        return decided

    def _title_beside(self, setting: str) -> str:
        ablation, found, rest = setting.partition("/")
        return ", ".join(filter(None, (ablation, self.title(rest)))) if found else self.title(setting)

    def decide_one(self, claim: Claim, evidence: Evidence, borrowed: Sequence[str] = (), **label: str) -> DecidedClaim:
        """Decide one claim; undecided when cells, seeds or training are lacking.

        `borrowed` are the schemes whose runs are not an ablation's own; `label` names the ablation or the question.
        """
        missing = _missing(claim, evidence)
        here, verdict = (f"not run: {missing}", "undecided") if missing else claim.rule(evidence)
        lacking = self._lacking(claim, evidence)
        seeds = lacking or (_seeds(claim, evidence) if self.notes_say_seeds else "")
        open_ = verdict == "undecided" and not lacking and claim.needs
        return DecidedClaim(
            claim.where,
            claim.statement,
            claim.paper,
            here,
            "undecided" if lacking else verdict,
            " ".join(filter(None, (seeds, claim.note, _untouched(borrowed)))),
            figures=() if missing else figures_of(evidence, measures_of(claim.rule), claim.needs),
            lacking=bool(lacking),
            needed=seeds_needed(claim.rule, evidence, claim.needs) if self.forecast and open_ else None,
            **label,
        )

    def _lacking(self, claim: Claim, evidence: Evidence) -> str:
        """Return why the runs there are cannot decide, "" if they can."""
        runs = [(cell, self.trained(run)) for cell in claim.needs for run in evidence.cells.get(cell, ())]
        short = [(cell, length) for cell, length in runs if length < self._full(cell)]
        seeds = _seeds(claim, evidence)
        if short:
            (setting, scheme), length = min(short, key=lambda entry: entry[1])
            run = f"{scheme}{_at(evidence.title(setting))}"
            full = self._full((setting, scheme))
            return f"Cut short: {run} has {length:,} of {full:,} {self.unit}. {seeds}"
        if any(len(evidence.cells.get(cell, ())) < FEWEST for cell in claim.needs):
            return f"Too few seeds, {FEWEST} are needed. {seeds}"
        return ""

    def _full(self, cell: Cell) -> int:
        return self.longer.get(cell[0], self.full)


def _missing(claim: Claim, evidence: Evidence) -> str:
    """Name the cells that were not run, "" if all were."""
    gone = evidence.by_setting([cell for cell in claim.needs if cell not in evidence.cells])
    return "; ".join(f"{', '.join(schemes)}{_at(title)}" for title, schemes in gone.items())


def _seeds(claim: Claim, evidence: Evidence) -> str:
    """Write how many seeds there are of each cell, "" if the claim needs no runs."""
    counts = [len(evidence.cells.get(cell, ())) for cell in claim.needs]
    return f"Seeds: {least_to_most(counts)} per cell." if counts else ""


def _untouched(schemes: Sequence[str]) -> str:
    return f"The ablation does not touch {' and '.join(schemes)}: their own runs serve." if schemes else ""


def _at(title: str) -> str:
    return f" at {title}" if title else ""


# How many seeds would decide a claim that those there are leave open: a power calculation by simulation.
#
# Seeds are drawn with replacement from those of each cell, as many as are asked about, and the claim is decided by its
# own rule, over and over. So it serves every rule, also where a seed never got there. Drawn from k seeds a figure would
# scatter too little, by (k − 1)/k in its variance; its deviations from the cell's mean are stretched to make up for it.


def seeds_needed(
    decide: Rule,
    evidence: Evidence,
    cells: Sequence[Cell],
    *,
    numbers: Sequence[int] = NUMBERS,
    tries: int = TRIES,
) -> Needed:
    """Return the least of some numbers of seeds per cell with which a claim is decided; "more" if none is enough.

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


def format_needed(needed: Needed) -> str:
    """Write how many seeds would decide a claim.

    >>> format_needed(20), format_needed("more")
    ('About 20 seeds per cell would decide it.', 'Even 100 seeds per cell would hardly decide it.')
    """
    if needed == "more":
        return f"Even {NUMBERS[-1]} seeds per cell would hardly decide it."
    return f"About {needed} seeds per cell would decide it."


def _decided(decide: Rule, evidence: Evidence, cells: Sequence[Cell], seeds: int, tries: int) -> bool:
    """Return whether so many seeds decide often enough."""
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
