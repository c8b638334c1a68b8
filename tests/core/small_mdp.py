"""A small MDP solved exactly, over histories, in fractions.

A corridor 0 – 1 – 2. `go` moves on with probability ¾; reaching 2 pays 1 and ends the episode. `play` stays, for
nothing. `quit` ends the episode for ⅜. After LIMIT steps time is up. The intrinsic reward is a toy that grows dull:
playing is worth 4, going 1, each half as much with every time it was done before in the episode. It looks at the
whole history, and at first makes playing better than arriving.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from payback.theory import match_episode

GAMMA = Fraction(3, 4)
LIMIT = 5
ACTIONS = ("go", "play", "quit")
NOVELTY = {"go": 1, "play": 4, "quit": 0}
GOAL = 2


class Step(NamedTuple):
    """One transition as the agent remembers it."""

    action: str
    cell: int
    reward: Fraction
    bonus: Fraction
    over: bool


History = tuple[Step, ...]
Bonus = Callable[[History], Iterable[Fraction]]
"""What each step of a finished episode is paid on top."""


def outcomes(history: History, action: str) -> list[tuple[Fraction, Step]]:
    """Return the transitions that `action` may lead to, with their probabilities."""
    cell = history[-1].cell if history else 0

    def step(to: int, reward: Fraction, over: bool) -> Step:
        before = sum(past.action == action for past in history)
        return Step(action, to, reward, Fraction(NOVELTY[action], 2**before), over)

    if action == "quit":
        return [(Fraction(1), step(cell, Fraction(3, 8), True))]
    if action == "play":
        return [(Fraction(1), step(cell, Fraction(0), False))]
    arrived = cell + 1 == GOAL
    return [
        (Fraction(3, 4), step(cell + 1, Fraction(arrived), arrived)),
        (Fraction(1, 4), step(cell, Fraction(0), False)),
    ]


def action_values(added: Bonus) -> dict[History, dict[str, Fraction]]:
    """Return the value of each action after every history, by backward induction, with `added` on top of R.

    Each history's agent maximises Σ_{n≥t} γ^(n−t) (R_n + F'_n), expecting its later self to do the same. What F'_n
    is may be known only when the episode is over (mutants look ahead), so returns are taken over whole episodes.
    """
    values: dict[History, dict[str, Fraction]] = {}

    @cache
    def paid(episode: History) -> tuple[Fraction, ...]:
        return tuple(step.reward + x for step, x in zip(episode, added(episode), strict=True))

    def to_go(episode: History, t: int) -> Fraction:
        return sum((GAMMA ** (n - t) * paid(episode)[n] for n in range(t, len(episode))), Fraction(0))

    def play_on(history: History) -> list[tuple[Fraction, History]]:
        """Return the episodes that the best actions lead to from here, with their probabilities."""
        if history and (history[-1].over or len(history) == LIMIT):
            return [(Fraction(1), history)]
        after = {
            action: [(p * q, end) for p, step in outcomes(history, action) for q, end in play_on((*history, step))]
            for action in ACTIONS
        }
        values[history] = {
            action: sum((p * to_go(end, len(history)) for p, end in ends), Fraction(0))
            for action, ends in after.items()
        }
        return after[min(best_of(values[history]))]

    play_on(())
    return values


def best_of(values: dict[str, Fraction], tolerance: Fraction = Fraction(1, 10**9)) -> frozenset[str]:
    """Return the best actions; streaming code computes in floats, hence the tolerance."""
    return frozenset(action for action, value in values.items() if max(values.values()) - value <= tolerance)


# ------------------------------------------------------------------ what is added to the extrinsic reward


def nothing(episode: History) -> Iterable[Fraction]:
    return [Fraction(0)] * len(episode)


def raw_bonus(episode: History) -> Iterable[Fraction]:
    return [step.bonus for step in episode]


def matched_exactly(matching: Any) -> Bonus:
    """(drawer) in fractions."""
    return lambda episode: match_episode([step.bonus for step in episode], matching, GAMMA)


def streamed(shaper: Callable[..., Any]) -> Bonus:
    """A shaper of `properties.py`; time being up is a truncation."""

    def added(episode: History) -> Iterable[Fraction]:
        last = np.arange(len(episode)) == len(episode) - 1
        over = episode[-1].over
        paid = shaper(np.array([float(step.bonus) for step in episode]), last & over, last & (not over))
        return [Fraction(float(x)) for x in paid]

    return added
