"""The reward schemes by name: what each does to the intrinsic reward F before the learner sees it.

The eight rows of the paper's tables:

    none          no intrinsic reward at all
    im            F unchanged (the paper's "IM", "RND")
    pbim          F − F̄, all repaid at the last step                                (conversion)
    pbim-raw      the same without F̄                                                (naive_conversion)
    grm-1, -10    F − F̄, each repaid 1 or 10 steps later                            (hyperparam_tuning)
    grm-1-raw …   the same without F̄

and matchings the paper does not try, run when they are named:

    grm-D              any other delay D
    even-W             a W-th at each of the next W steps
    geometric-R        (1 − R)·R^(k−1) at age k
    when               all at the next event (DoorKey: key picked up, door opened)
    im-centred         F − F̄, never repaid: what centring does alone

Every scheme is a transform of the library; the lab shapes rewards nowhere else.

The arena also runs rivals that are more than a transform, each described in `learners/arena/`:

    pies               F fades out over training
    phased             F at first, grm-30 in the end
    adops, adopes      F changed where it would change which action is preferred
    eipo, hepo         two policies and a multiplier

and methods that pay the bonus as a second advantage (`learners/arena/advantage_side.py`):

    grm-adv-D-L        GRM's signal with delay D and λ_I = L, such as grm-adv-300-0.99, with a second critic
    two-critics-L      the raw bonus with a critic of its own, discount γλ_I

each with any of these endings, in this order: -flat (grm-adv without fading near an end), -lone (grm-adv without the
second critic), -centred (two-critics of F − F̄), -back (taken back: 0 from seven eighths of training on).
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

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
        "im-centred": "IM, centred",
        "pies": "PIES (fading)",
        "phased": "phased-in repayment",
        "adops": "ADOPS",
        "adopes": "ADOPES",
        "eipo": "EIPO",
        "hepo": "HEPO",
    }
)
"""Their names in words; the paper's for its eight."""

MATCHED: tuple[str, ...] = SCHEMES[2:]
"""The paper's schemes that repay what they pay."""

OTHERS: tuple[str, ...] = ("grm-3", "grm-30", "grm-100", "even-10", "geometric-0.9", "when")
"""Matchings the paper does not try, all of F − F̄; run when they are named."""

RIVALS: tuple[str, ...] = ("pies", "phased", "adops", "adopes", "eipo", "hepo")
"""What the arena runs beside the schemes."""

ADVANTAGE_SIDE: tuple[str, ...] = ("grm-adv", "two-critics")
"""The kinds of methods that pay the bonus as a second advantage."""

PHASED = "grm-30"
"""The scheme that phased-in repayment ends in."""


class Scheme(NamedTuple):
    """Hold what a scheme id says."""

    kind: str
    """"none", "im", "im-centred", "pbim", "grm", "even", "geometric" or "when"."""
    number: float
    """The delay, window or rate; 0 if the kind has none."""
    raw: bool
    """Whether F̄ is left out."""


class AdvantageSide(NamedTuple):
    """Hold what the id of an advantage-side method says."""

    kind: str
    """"grm-adv" or "two-critics"."""
    delay: int | None
    """D; None for the raw bonus, which is not repaid."""
    lam: float
    """λ_I: the bonus is discounted with γλ_I."""
    fades: bool
    """Whether the signal fades within D steps of an episode's end."""
    critic: bool
    """Whether the bonus has a critic of its own."""
    centred: bool
    """Whether F̄ is subtracted."""
    taken_back: bool
    """Whether the bonus shrinks to 0 during training."""


def parse_scheme(scheme: str) -> Scheme:
    """Read a scheme id; one that does not exist raises a ValueError that lists those that do.

    >>> parse_scheme("grm-30"), parse_scheme("pbim-raw")
    (Scheme(kind='grm', number=30.0, raw=False), Scheme(kind='pbim', number=0.0, raw=True))
    """
    found = re.fullmatch(
        r"(?P<plain>none|im|im-centred)|((?P<whole>grm|even)-(?P<age>[1-9]\d*)|"
        r"(?P<share>geometric)-(?P<rate>0\.\d*[1-9])|(?P<end>pbim|when))(?P<raw>-raw)?",
        scheme,
    )
    if found is None:
        raise ValueError(
            f'There is no scheme "{scheme}": choose among {", ".join((*SCHEMES, "im-centred", *OTHERS))}, or '
            "another number after grm-, even- or geometric-."
        )
    kind = found["plain"] or found["whole"] or found["share"] or found["end"]
    return Scheme(kind, float(found["age"] or found["rate"] or 0), found["raw"] is not None)


def parse_method(name: str) -> Scheme:
    """Read the name of a scheme or of a rival; a rival is its own kind.

    >>> parse_method("grm-30").kind, parse_method("eipo").kind
    ('grm', 'eipo')
    """
    if name in RIVALS:
        return Scheme(name, 0.0, False)
    if name.startswith(ADVANTAGE_SIDE):
        form = parse_advantage_side(name)
        return Scheme(form.kind, float(form.delay or 0), not form.centred)
    try:
        known = parse_scheme(name)
    except ValueError:
        known = None
    if known is None or known.kind == "when":
        raise ValueError(
            f'There is no method "{name}": choose among none, im, {", ".join(RIVALS)}, im-centred, pbim, grm-D for any '
            "delay D, even-W, geometric-R, grm-adv-D-L and two-critics-L (with λ_I = L)."
        )
    return known


def parse_advantage_side(name: str) -> AdvantageSide:
    """Read the id of an advantage-side method; a ValueError says what is wrong with it.

    >>> parse_advantage_side("grm-adv-300-0.99-back")
    AdvantageSide(kind='grm-adv', delay=300, lam=0.99, fades=True, critic=True, centred=True, taken_back=True)
    >>> parse_advantage_side("two-critics-1.5")
    Traceback (most recent call last):
    ValueError: λ_I is 1.5 in two-critics-1.5; it must lie between 0 and 1
    """
    found = re.fullmatch(
        r"(?:(?P<adv>grm-adv)-(?P<delay>-?\d+)-(?P<own>-?\d+(?:\.\d+)?)(?P<flat>-flat)?(?P<lone>-lone)?|"
        r"two-critics-(?P<lam>-?\d+(?:\.\d+)?)(?P<centred>-centred)?)(?P<back>-back)?",
        name,
    )
    if found is None:
        raise ValueError(
            f'There is no method "{name}": write grm-adv-300-0.99 (delay, λ_I) or two-critics-0.99 (λ_I), then -flat, '
            "-lone or -centred, then -back."
        )
    adv, lam = found["adv"] is not None, float(found["own"] or found["lam"])
    if not 0 <= lam <= 1:
        raise ValueError(f"λ_I is {lam:g} in {name}; it must lie between 0 and 1")
    if adv and int(found["delay"]) < 1:
        raise ValueError(f"the delay is {found['delay']} in {name}; a loan is repaid after at least 1 step")
    return AdvantageSide(
        kind="grm-adv" if adv else "two-critics",
        delay=int(found["delay"]) if adv else None,
        lam=lam,
        fades=adv and found["flat"] is None,
        critic=found["lone"] is None,
        centred=adv or found["centred"] is not None,
        taken_back=found["back"] is not None,
    )


def transform_of(scheme: str, gamma: float, mean: RewardTransform | None = None) -> RewardTransform | None:
    """Return the transform that a scheme applies to F; None for `none`, which has no intrinsic reward.

    `mean` subtracts the F̄ of the normalised schemes: a `payback.center`, the cumulative one if not given.

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
        case "im-centred":
            return mean or payback.center()
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


def title(scheme: str) -> str:
    """Return a scheme's name in words, the paper's where it has one; an id that is unknown is its own name.

    >>> title("grm-10"), title("grm-20-raw"), title("even-5"), title("unknown")
    ('GRM D = 10', 'GRM D = 20, not normalised', 'evenly over 5', 'unknown')
    """
    if scheme.startswith(ADVANTAGE_SIDE):
        return _advantage_side_title(scheme)
    known = _known(scheme)
    if scheme in TITLES or known is None:
        return TITLES.get(scheme, scheme)
    number = known.number
    words = {
        "grm": f"GRM D = {number:g}",
        "even": f"evenly over {number:g}",
        "geometric": f"geometric, rate {number:g}",
    }
    return words.get(known.kind, TITLES.get(known.kind, known.kind)) + (", not normalised" if known.raw else "")


def _advantage_side_title(name: str) -> str:
    """Return the name in words of an advantage-side method; an id that does not parse is its own name.

    >>> _advantage_side_title("grm-adv-30-0.95-lone-back"), _advantage_side_title("two-critics-0.99")
    ('GRM-adv D = 30, λ_I = 0.95, no second critic, taken back', 'two critics λ_I = 0.99')
    """
    try:
        form = parse_advantage_side(name)
    except ValueError:
        return name
    adv = form.delay is not None
    parts = [f"GRM-adv D = {form.delay}, λ_I = {form.lam:g}" if adv else f"two critics λ_I = {form.lam:g}"]
    parts += ["not fading"] if adv and not form.fades else []
    parts += ["no second critic"] if not form.critic else []
    parts += ["centred"] if form.centred and not adv else []
    return ", ".join(parts + (["taken back"] if form.taken_back else []))


def is_raw(scheme: str) -> bool:
    """Return whether a scheme shapes F itself rather than F − F̄.

    >>> is_raw("grm-10"), is_raw("grm-10-raw"), is_raw("unknown")
    (False, True, False)
    """
    known = _known(scheme)
    return known is not None and known.raw


def in_order(schemes: Sequence[str]) -> list[str]:
    """Sort schemes as tables and legends list them: the paper's, the others by kind and number, rivals, unknown ones.

    >>> in_order(["unknown", "two-critics-0.99", "eipo", "grm-30", "grm-10", "none", "grm-3"])
    ['none', 'grm-10', 'grm-3', 'grm-30', 'eipo', 'two-critics-0.99', 'unknown']
    """
    return sorted(schemes, key=_rank)


def _known(scheme: str) -> Scheme | None:
    """Return what an id says, None if it says nothing: reports may hold schemes of other versions."""
    try:
        return parse_scheme(scheme)
    except ValueError:
        return None


def _rank(scheme: str) -> tuple[int, float, str]:
    if scheme in SCHEMES:
        return SCHEMES.index(scheme), 0.0, ""
    if scheme in RIVALS:
        return len(SCHEMES) + 6 + RIVALS.index(scheme), 0.0, ""
    for place, kind in enumerate(ADVANTAGE_SIDE):
        if scheme.startswith(kind):
            return len(SCHEMES) + 6 + len(RIVALS) + place, 0.0, scheme
    known = _known(scheme)
    if known is None:
        return len(SCHEMES) + 6 + len(RIVALS) + len(ADVANTAGE_SIDE), 0.0, scheme
    kinds = ("grm", "even", "geometric", "when", "im-centred", "pbim")
    return len(SCHEMES) + kinds.index(known.kind), known.number, scheme
