"""Which mean F̄ is subtracted from an episodic count bonus on DoorKey: of all of training, or a recent one.

How it is judged was written down before the runs: docs/predictions.md.
"""

from dataclasses import dataclass

import payback
from payback import RewardTransform
from payback_lab.claims.decide import Claim, Claims, of_ablation
from payback_lab.claims.rules import lower_tested, undecided_if_equal
from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.experiments.doorkey.measures import SETTLED, TESTED
from payback_lab.experiments.doorkey.sized import (
    ONE_SEED_FIRST,
    THREE_MILLION,
    PlannedCell,
    SizedDoorKey,
    parse_sized_setting,
)
from payback_lab.experiments.reach import setting
from payback_lab.methods import title

SCHEMES = ("grm-10", "grm-30")
SIZES = (8, 11)
HORIZON = 20_480
"""Rewards over which the recent mean fades: ten updates, about one episode of full length in each environment."""
ABLATIONS = {"recent-mean": {"mean_horizon": HORIZON}}


@dataclass(frozen=True)
class CenterConfig(DoorKeyConfig):
    """Hold every choice of a DoorKey run and how far back F̄ reaches."""

    mean_horizon: int | None = None
    """F̄ is an exponential mean of rate 1/horizon; None for the mean over all of training."""

    def mean(self) -> RewardTransform:
        """Return what subtracts F̄."""
        return payback.center(self.mean_horizon)


CELLS = tuple(PlannedCell(setting(size), scheme) for size in SIZES for scheme in SCHEMES)


RECENT = "recent-mean"


def sooner(size: int, scheme: str) -> Claim:
    """Ask whether a recent mean lets one scheme learn one grid sooner."""
    cumulative = (setting(size), scheme)
    recent = of_ablation(RECENT, cumulative)
    return Claim(
        "ours",
        f"On DoorKey {size}×{size} {title(scheme)} is sooner with a recent mean than with the mean of all training.",
        (recent, cumulative),
        undecided_if_equal(SETTLED, recent, cumulative, lower_tested(SETTLED, [recent], [cumulative])),
        f"Sooner: an earlier settled step; a seed that never settles counts with all steps of its training. {TESTED}",
    )


CLAIMS = Claims(
    experiment="center",
    full=THREE_MILLION,
    stated=(),
    beside={RECENT: tuple(sooner(size, scheme) for size in SIZES for scheme in SCHEMES)},
    title=lambda setting: f"{parse_sized_setting(setting)[0]}×{parse_sized_setting(setting)[0]}",
)


EXPERIMENT = SizedDoorKey(
    name="center",
    title="DoorKey: which mean is subtracted",
    config=CenterConfig,
    cells=CELLS,
    ablations=ABLATIONS,
    notes=(
        "Not in the paper, which subtracts the mean over all of training here. The rule stands in docs/predictions.md, "
        "committed before the runs.",
        ONE_SEED_FIRST,
    ),
    claimed=CLAIMS,
)
