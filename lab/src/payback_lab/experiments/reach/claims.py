"""What was predicted of each method's reach before the runs (docs/predictions.md), decided."""

from payback_lab.claims.evidence import Cell, Evidence, Measure, of_figure
from payback_lab.claims.sentence import Claims, Decision, Sentence, rule
from payback_lab.claims.verdicts import holds_if
from payback_lab.claims.wording import said
from payback_lab.experiments.doorkey.figures import short
from payback_lab.experiments.doorkey.measures import SETTLED
from payback_lab.experiments.doorkey.sized import parse_sized_setting
from payback_lab.experiments.reach.config import setting, steps
from payback_lab.experiments.reach.measures import reaches_size
from payback_lab.methods import title

NOTE = (
    "Predicted before the runs. A method reaches a size if the median over seeds of the share of 1,000 episodes it "
    "solves is at least 95 % and the median of their mean length is below 100·(size/8)²."
)
BEYOND = (11, 12, 13, 14, 16)
"""The sizes that no bonus and the raw bonus are predicted not to reach."""
FOUND = (11, 12, 13)
"""The sizes that GRM with D = 30 is predicted to reach."""
SOLVED = Measure("solved", of_figure("sampled_solved"), 3)
LENGTH = Measure("final length", of_figure("sampled_length"), 1)


@rule
def reaches(evidence: Evidence, cell: Cell, expected: bool) -> Decision:
    """Decide whether a method reaches a size, or does not if that was expected."""
    size = size_of(cell[0])
    there = reaches_size(evidence.values(cell, SOLVED), evidence.values(cell, LENGTH), size)
    parts = (said(evidence, measure, [cell]) for measure in (SOLVED, LENGTH, SETTLED))
    return f"{'; '.join(parts)} (short: below {short(size):.0f})", holds_if(there == expected)


def size_of(name: str) -> int:
    """Return the size in the name of a setting."""
    return parse_sized_setting(name)[0]


def predicted(size: int, scheme: str, expected: bool) -> Sentence:
    """Ask whether a method reaches a size as predicted."""
    cell = (setting(size), scheme)
    verb = "reaches" if expected else "does not reach"
    return Sentence("ours", f"{_named(scheme)} {verb} DoorKey {size}×{size}.", (cell,), reaches(cell, expected), NOTE)


def _named(scheme: str) -> str:
    return {"none": "Training without a bonus", "im": "The raw bonus"}.get(scheme, title(scheme))


CLAIMS = Claims(
    experiment="reach",
    full=steps(8),
    longer={setting(16): steps(16)},
    sentences=(
        *(predicted(size, scheme, False) for scheme in ("none", "im") for size in BEYOND),
        *(predicted(size, "grm-30", True) for size in FOUND),
        predicted(16, "grm-30", False),
    ),
    title=lambda name: f"{size_of(name)}×{size_of(name)}",
)
