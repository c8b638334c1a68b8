"""Which delay: what of a loan a learner with GAE(λ) feels, and how soon it learns DoorKey 11×11.

What is predicted, and by which figure it is judged, was written down before the runs: docs/predictions.md.
"""

from payback_lab.experiments.sized_doorkey import ONE_SEED_FIRST, Cell, SizedDoorKey

LAMBDAS = (0.95, 0.8, 0.99, 1.0)
SCHEMES = ("none", "grm-3", "grm-10", "grm-30", "grm-100", "geometric-0.9")
LONG = ("grm-300", "grm-600")
"""Delays beyond what a λ of 0.95 can tell apart: what is left is their interest."""
STEPS = 3_000_320


def setting(lam: float) -> str:
    """Return the setting of a λ.

    >>> setting(0.8), setting(1.0)
    ('s11-a0.02-g0.995-l0.8', 's11-a0.02-g0.995-l1')
    """
    return f"s11-a0.02-g0.995-l{lam:g}"


CELLS = (
    *(Cell(setting(lam), scheme) for lam in LAMBDAS for scheme in SCHEMES),
    *(Cell(setting(0.95), scheme) for scheme in LONG),
)

EXPERIMENT = SizedDoorKey(
    name="delay",
    title="DoorKey 11×11: which delay",
    cells=CELLS,
    steps=lambda size: STEPS,
    notes=(
        "Not in the paper. What was predicted stands in docs/predictions.md, committed before the runs.",
        ONE_SEED_FIRST,
    ),
)
