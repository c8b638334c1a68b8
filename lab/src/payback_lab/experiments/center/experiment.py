"""Which mean F̄ is subtracted from an episodic count bonus on DoorKey: of all of training, or a recent one.

How it is judged was written down before the runs: docs/predictions.md.
"""

from payback_lab.experiments.center.claims import CLAIMS
from payback_lab.experiments.center.config import ABLATIONS, CELLS, CenterConfig
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST, SizedDoorKey

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
