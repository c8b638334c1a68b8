"""A sentence of the paper about DoorKey, the words its note explains, and how it becomes a claim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from payback_lab.claims.verdicts import FEWEST
from payback_lab.experiments.doorkey.evidence import Cell, Evidence, lacking, missing, seeds
from payback_lab.running.plan import Claim, Verdict

SPEED = (
    "Faster: an earlier settled step, the first from which on the 100-point mean length stays below 100; a seed that "
    "never settles counts with all steps of its training."
)
POLICY = (
    "Better policy: lower in both the paper's N̄ and the mean length of the final agent over 1,000 sampled episodes."
)
CONVERGED = (
    "Converges: settles (its 100-point mean length comes to stay below 100) in more than half of the seeds, by the "
    "interval of that share; fails: in less than half."
)
RULE = "The 95 % bootstrap interval over seeds decides."
TESTED = (
    f"{RULE} p: Welch's one-sided test over seeds, not over the 1,000 points of one run. P: probability of "
    "improvement, the share of pairs of seeds."
)
Decision = tuple[str, Verdict]
"""What was measured, in words, and the verdict."""
Decide = Callable[[Evidence], Decision]


@dataclass(frozen=True)
class Sentence:
    """Hold one sentence of the paper and how it is decided."""

    where: str
    sentence: str
    paper: str
    needs: tuple[Cell, ...]
    """The cells it is about."""
    decide: Decide
    note: str


def claim(sentence: Sentence, evidence: Evidence, label: str = "") -> Claim:
    """Decide a sentence; undecided when cells, seeds or steps are wanting. `label` names an ablation."""
    text = f"{label}: {sentence.sentence}" if label else sentence.sentence
    gone = missing(evidence, sentence.needs)
    here, verdict = (f"not run: {gone}", "undecided") if gone else sentence.decide(evidence)
    lack = lacking(evidence, sentence.needs, FEWEST)
    note = " ".join(filter(None, (lack or seeds(evidence, sentence.needs), sentence.note)))
    return Claim(sentence.where, text, sentence.paper, here, "undecided" if lack else verdict, note)


def cells(settings: Sequence[str], schemes: Sequence[str]) -> tuple[Cell, ...]:
    """Name the cells of some schemes at some settings."""
    return tuple((setting, scheme) for setting in settings for scheme in schemes)
