"""A sentence, the cells it needs and the rule that decides it; and how an experiment's sentences become claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec

from payback_lab.claims.claim import Claim, Verdict
from payback_lab.claims.evidence import Cell, Evidence, Measure, gather
from payback_lab.claims.figures import figures_of
from payback_lab.claims.power import seeds_needed
from payback_lab.claims.wording import least_to_most
from payback_lab.running.plan import Result

FEWEST = 3
"""With fewer seeds an interval says nothing."""

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
    """Say what a rule measures that is not given its measures."""
    return lambda make: lambda *args, **kwargs: MeasuringRule(make(*args, **kwargs), measures)


@dataclass(frozen=True)
class Sentence:
    """Hold one sentence and how it is decided."""

    where: str
    """TeX label or section; "ours" for a question of ours."""
    sentence: str
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
    sentences: Sequence[Sentence]
    """What the paper states."""
    ablated: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    """What is decided again under each ablation."""
    beside: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    """What compares an ablation with the experiment itself; the ablation's cells are named by `of_ablation`."""
    untouched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Schemes that an ablation leaves as they are: the runs of the experiment itself serve where it has none."""
    questions: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    """Questions of ours by name; each is asked once the first cell it needs has been run."""
    title: Callable[[str], str] = str
    """How a setting is written in a sentence."""
    settings_of: Callable[[str], Sequence[str]] = lambda setting: (setting,)
    """At which settings a run counts, from the setting in its id."""
    forecast: bool = False
    """Whether an undecided claim says how many seeds would decide it, which takes a while to find."""
    notes_say_seeds: bool = True
    """Whether every note says how many seeds there are: where runs are added day by day, it changes."""

    def gather(self, results: Mapping[str, Result], ablation: str | None = None) -> Evidence:
        """Sort the results of the experiment, or of an ablation, into cells."""
        return gather(results, self.experiment, ablation, self.title, self.settings_of)

    def decide(self, results: Mapping[str, Result]) -> list[Claim]:
        """Decide every sentence, some of them again under each ablation that was run, then questions of ours."""
        main = self.gather(results)
        decided = [self.claim(sentence, main) for sentence in self.sentences]
        for name, sentences in self.ablated.items():
            own = self.gather(results, name).cells
            untouched = self.untouched.get(name, ())
            kept = {cell: runs for cell, runs in main.cells.items() if cell[1] in untouched and cell not in own}
            evidence = Evidence({**kept, **own}, self.title)
            for sentence in sentences:
                if any(cell in own for cell in sentence.needs):
                    borrowed = [s for s in untouched if any(cell[1] == s and cell in kept for cell in sentence.needs)]
                    decided.append(self.claim(sentence, evidence, borrowed, ablation=name))
        for name, sentences in self.beside.items():
            own = {of_ablation(name, cell): runs for cell, runs in self.gather(results, name).cells.items()}
            evidence = Evidence({**main.cells, **own}, self._title_beside)
            asked = [sentence for sentence in sentences if any(cell in own for cell in sentence.needs)]
            decided += [self.claim(sentence, evidence, ablation=name) for sentence in asked]
        for name, sentences in self.questions.items():
            asked = [sentence for sentence in sentences if sentence.needs[0] in main.cells]
            decided += [self.claim(sentence, main, question=name) for sentence in asked]
        return decided

    def _title_beside(self, setting: str) -> str:
        ablation, found, rest = setting.partition("/")
        return ", ".join(filter(None, (ablation, self.title(rest)))) if found else self.title(setting)

    def claim(self, sentence: Sentence, evidence: Evidence, borrowed: Sequence[str] = (), **label: str) -> Claim:
        """Decide a sentence; undecided when cells, seeds or training are lacking.

        `borrowed` are the schemes whose runs are not an ablation's own; `label` names the ablation or the question.
        """
        missing = _missing(sentence, evidence)
        here, verdict = (f"not run: {missing}", "undecided") if missing else sentence.rule(evidence)
        lacking = self._lacking(sentence, evidence)
        said = lacking or (_seeds(sentence, evidence) if self.notes_say_seeds else "")
        open_ = verdict == "undecided" and not lacking and sentence.needs
        return Claim(
            sentence.where,
            sentence.sentence,
            sentence.paper,
            here,
            "undecided" if lacking else verdict,
            " ".join(filter(None, (said, sentence.note, _untouched(borrowed)))),
            figures=() if missing else figures_of(evidence, measures_of(sentence.rule), sentence.needs),
            lacking=bool(lacking),
            needed=seeds_needed(sentence.rule, evidence, sentence.needs) if self.forecast and open_ else None,
            **label,
        )

    def _lacking(self, sentence: Sentence, evidence: Evidence) -> str:
        """Say why the runs there are cannot decide, "" if they can."""
        runs = [(cell, self.trained(run)) for cell in sentence.needs for run in evidence.cells.get(cell, ())]
        short = [(cell, length) for cell, length in runs if length < self._full(cell)]
        seeds = _seeds(sentence, evidence)
        if short:
            (setting, scheme), length = min(short, key=lambda entry: entry[1])
            run = f"{scheme}{_at(evidence.title(setting))}"
            full = self._full((setting, scheme))
            return f"Cut short: {run} has {length:,} of {full:,} {self.unit}. {seeds}"
        if any(len(evidence.cells.get(cell, ())) < FEWEST for cell in sentence.needs):
            return f"Too few seeds, {FEWEST} are needed. {seeds}"
        return ""

    def _full(self, cell: Cell) -> int:
        return self.longer.get(cell[0], self.full)


def _missing(sentence: Sentence, evidence: Evidence) -> str:
    """Name the cells that were not run, "" if all were."""
    gone = evidence.by_setting([cell for cell in sentence.needs if cell not in evidence.cells])
    return "; ".join(f"{', '.join(schemes)}{_at(title)}" for title, schemes in gone.items())


def _seeds(sentence: Sentence, evidence: Evidence) -> str:
    """Say how many seeds there are of each cell, "" if the sentence needs no runs."""
    counts = [len(evidence.cells.get(cell, ())) for cell in sentence.needs]
    return f"Seeds: {least_to_most(counts)} per cell." if counts else ""


def _untouched(schemes: Sequence[str]) -> str:
    return f"The ablation does not touch {' and '.join(schemes)}: their own runs serve." if schemes else ""


def _at(title: str) -> str:
    return f" at {title}" if title else ""
