"""The eight rows of the paper's tables: what each does to the intrinsic reward before the learner sees it.

    none          no intrinsic reward at all
    im            F as it comes (the paper's "IM", "RND")
    pbim          F − F̄, all repaid at the last step                                (conversion)
    pbim-raw      the same without F̄                                                (naive_conversion)
    grm-1, -10    F − F̄, each repaid 1 or 10 steps later                            (hyperparam_tuning)
    grm-1-raw …   the same without F̄

and, asked for by name, matchings the paper does not try:

    grm-D              any other delay D
    even-W             a W-th at each of the next W steps
    geometric-R        (1 − R)·R^(k−1) at age k
    when               all at the next event (DoorKey: key picked up, door opened)

Every row is a transform of the core. Nothing is shaped anywhere else.
"""

import re
from collections.abc import Mapping, Sequence
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
    kind, number, raw = parse_scheme(scheme)
    centred = False if raw else mean or payback.center()
    match kind:
        case "none":
            return None
        case "im":
            return payback.scale(1)
        case "pbim":
            return payback.pbim(gamma, center=centred)
        case "grm":
            return payback.grm(gamma, int(number), center=centred)
        case "even":
            matching = payback.match_evenly(gamma, window=int(number))
        case "geometric":
            matching = payback.match_geometric(gamma, rate=number)
        case _:
            matching = payback.match_when(gamma)
    return payback.chain(centred, matching) if centred else matching


def parse_scheme(scheme: str) -> tuple[str, float, bool]:
    """Read a scheme id: its kind, its number (delay, window or rate; 0 if it has none), and whether F̄ is left out.

    >>> parse_scheme("grm-30"), parse_scheme("geometric-0.9"), parse_scheme("pbim-raw")
    (('grm', 30.0, False), ('geometric', 0.9, False), ('pbim', 0.0, True))
    """
    found = re.fullmatch(
        r"(?P<plain>none|im)|((?P<whole>grm|even)-(?P<age>[1-9]\d*)|(?P<share>geometric)-(?P<rate>0\.\d*[1-9])|"
        r"(?P<end>pbim|when))(?P<raw>-raw)?",
        scheme,
    )
    if found is None:
        raise ValueError(
            f'There is no scheme "{scheme}": choose among {", ".join((*SCHEMES, *OTHERS))}, or another number after '
            "grm-, even- or geometric-."
        )
    kind = found["plain"] or found["whole"] or found["share"] or found["end"]
    return kind, float(found["age"] or found["rate"] or 0), found["raw"] is not None


def title(scheme: str) -> str:
    """Return a scheme's name in words, as the paper has it where it has one.

    >>> title("grm-10"), title("grm-20-raw"), title("even-5")
    ('GRM D = 10', 'GRM D = 20, not normalised', 'evenly over 5')
    """
    if scheme in TITLES:
        return TITLES[scheme]
    kind, number, raw = parse_scheme(scheme)
    words = {
        "grm": f"GRM D = {number:g}",
        "even": f"evenly over {number:g}",
        "geometric": f"geometric, rate {number:g}",
    }
    return words.get(kind, TITLES.get(kind, kind)) + (", not normalised" if raw else "")


def in_order(schemes: Sequence[str]) -> list[str]:
    """Put schemes in the order of tables and legends: the paper's, the others by kind and number, then unknown ones.

    >>> in_order(["unknown", "grm-30", "grm-10", "none", "grm-3"])
    ['none', 'grm-10', 'grm-3', 'grm-30', 'unknown']
    """
    return sorted(schemes, key=_rank)


def _rank(scheme: str) -> tuple[int, float, str]:
    if scheme in SCHEMES:
        return SCHEMES.index(scheme), 0.0, ""
    try:
        kind, number, _ = parse_scheme(scheme)
    except ValueError:
        return len(SCHEMES) + 9, 0.0, scheme
    return len(SCHEMES) + ("grm", "even", "geometric", "when", "pbim").index(kind), number, scheme
