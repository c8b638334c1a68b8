"""When a visit-count bonus makes waiting better than walking on: the paper's inequality, and the exact answer."""

from __future__ import annotations

from typing import NamedTuple

DOORKEY = ((0.005, 0.99), (0.02, 0.995), (0.025, 0.995))
"""The paper's three settings (α, γ)."""
MAX_STEPS = 640
"""DoorKey 8×8's time limit."""


class Procrastination(NamedTuple):
    """Whether waiting pays at a tile that was visited n times."""

    alpha: float
    gamma: float
    visits: int
    distance: int
    """Steps to the goal, over tiles not seen before."""
    paper: int | None
    """The shortest wait that the paper's inequality prefers, up to the time limit; None where it prefers none."""
    exact: bool
    """Whether the optimal policy waits, in a corridor with two actions: wait, or walk on."""
    value: float
    """The exact value of walking on; the inequality takes it to be 1."""


def procrastination_condition(alpha: float, gamma: float, visits: int, wait: int) -> bool:
    """Whether waiting `wait` steps on a tile visited n times is preferred, by the paper's inequality.

        1 − γ^t < Σ_{t'=0}^{t−1} α γ^(t') / (n + t' + 1)                        (procrastination_condition)

    It takes the goal's value to be 1: it ignores the discount on the way there and the bonuses on that way.

    >>> procrastination_condition(0.005, 0.99, visits=1, wait=1), procrastination_condition(0.025, 0.995, 1, 1)
    (False, True)
    """
    return 1 - gamma**wait < sum(alpha * gamma**k / (visits + k + 1) for k in range(wait))


def procrastination(alpha: float, gamma: float, visits: int = 1, distance: int = 10) -> Procrastination:
    """Compare the inequality with the exact answer in a corridor of `distance` new tiles before a goal worth 1.

        V(k, n) = max( α + γ V(k−1, 1),  α/(n+1) + γ V(k, n+1) ),   V(goal) = 0, entering it pays 1 + α

    with k tiles to go and the current one visited n times, over at most 640 steps.

    >>> procrastination(0.005, 0.99).exact, procrastination(0.025, 0.995).exact
    (False, True)
    """
    waits = (t for t in range(1, MAX_STEPS) if procrastination_condition(alpha, gamma, visits, t))
    onward = 0.0
    for k in range(1, distance + 1):
        go = alpha + (1.0 if k == 1 else 0.0) + gamma * onward
        if k < distance:
            onward = _value(alpha, gamma, go, 1)[0]
        else:
            _, waiting = _value(alpha, gamma, go, visits)
            return Procrastination(alpha, gamma, visits, distance, next(waits, None), waiting > go + 1e-12, go)
    raise ValueError(f"the distance to the goal is at least 1 step, got {distance}")


def _value(alpha: float, gamma: float, go: float, visits: int) -> tuple[float, float]:
    """V of a tile from which walking on is worth `go`, and the value of waiting there first."""
    value = go
    for n in range(visits + MAX_STEPS, visits, -1):
        value = max(go, alpha / (n + 1) + gamma * value)
    waiting = alpha / (visits + 1) + gamma * value
    return max(go, waiting), waiting


def doorkey_table(
    visits: tuple[int, ...] = (1, 2, 4), distances: tuple[int, ...] = (1, 10, 20)
) -> list[Procrastination]:
    """The paper's three settings, at some visit counts and distances."""
    return [procrastination(a, g, n, d) for a, g in DOORKEY for n in visits for d in distances]
