"""The choices of the curiosity experiment: Stable-Baselines3's PPO, the task, and which bonus is paid how."""

from dataclasses import dataclass

from payback_lab.user_error import UserError

SCHEMES = ("none", "im", "pbim", "grm-10", "grm-30")
"""How RND is paid: not at all, as it is, and as a loan repaid at the end, after 10 or after 30 steps."""
BONUSES = (
    "rnd",
    "episodic-count",
    "count",
    "simhash",
    "icm",
    "ride",
    "noveld",
    "e3b",
    "disagreement",
    "recency",
)
"""The bonuses of `payback.bonuses` and `payback.bonuses.torch`, each with its defaults; RND is the first result."""
PAIRED = ("im", "grm-30")
"""How every other bonus is paid."""
MANY, FEW = 8, 3
"""Seeds of each scheme of RND, and of each other bonus."""


@dataclass(frozen=True)
class CuriosityConfig:
    """Hold every choice of a run but its scheme and seed."""

    bonus: str = "rnd"
    """Which bonus, with the library's defaults."""
    size: int = 6
    """Side of the DoorKey grid, outer walls included; its limit is 10·size² steps."""
    total_steps: int = 300_032
    """Steps of all environments together: the first whole number of rollouts beyond 300,000."""
    environments: int = 8
    """Environments side by side (RL Zoo's entry for MiniGrid DoorKey)."""
    rollout: int = 128
    """Steps of each environment per rollout (RL Zoo and rl-starter-files)."""
    epochs: int = 10
    """Passes over a rollout (RL Zoo)."""
    batch_size: int = 256
    """Transitions per gradient step (rl-starter-files)."""
    learning_rate: float = 1e-3
    """Adam's rate (rl-starter-files)."""
    entropy_weight: float = 0.01
    """Weight of the entropy in PPO's loss (rl-starter-files)."""
    gamma: float = 0.99
    """Discount of the learner and of the repayment's interest (both)."""
    gae_lambda: float = 0.95
    """λ of the advantage estimate (both)."""
    clip_range: float = 0.2
    """PPO's clipping (both)."""

    @property
    def samples(self) -> int:
        """Return the transitions of one rollout."""
        return self.environments * self.rollout


def refuse_unknown_bonus(setting: str) -> None:
    """Refuse the name of a bonus that is not there.

    >>> refuse_unknown_bonus("rnd")
    """
    if setting not in BONUSES:
        raise UserError(f'There is no setting "{setting}": it names a bonus, one of {", ".join(BONUSES)}.')
