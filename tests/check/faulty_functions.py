"""Functions of one episode's rewards that break the law under one condition."""

from collections.abc import Callable

import numpy as np

from .faults import GAMMA


def settled(rewards: np.ndarray, factor: float = 1.0, gamma: float = GAMMA) -> np.ndarray:
    """(naive_conversion), with a settlement that is larger by a factor."""
    weight = gamma ** np.arange(1.0 - len(rewards), 0.0)
    return np.append(rewards[:-1], -factor * (weight @ rewards[:-1]))


def every_seventh_call() -> Callable[[np.ndarray], np.ndarray]:
    calls = [0]

    def shape(rewards: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return settled(rewards, 1.01 if calls[0] % 7 == 0 else 1.0)

    return shape


BLACK_BOXES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "wrong for episodes of 37 steps": lambda r: settled(r, 1 + (len(r) == 37)),
    "wrong beyond 900 steps": lambda r: settled(r, 1 + (len(r) > 900)),
    "rounded to 6 decimals": lambda r: np.round(settled(r), 6),
    "every seventh call": every_seventh_call(),
    "wrong above 1e20": lambda r: settled(r, 1 + (np.abs(r).max() > 1e20)),
    "wrong below 1e-25": lambda r: settled(r, 1 + (np.abs(r).max() < 1e-25)),
    "reward of exactly 7 unpaid": lambda r: settled(r) * (r != 7),
    "half a settlement in float16": lambda r: settled(r, 0.5).astype(np.float16),
    "gamma in float32": lambda r: settled(r, gamma=float(np.float32(GAMMA))),
    "no settlement after a large last reward": lambda r: settled(r, float(abs(r[-1]) < 1e4)),
    "pays double where the last reward is the largest": lambda r: settled(r) * (1 + (len(r) > 2 and r[-1] == r.max())),
}
