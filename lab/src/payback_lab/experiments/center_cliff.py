"""Which mean F̄ is subtracted from an RND bonus on the short cliff: a recent one, or of all of training.

How it is judged was written down before the runs: docs/predictions.md.
"""

from dataclasses import dataclass

from payback_lab.claims.decide import Claim, Claims, of_ablation
from payback_lab.claims.rules import lower_tested, undecided_if_equal
from payback_lab.experiments.cliff.claims import ABLATIONS as CLIFF_ABLATIONS
from payback_lab.experiments.cliff.claims import WHEN_CONVERGED
from payback_lab.experiments.cliff.experiment import CliffWalking
from payback_lab.experiments.cliff.measures import CONVERGED, trained
from payback_lab.experiments.doorkey.measures import TESTED
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.methods import title

BASELINE = "none"
"""Its final return is what convergence is measured by."""
SCHEMES = ("pbim", "grm-10", "grm-30")
CUMULATIVE = "cumulative-mean"
ABLATIONS = {CUMULATIVE: CLIFF_ABLATIONS[CUMULATIVE]}


def sooner(scheme: str) -> Claim:
    """Ask whether a recent mean lets one scheme learn the cliff sooner."""
    recent = ("", scheme)
    cumulative = of_ablation(CUMULATIVE, recent)
    return Claim(
        "ours",
        f"On the short cliff {title(scheme)} is sooner with a recent mean than with the mean of all training.",
        (recent, cumulative, ("", BASELINE)),
        undecided_if_equal(CONVERGED, recent, cumulative, lower_tested(CONVERGED, [recent], [cumulative])),
        f"Sooner: converges at an earlier episode. {WHEN_CONVERGED} {TESTED}",
    )


CLAIMS = Claims(
    experiment="center-cliff",
    full=QLearning().episodes,
    unit="episodes",
    trained=trained,
    stated=(),
    beside={CUMULATIVE: tuple(sooner(scheme) for scheme in SCHEMES)},
)


@dataclass(frozen=True, kw_only=True)
class CenterCliff(CliffWalking):
    """Describe the experiment; see `experiment.Experiment`."""

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the schemes that subtract a mean, and no IM, which no ablation changes."""
        return SCHEMES if ablation else (BASELINE, *SCHEMES)


EXPERIMENT = CenterCliff(
    name="center-cliff",
    title="Cliff Walking: which mean is subtracted",
    config=QLearning,
    ablations=ABLATIONS,
    notes=("The short cliff with its RND bonus. The rule stands in docs/predictions.md, committed before the runs.",),
    claimed=CLAIMS,
)
