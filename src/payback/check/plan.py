"""Which streams are tried at which effort. They are counted, so that the same call tries the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from payback.check.long_streams import long_streams
from payback.check.short_streams import random_streams, small_streams
from payback.check.stream import Stream

Effort = Literal["quick", "normal", "thorough"]
"""How much is tried."""


@dataclass(frozen=True)
class Plan:
    """How many streams of each kind are tried."""

    random: int
    long: int
    """How many of the long streams, of which the last are the longest."""
    longest_episode: int
    """Of a function of one episode's rewards: it may well be quadratic in the length."""


PLANS: dict[Effort, Plan] = {
    "quick": Plan(random=10, long=3, longest_episode=600),
    "normal": Plan(random=40, long=10, longest_episode=2_000),
    "thorough": Plan(random=400, long=10, longest_episode=10_000),
}
"""What each effort tries."""


def plan_for(effort: Effort) -> Plan:
    """Return what an effort tries, or say which efforts there are."""
    if effort not in PLANS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, PLANS))}, got {effort!r}")
    return PLANS[effort]


def streams_for(plan: Plan, seed: int, compiled: bool) -> Iterator[Stream]:
    """Yield the streams in the order in which they are tried, the smallest first.

    Where each new shape is `compiled` anew, a tenth of the random streams and two long ones are tried.
    """
    yield from small_streams(seed)
    yield from islice(long_streams(seed), min(plan.long, 2 if compiled else plan.long))
    yield from random_streams(seed, plan.random // 10 if compiled else plan.random)
