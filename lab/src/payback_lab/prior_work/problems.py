"""Small random decision problems on which shaping methods are tried, and two on which a raw bonus fails."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback.mdp import MDP, History

HORIZON = 4


class Table:
    """Return random numbers by key; the same key has the same number on every machine."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.known: dict[Any, float] = {}

    def __call__(self, *key: Any) -> float:
        """Return the number of a key."""
        if key not in self.known:
            # Seeded with text, because hash() differs between processes.
            self.known[key] = random.Random(f"{self.seed}|{key!r}").randint(-8, 8) / 4
        return self.known[key]


@dataclass(frozen=True)
class Problem:
    """Hold one decision problem with a bonus and a potential."""

    mdp: MDP
    bonus: Callable[[History, bool], float]
    """F of a true history's last transition."""
    potential: Callable[[History, Any], float]
    """Φ of a seen history, and of the action chosen after it where Φ depends on actions (else None)."""
    frozen: Callable[[History, int], float]
    """Φ of the last state of a seen history, as if the time were another than its own."""
    of_action: bool = False
    """Whether Φ depends on the action that is chosen."""


def free_end(seed: int) -> MDP:
    """Episodes that may end in two different states, or anywhere at the horizon."""
    rng = random.Random(f"free end {seed}")
    states, ends = ["a", "b", "c"], ["x", "y"]
    return MDP({s: _actions(rng, states + ends) for s in states}, "a", HORIZON)


def one_end(seed: int, hidden: bool = False) -> MDP:
    """Episodes that all end in one absorbing state, after at most four steps; `hidden` shows states in part only."""
    rng = random.Random(f"one end {seed}")
    transitions = {}
    for depth in range(HORIZON):
        later = [(depth + 1, k) for k in range(3)] if depth + 1 < HORIZON else []
        for k in range(3 if depth else 1):
            transitions[depth, k] = _actions(rng, [*later, "end"] if not later or rng.random() < 0.5 else later)
    return MDP(transitions, (0, 0), HORIZON + 1, (lambda s: (s[0], s[1] // 2)) if hidden else None)


def loop() -> MDP:
    """A loop with an exit: an agent with a raw bonus for moving never takes the exit."""
    return MDP(
        {
            "a": {"go": ((1, "b", 0.0),), "exit": ((1, "x", 1.0),)},
            "b": {"go": ((1, "a", 0.0),), "exit": ((1, "y", 0.0),)},
        },
        "a",
        HORIZON,
    )


def advised_chain() -> MDP:
    """A chain to a goal, similar to Behboudian's: bad advice rewards every step away from the goal."""
    back = {"a": "a", "b": "a", "c": "b"}
    on = {"a": "b", "b": "c", "c": "x"}
    return MDP({s: {"back": ((1, back[s], 0.0),), "on": ((1, on[s], float(on[s] == "x")),)} for s in on}, "a", HORIZON)


def absorbing(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Transition probabilities and rewards (S, A, S) of an endless problem whose last state is absorbing."""
    rng = np.random.default_rng([seed, 7])
    S, A = 4, 2
    P, R = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s in range(S - 1):
        for a in range(A):
            ways = rng.choice(S, size=rng.integers(1, 3), replace=False)
            P[s, a, ways] = rng.dirichlet(np.ones(len(ways)))
            R[s, a, ways] = rng.integers(-4, 5, len(ways)) / 2
    P[S - 1, :, S - 1] = 1
    return P, R


def optimal_values(P: np.ndarray, R: np.ndarray, gamma: float) -> np.ndarray:
    """Q of an endless discounted problem, by value iteration to rounding error."""
    Q = np.zeros(P.shape[:2])
    for _ in range(int(np.ceil(40 / -np.log(gamma)))):
        Q = (P * (R + gamma * Q.max(axis=1))).sum(axis=2)
    return Q


def optimal_sets(Q: np.ndarray) -> np.ndarray:
    """Which actions are optimal, (S, A)."""
    return Q.max(axis=1, keepdims=True) - 1e-7 <= Q


def _actions(rng: random.Random, after: list[Any]) -> dict[int, tuple[tuple[float, Any, float], ...]]:
    actions = {}
    for a in range(2):
        ways = rng.sample(after, k=min(len(after), 1 + (rng.random() < 0.4)))
        share = rng.randint(1, 3) / 4 if len(ways) == 2 else 1.0
        actions[a] = tuple((p, s, rng.randint(-4, 4) / 2) for p, s in zip((share, 1 - share), ways, strict=False))
    return actions
