"""What the paper does not ask: whether another matching beats its GRM with D = 10 on DoorKey."""

from payback_lab.claims.evidence import cells
from payback_lab.claims.rules import both, surely_lower
from payback_lab.claims.sentence import Sentence
from payback_lab.experiments.doorkey.measures import LENGTH, POLICY, SAMPLED, SETTLED, SPEED
from payback_lab.experiments.doorkey.printed import MIDDLE, title
from payback_lab.methods import OTHERS, TITLES

QUESTION = "other-matchings"
TEN = "grm-10"
SURE = 0.05 / len(OTHERS)
"""Each of six matchings may look better by chance."""
RULE = (
    f"Holds at p < 0.05 / {len(OTHERS)}, since {len(OTHERS)} matchings are tried; does not hold if the 95 % bootstrap "
    "interval of the difference is on the other side. p: Welch's one-sided test over seeds, not over the 1,000 points "
    "of one run. P: probability of improvement, the share of pairs of seeds. The rule was written when one seed of "
    "each had been seen."
)


def ends_better(scheme: str) -> Sentence:
    """Ask whether a matching ends in a better policy than GRM with D = 10."""
    return Sentence(
        "ours",
        f"At {title(MIDDLE)} the matching “{TITLES[scheme]}” ends in a better policy than GRM D = 10.",
        cells([MIDDLE], (scheme, TEN)),
        both(*(surely_lower(measure, (MIDDLE, scheme), (MIDDLE, TEN), SURE) for measure in (LENGTH, SAMPLED))),
        f"{POLICY} {RULE}",
    )


def learns_sooner(scheme: str) -> Sentence:
    """Ask whether a matching learns sooner than GRM with D = 10."""
    return Sentence(
        "ours",
        f"At {title(MIDDLE)} the matching “{TITLES[scheme]}” learns sooner than GRM D = 10.",
        cells([MIDDLE], (scheme, TEN)),
        surely_lower(SETTLED, (MIDDLE, scheme), (MIDDLE, TEN), SURE),
        f"{SPEED} {RULE}",
    )


MATCHING_SENTENCES = tuple(ask(scheme) for ask in (ends_better, learns_sooner) for scheme in OTHERS)
