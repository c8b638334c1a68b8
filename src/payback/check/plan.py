"""Which streams are tried at which effort. They are counted, so that the same call tries the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effort = Literal["quick", "normal", "thorough"]
"""How much is tried."""

LARGE = tuple(sorted({*range(136, 264, 8), *range(150, 1001, 50), *range(288, 1025, 32), 255, 257, 511, 513, 1000}))
"""Large numbers of environments: multiples of 8 up to 256, then of 32 and of 50, and neighbours of powers of two."""


@dataclass(frozen=True)
class Plan:
    """How many streams of each kind are tried."""

    random: int
    """Random streams."""
    batch_sizes: tuple[int, ...]
    """The numbers of environments of which a few steps are tried."""
    long: int
    """How many of the long streams, of which the last are the longest."""
    longest_episode: int
    """Steps up to which a function of one episode's rewards is tried, because its cost may be quadratic in them."""


PLANS: dict[Effort, Plan] = {
    "quick": Plan(random=10, batch_sizes=(4, 8, 16, 32, 64), long=5, longest_episode=600),
    "normal": Plan(random=30, batch_sizes=(*range(4, 131), *LARGE), long=15, longest_episode=1_000),
    "thorough": Plan(random=600, batch_sizes=(*range(4, 1025), 4096), long=15, longest_episode=10_000),
}
"""What each effort tries."""

COMPILED = Plan(random=4, batch_sizes=(), long=1, longest_episode=0)
"""The most that is tried where each new shape is compiled anew (JAX)."""


def plan_for(effort: Effort) -> Plan:
    """Return what an effort tries, or say which efforts there are."""
    if effort not in PLANS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, PLANS))}, got {effort!r}")
    return PLANS[effort]
