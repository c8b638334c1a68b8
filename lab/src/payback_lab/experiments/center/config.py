"""The cells of `center`, and how far its two means reach back."""

from dataclasses import dataclass

import payback
from payback import RewardTransform
from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.experiments.doorkey.sized import PlannedCell
from payback_lab.experiments.reach.config import setting

SCHEMES = ("grm-10", "grm-30")
SIZES = (8, 11)
RECENT = 20_480
"""Rewards over which the recent mean fades: ten updates, about one episode of full length in each environment."""
ABLATIONS = {"recent-mean": {"mean_horizon": RECENT}}


@dataclass(frozen=True)
class CenterConfig(DoorKeyConfig):
    """Hold every choice of a DoorKey run and how far back F̄ reaches."""

    mean_horizon: int | None = None
    """F̄ is an exponential mean of rate 1/horizon; None for the mean over all of training."""

    def mean(self) -> RewardTransform:
        """Return what subtracts F̄."""
        return payback.center(self.mean_horizon)


CELLS = tuple(PlannedCell(setting(size), scheme) for size in SIZES for scheme in SCHEMES)
