"""Whether GRM learns DoorKey sooner with a recent mean than with one over all of training."""

from payback_lab.claims.rules import if_told_apart, lower_tested
from payback_lab.claims.sentence import Claims, Sentence, of_ablation
from payback_lab.experiments.center.config import SCHEMES, SIZES, setting
from payback_lab.experiments.doorkey.measures import SETTLED, TESTED
from payback_lab.experiments.doorkey.sized import THREE_MILLION, parse_sized_setting
from payback_lab.methods import title

RECENT = "recent-mean"


def sooner(size: int, scheme: str) -> Sentence:
    """Ask whether a recent mean lets one scheme learn one grid sooner."""
    cumulative = (setting(size), scheme)
    recent = of_ablation(RECENT, cumulative)
    return Sentence(
        "ours",
        f"On DoorKey {size}×{size} {title(scheme)} is sooner with a recent mean than with the mean of all training.",
        (recent, cumulative),
        if_told_apart(SETTLED, recent, cumulative, lower_tested(SETTLED, [recent], [cumulative])),
        f"Sooner: an earlier settled step; a seed that never settles counts with all steps of its training. {TESTED}",
    )


CLAIMS = Claims(
    experiment="center",
    full=THREE_MILLION,
    sentences=(),
    beside={RECENT: tuple(sooner(size, scheme) for size in SIZES for scheme in SCHEMES)},
    title=lambda setting: f"{parse_sized_setting(setting)[0]}×{parse_sized_setting(setting)[0]}",
)
