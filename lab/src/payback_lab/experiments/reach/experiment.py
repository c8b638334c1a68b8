"""How far each method reaches: DoorKey grids from 8×8 to 16×16, without a bonus, with a raw one, and with GRM.

On the paper's 8×8 grid no bonus is needed. Here the grid grows until no bonus, the raw bonus and the repaid bonus each
stop solving it.
"""

from payback_lab.experiments.sized_doorkey import ONE_SEED_FIRST, Cell, SizedDoorKey

METHODS = ("none", "im", "grm-30")
DELAYS = ("grm-10", "grm-100")


def setting(size: int) -> str:
    """Return the setting of a size: α, γ and λ are those of the paper's middle setting.

    >>> setting(11)
    's11-a0.02-g0.995-l0.95'
    """
    return f"s{size}-a0.02-g0.995-l0.95"


def steps(size: int) -> int:
    """Return the steps of training: 6 M, and 20 M on 16×16; the first whole number of updates beyond.

    >>> steps(11), steps(16)
    (6000640, 20000768)
    """
    return 20_000_768 if size >= 16 else 6_000_640


CELLS = (
    *(Cell(setting(11), scheme, seeds=10) for scheme in METHODS),
    *(Cell(setting(size), scheme) for size in (8, 10, 12, 13, 14) for scheme in METHODS),
    *(Cell(setting(size), scheme) for size in (11, 13) for scheme in DELAYS),
    *(Cell(setting(16), scheme) for scheme in METHODS),
)

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
)
