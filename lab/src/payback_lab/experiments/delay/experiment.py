"""Which delay: what of a loan a learner with GAE(λ) feels, and how soon it learns DoorKey 11×11.

What is predicted, and by which figure it is judged, was written down before the runs: docs/predictions.md.
"""

from payback_lab.experiments.delay.claims import CLAIMS
from payback_lab.experiments.delay.config import CELLS
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST, SizedDoorKey

EXPERIMENT = SizedDoorKey(
    name="delay",
    title="DoorKey 11×11: which delay",
    cells=CELLS,
    notes=(
        "Not in the paper. What was predicted stands in docs/predictions.md, committed before the runs.",
        ONE_SEED_FIRST,
    ),
    claimed=CLAIMS,
)
