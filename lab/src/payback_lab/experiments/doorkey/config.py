"""The choices of the DoorKey experiment: the learner's, and what it is trained on."""

import re
from dataclasses import dataclass

from payback_lab.learners.ppo.config import PPO
from payback_lab.user_error import Mistake


@dataclass(frozen=True)
class DoorKeyConfig(PPO):
    """Hold every choice of a DoorKey run but its scheme and seed."""

    shaping_gamma: float = 0.99
    """γ of the repayment's interest; the law wants the learner's γ, ablations give another."""
    size: int = 8
    """Side of the grid, outer walls included."""
    total_steps: int = 10_000_384
    """Steps of all environments together: the first whole number of updates beyond 10 million."""


def parse_setting(setting: str) -> tuple[float, float]:
    """Read α and γ from the name of a setting; a `Mistake` says what is wrong with it.

    >>> parse_setting("a0.02-g0.995")
    (0.02, 0.995)
    """
    found = re.fullmatch(r"a(-?\d+(?:\.\d+)?)-g(-?\d+(?:\.\d+)?)", setting)
    if found is None:
        raise Mistake(f'There is no setting "{setting}": write α and γ like a0.02-g0.995.')
    alpha, gamma = float(found[1]), float(found[2])
    if not alpha > 0:
        raise Mistake(f"α is {alpha:g} in {setting}: a bonus must be more than 0; for no bonus use --schemes none.")
    if not 0 < gamma <= 1:
        raise Mistake(f"γ is {gamma:g} in {setting}: it must be more than 0 and at most 1.")
    return alpha, gamma


def refuse_part_of_update(steps: int) -> None:
    """Refuse a length of training that is no whole number of updates.

    >>> refuse_part_of_update(4096)
    """
    update = PPO().samples
    if steps % update:
        below = steps // update * update
        near = f"{below:,} or {below + update:,}" if below else f"{update:,}"
        raise Mistake(f"--steps {steps:,} is not a whole number of updates of {update:,} steps: give {near}.")
