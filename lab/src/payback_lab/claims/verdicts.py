"""From an interval to a verdict, and from several verdicts to one.

Every comparison is decided by its 95 % bootstrap interval over seeds. A verb such as "around" or "much" is given a
number, and the claim's note says which.
"""

from collections.abc import Iterable

import numpy as np

from payback_lab.claims.claim import Verdict

Bound = float | np.ndarray


def holds_if(condition: bool | np.bool_) -> Verdict:
    """Say whether a sentence holds that is true or false of the seeds there are."""
    return "holds" if condition else "does not hold"


def positive(low: Bound, high: Bound) -> Verdict:
    """Say whether a quantity with this interval is above zero; a constant zero is not."""
    return "holds" if low > 0 else "does not hold" if high < 0 or low == high == 0 else "undecided"


def not_negative(low: Bound, high: Bound) -> Verdict:
    """Say whether a quantity with this interval is at least zero."""
    return "holds" if low >= 0 else "does not hold" if high < 0 else "undecided"


def in_range(low: Bound, high: Bound, least: float, most: float) -> Verdict:
    """Say whether a quantity with this interval lies between two numbers."""
    return all_of((not_negative(low - least, high - least), not_negative(most - high, most - low)))


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Join verdicts: one contradiction decides, one doubt leaves it open."""
    found = set(verdicts)
    return "does not hold" if "does not hold" in found else "undecided" if "undecided" in found else "holds"


def opposite_of(verdict: Verdict) -> Verdict:
    """Turn a verdict round; what is undecided stays so."""
    return "does not hold" if verdict == "holds" else "holds" if verdict == "does not hold" else "undecided"
