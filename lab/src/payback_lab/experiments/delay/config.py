"""The cells of `delay`: which λ, which matchings, how many steps."""

from payback_lab.experiments.doorkey.sized import PlannedCell

LAMBDAS = (0.95, 0.8, 0.99, 1.0)
SCHEMES = ("none", "grm-3", "grm-10", "grm-30", "grm-100", "geometric-0.9")
LONG = ("grm-300", "grm-600")
"""Delays beyond what a λ of 0.95 can tell apart: what is left is their interest."""


def setting(lam: float) -> str:
    """Return the setting of a λ.

    >>> setting(0.8), setting(1.0)
    ('s11-a0.02-g0.995-l0.8', 's11-a0.02-g0.995-l1')
    """
    return f"s11-a0.02-g0.995-l{lam:g}"


TWO_MORE = {
    0.95: ("grm-10", "grm-30", "grm-100", "geometric-0.9"),
    0.8: ("grm-3", "grm-10", "grm-100", "geometric-0.9"),
    0.99: ("grm-30",),
}
"""By λ, the schemes that three seeds left undecided, which get five: the rule stands in docs/predictions.md."""


def _seeds(lam: float, scheme: str) -> int:
    return 5 if scheme in TWO_MORE.get(lam, ()) else 3


CELLS = (
    *(PlannedCell(setting(lam), scheme, _seeds(lam, scheme)) for lam in LAMBDAS for scheme in SCHEMES),
    *(PlannedCell(setting(0.95), scheme) for scheme in LONG),
)
