"""Which mean F̄ is subtracted from an RND bonus on the short cliff: a recent one, or of all of training.

How it is judged was written down before the runs: docs/predictions.md.
"""

from dataclasses import dataclass

from payback_lab.experiments.center_cliff.claims import CLAIMS
from payback_lab.experiments.center_cliff.config import ABLATIONS, BASELINE, SCHEMES
from payback_lab.experiments.cliff.walking import CliffWalking
from payback_lab.learners.q_learning.config import QLearning


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
