"""Whether a scheme learns the short cliff sooner with a recent mean than with one over all of training."""

from payback_lab.claims.rules import if_told_apart, lower_tested
from payback_lab.claims.sentence import Claims, Sentence, of_ablation
from payback_lab.experiments.center_cliff.config import BASELINE, CUMULATIVE, SCHEMES
from payback_lab.experiments.cliff.claims import WHEN_CONVERGED
from payback_lab.experiments.cliff.measures import CONVERGED, trained
from payback_lab.experiments.doorkey.measures import TESTED
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.methods import title


def sooner(scheme: str) -> Sentence:
    """Ask whether a recent mean lets one scheme learn the cliff sooner."""
    recent = ("", scheme)
    cumulative = of_ablation(CUMULATIVE, recent)
    return Sentence(
        "ours",
        f"On the short cliff {title(scheme)} is sooner with a recent mean than with the mean of all training.",
        (recent, cumulative, ("", BASELINE)),
        if_told_apart(CONVERGED, recent, cumulative, lower_tested(CONVERGED, [recent], [cumulative])),
        f"Sooner: converges at an earlier episode. {WHEN_CONVERGED} {TESTED}",
    )


CLAIMS = Claims(
    experiment="center-cliff",
    full=QLearning().episodes,
    unit="episodes",
    trained=trained,
    sentences=(),
    beside={CUMULATIVE: tuple(sooner(scheme) for scheme in SCHEMES)},
)
