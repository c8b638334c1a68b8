"""The cells of `reach`: which sizes, which methods, how many seeds and steps."""

from payback_lab.experiments.doorkey.sized import PlannedCell

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
    *(PlannedCell(setting(11), scheme, seeds=10) for scheme in METHODS),
    *(PlannedCell(setting(size), scheme) for size in (8, 10, 12, 13, 14) for scheme in METHODS),
    *(PlannedCell(setting(size), scheme) for size in (11, 13) for scheme in DELAYS),
    *(PlannedCell(setting(16), scheme) for scheme in METHODS),
)
