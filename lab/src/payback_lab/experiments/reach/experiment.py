"""How far each method reaches: DoorKey grids from 8×8 to 16×16, without a bonus, with a raw one, and with GRM.

On the paper's 8×8 grid no bonus is needed. Here the grid grows until no bonus, the raw bonus and the repaid bonus each
stop solving it.
"""

from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST, SizedDoorKey
from payback_lab.experiments.reach.claims import CLAIMS
from payback_lab.experiments.reach.config import CELLS, steps

EXPERIMENT = SizedDoorKey(
    name="reach",
    title="DoorKey, larger and larger",
    cells=CELLS,
    steps=steps,
    notes=(
        "Not in the paper. The grid is the `minigrid` package's DoorKeyEnv(size), with its limit of 10·size² steps.",
        "An agent is taken to have learnt the task from the step on after which the mean length of 100 updates stays "
        "below 100·(size/8)².",
        ONE_SEED_FIRST,
    ),
    claimed=CLAIMS,
)
