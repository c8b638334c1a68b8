"""The choices of a Q-learning run on a cliff; imported without JAX."""

from dataclasses import dataclass

from payback_lab.environments.cliff import Cliff

LANES = 10
"""Seeds that train side by side. Fewer are padded, because another width might compile to other roundings."""


@dataclass(frozen=True)
class QLearning:
    """Hold everything that defines a run except scheme and seed; the defaults are those of `sec:cw`.

    Fields marked * are not given in the paper.
    """

    episodes: int = 5000
    """Training episodes."""
    columns: int = 12
    """Width of the 4-row grid."""
    limit: int = 50
    """Moves after which an episode ends; the learner treats it as terminal: the loans are settled and nothing is
    bootstrapped.*"""
    gamma: float = 0.99
    """Discount of the learner and of the matching."""
    step_size: float = 0.05
    """Q-learning's α.*"""
    first_q: float = 0.0
    """Initial value of every Q.*"""
    epsilon_first: float = 1.0
    """ε in the first episode. Greedy ties are broken at random.*"""
    epsilon_fall: float = 5e-3
    """How much ε falls after every episode."""
    epsilon_last: float = 0.1
    """The lowest ε."""
    rnd_scale: float = 1000.0
    """F is this times RND's mean squared error on the one-hot next state, not normalised.*"""
    rnd_rate: float = 1e-6
    """RND's learning rate; Adam, one update per step.*"""
    rnd_hidden: tuple[int, ...] = (32, 32)
    """Widths of RND's hidden layers, ReLU.*"""
    rnd_outputs: int = 32
    """Width of RND's output.*"""
    mean_horizon: int | None = 1000
    """F̄ of the normalised schemes is an exponential mean of rate 1/horizon; None for the mean over all of training.*"""

    @property
    def cliff(self) -> Cliff:
        """Return the grid."""
        return Cliff(self.columns, self.limit)
