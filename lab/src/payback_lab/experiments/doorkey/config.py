"""The choices of the DoorKey experiment: the learner's, and what it is trained on."""

from collections.abc import Mapping
from dataclasses import dataclass

import payback
from payback import RewardTransform
from payback_lab.experiments.doorkey.setting import numbers_of
from payback_lab.learners.ppo.config import PPO
from payback_lab.user_error import UserError


@dataclass(frozen=True)
class DoorKeyConfig(PPO):
    """Hold every choice of a DoorKey run but its scheme and seed."""

    shaping_gamma: float = 0.99
    """γ of the repayment's interest; the law wants the learner's γ, ablations give another."""
    size: int = 8
    """Side of the grid, outer walls included."""
    total_steps: int = 10_000_384
    """Steps of all environments together: the first whole number of updates beyond 10 million."""

    def mean(self) -> RewardTransform:
        """Return what subtracts the F̄ of the normalised schemes: the mean over all of training, as the paper has it."""
        return payback.center()


ABLATIONS: Mapping[str, Mapping[str, float]] = {
    "plain-settlement": {"shaping_gamma": 1.0},
    "learner-discount-0.99": {"gamma": 0.99},
    "entropy-0.001": {"entropy_weight": 0.001},
}
"""What could explain where these results and the paper's part. The first two break the law, because loans are repaid
without interest, or learner and shaping discount differently."""
ABOUT = {
    "plain-settlement": ("pbim", "pbim-raw"),
    "learner-discount-0.99": ("im", "grm-10"),
    "entropy-0.001": ("none", "im", "grm-10"),
}
"""The schemes on which each ablation is of interest."""


def parse_setting(setting: str) -> tuple[float, float]:
    """Read α and γ from the name of a setting; a `UserError` says what is wrong with it.

    >>> parse_setting("a0.02-g0.995")
    (0.02, 0.995)
    """
    found = numbers_of(setting)
    if list(found) != ["a", "g"]:
        raise UserError(f'There is no setting "{setting}": write α and γ like a0.02-g0.995.')
    alpha, gamma = map(float, found.values())
    refuse_alpha_or_gamma(alpha, gamma, setting)
    return alpha, gamma


def refuse_alpha_or_gamma(alpha: float, gamma: float, setting: str) -> None:
    """Refuse an α that is no bonus, and a γ that is no discount.

    >>> refuse_alpha_or_gamma(0.02, 0.995, "a0.02-g0.995")
    """
    if not alpha > 0:
        raise UserError(f"α is {alpha:g} in {setting}: a bonus must be more than 0; for no bonus use --schemes none.")
    if not 0 < gamma <= 1:
        raise UserError(f"γ is {gamma:g} in {setting}: it must be more than 0 and at most 1.")
