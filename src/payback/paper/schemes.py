"""The eight rows of the paper's tables: what each does to the intrinsic reward before the learner sees it.

    none          no intrinsic reward at all
    im            F as it comes (the paper's "IM", "RND")
    pbim          F − F̄, all repaid at the last step                                (conversion)
    pbim-raw      the same without F̄                                                (naive_conversion)
    grm-1, -10    F − F̄, each repaid 1 or 10 steps later                            (hyperparam_tuning)
    grm-1-raw …   the same without F̄

and, asked for by name, matchings the paper does not try:

    grm-3, -30, -100   other delays
    even-10            a tenth at each of the next ten steps
    geometric-0.9      (1 − 0.9)·0.9^(k−1) at age k
    when               all at the next event (DoorKey: key picked up, door opened)

Every row is a transform of the core. Nothing is shaped anywhere else.
"""

from collections.abc import Mapping
from types import MappingProxyType

import payback
from payback import RewardTransform

SCHEMES: tuple[str, ...] = (
    "none",
    "im",
    "pbim",
    "pbim-raw",
    "grm-1",
    "grm-1-raw",
    "grm-10",
    "grm-10-raw",
)
"""The ids, in the order of tables and legends."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "none": "no IM",
        "im": "IM",
        "pbim": "PBIM",
        "pbim-raw": "PBIM, not normalised",
        "grm-1": "GRM D = 1",
        "grm-1-raw": "GRM D = 1, not normalised",
        "grm-10": "GRM D = 10",
        "grm-10-raw": "GRM D = 10, not normalised",
        "grm-3": "GRM D = 3",
        "grm-30": "GRM D = 30",
        "grm-100": "GRM D = 100",
        "even-10": "evenly over 10",
        "geometric-0.9": "geometric, rate 0.9",
        "when": "at key and door",
    }
)
"""How the paper calls them; and the others."""

MATCHED: tuple[str, ...] = SCHEMES[2:]
"""Those that repay what they pay."""

OTHERS: tuple[str, ...] = ("grm-3", "grm-30", "grm-100", "even-10", "geometric-0.9", "when")
"""Matchings the paper does not try, all of F − F̄; run when they are named."""


def transform_of(scheme: str, gamma: float, mean: RewardTransform | None = None) -> RewardTransform | None:
    """Give the transform of a scheme; None for `none`, which has no intrinsic reward to transform.

    `mean` is the F̄ of the normalised schemes: a `payback.center`, the cumulative one if not given.

    >>> transform_of("none", 0.99) is None, transform_of("grm-10", 0.99).gamma
    (True, 0.99)
    """
    mean = payback.center() if mean is None else mean
    match scheme:
        case "none":
            return None
        case "im":
            return payback.scale(1)
        case "pbim" | "pbim-raw":
            return payback.pbim(gamma, center=False if scheme.endswith("-raw") else mean)
        case "grm-1" | "grm-1-raw" | "grm-10" | "grm-10-raw" | "grm-3" | "grm-30" | "grm-100":
            delay = int(scheme.split("-")[1])
            return payback.grm(gamma, delay, center=False if scheme.endswith("-raw") else mean)
        case "even-10":
            return payback.chain(mean, payback.match_evenly(gamma, window=10))
        case "geometric-0.9":
            return payback.chain(mean, payback.match_geometric(gamma, rate=0.9))
        case "when":
            return payback.chain(mean, payback.match_when(gamma))
        case _:
            raise ValueError(f"There is no scheme {scheme!r}; choose from {', '.join((*SCHEMES, *OTHERS))}.")
