"""The choices of long cliff walking where they differ from those of cliff walking; the ablations are the same."""

from dataclasses import dataclass

from payback_lab.learners.q_learning.config import QLearning


@dataclass(frozen=True)
class LongQLearning(QLearning):
    """Say all that is fixed in a run but scheme and seed, as in `sec:lw`."""

    episodes: int = 10_000
    columns: int = 50
    limit: int = 100
    step_size: float = 0.1
    epsilon_fall: float = 5e-4
