"""The choices of the DoorKey experiments, and the names of their settings, like s11-a0.02-g0.995-l0.95."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import payback
from payback import RewardTransform
from payback_lab.learners.ppo.config import PPO
from payback_lab.user_error import UserError

NUMBER = r"([sagl])(-?\d+(?:\.\d+)?)"
"""s: size of the grid, a: α, g: γ, l: λ."""


def numbers_of(setting: str) -> dict[str, str]:
    """Read the numbers in the name of a setting, by letter; {} if it is no such name.

    >>> numbers_of("s11-a0.02-g0.995-l0.95"), numbers_of("g0.995"), numbers_of("fast"), numbers_of("a1-a2")
    ({'s': '11', 'a': '0.02', 'g': '0.995', 'l': '0.95'}, {'g': '0.995'}, {}, {})
    """
    found = re.findall(f"(?:^|-){NUMBER}", setting)
    numbers = dict(found)
    whole = "-".join(letter + number for letter, number in found) == setting
    return numbers if whole and len(numbers) == len(found) else {}


def name_of(numbers: Mapping[str, float]) -> str:
    """Write the name of a setting, as run ids have it.

    >>> name_of({"a": 0.020, "g": 0.9950})
    'a0.02-g0.995'
    """
    return "-".join(f"{letter}{number:.12g}" for letter, number in numbers.items())


def without_alpha(setting: str) -> str:
    """Name the setting of the runs without a bonus, which do not depend on α.

    >>> without_alpha("a0.02-g0.995")
    'g0.995'
    """
    return "-".join(letter + number for letter, number in numbers_of(setting).items() if letter != "a")


@dataclass(frozen=True)
class DoorKeyConfig(PPO):
    """Hold every choice of a DoorKey run but its scheme and seed."""

    shaping_gamma: float = 0.99
    """γ of the repayment's interest; invariance needs the learner's γ, ablations give another."""
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
"""What could explain where these results differ from the paper's. The first two break the invariance, because bonuses
are repaid without interest, or learner and shaping discount differently."""
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
