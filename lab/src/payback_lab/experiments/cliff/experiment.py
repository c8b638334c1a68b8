"""Cliff walking (`sec:cw`): does an unhelpful intrinsic reward keep Q-learning from the optimum?

A 4×12 grid, 5,000 episodes of at most 50 moves, eight schemes, ten seeds. What the paper does not say is a field
of `QLearning` marked *; those settings were chosen by looking, see `NOTES`.
"""

from payback_lab.experiments.cliff.claims import CLAIMS
from payback_lab.experiments.cliff.config import ABLATIONS
from payback_lab.experiments.cliff.printed import PAPER
from payback_lab.experiments.cliff.walking import CliffWalking
from payback_lab.learners.q_learning.config import QLearning

NOTES = (
    "What the paper does not say is marked * in the table of settings. These choices were made by looking at about "
    "30 configurations with 3 to 10 seeds each, before these runs, for ones under which the experiment works at all; "
    "two of those that were not chosen are here as ablations.",
    "How a sentence is decided is ours: what counts as converged, around, very similar, much, reasonably well or "
    "effectively zero is in the note of each claim. These rules were written with a prototype's figures known; that "
    "convergence is measured seed by seed, and the rules for reasonably well and effectively zero, after a first full "
    "run with other random draws had been seen. Verdicts near the edge of an interval differed between the two.",
    "A truncated episode counts as ended: the loans are settled there and nothing is bootstrapped.",
    "A memoryless Q table sees the repayment as noise that depends on the past; what helps or hurts exploration is "
    "just that. With the debt visible to it, shaped learning would equal learning with no bonus at all.",
    "Test: one episode with ε = 0 from the final table; of equal actions the first is taken (up, right, down, left).",
    "law_residual is the largest |Σγᵗ F'ₜ| / Σγᵗ |F'ₜ| of any training episode: 1 for an intrinsic reward that is "
    "never repaid, rounding error for the matched schemes.",
)

EXPERIMENT = CliffWalking(
    name="cliff",
    title="Cliff Walking",
    config=QLearning,
    ablations=ABLATIONS,
    notes=NOTES,
    paper=PAPER,
    claimed=CLAIMS,
)
