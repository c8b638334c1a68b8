"""Faulty functions of one episode's rewards; the first of each mechanism is checked by default."""

from collections.abc import Callable

import numpy as np

from .planting import GAMMA


def _pbim(rewards: np.ndarray, gamma: float = GAMMA) -> np.ndarray:
    """(naive_conversion), in the dtype of the rewards."""
    rewards = np.asarray(rewards)
    shaped = np.array(rewards, dtype=rewards.dtype)
    n = np.arange(len(rewards) - 1)
    shaped[-1] = -np.sum(gamma ** (n + 1.0 - len(rewards)) * rewards[:-1])
    return shaped


def _ends_early(rewards: np.ndarray) -> np.ndarray:
    """m(t,i,N) = 1/(N−i): sums to zero, and looks at the coming end."""
    N = len(rewards)
    t = np.arange(N, dtype=float)
    m = np.where(t[:, None] >= t[None, :], 1 / (N - t[None, :]), 0)
    return rewards - (GAMMA ** np.minimum(t[None, :] - t[:, None], 0) * m) @ rewards


def _remembers() -> Callable[[np.ndarray], np.ndarray]:
    debt = [0.0]

    def shape(rewards: np.ndarray) -> np.ndarray:
        shaped = _pbim(rewards)
        shaped[-1] -= 0.1 * debt[0]
        debt[0] = float(rewards[-1])
        return shaped

    return shape


def _recursion(rewards: np.ndarray) -> np.ndarray:
    gamma, shaped, debt = rewards.dtype.type(GAMMA), np.zeros_like(rewards), rewards.dtype.type(0)
    for t, reward in enumerate(rewards):
        due = rewards[t - 3] / gamma**3 if t >= 3 else 0
        shaped[t] = reward - due if t < len(rewards) - 1 else -debt
        debt = (debt - due + reward) / gamma
    return shaped


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


FUNCTIONS: dict[str, dict[str, Callable[[np.ndarray], np.ndarray]]] = {
    "zero sum": {
        "raw": lambda rewards: rewards,
        "last reward kept": lambda rewards: _pbim(rewards) + np.eye(len(rewards))[-1] * rewards,
        "gamma in float32": lambda r: settled(r, gamma=float(np.float32(GAMMA))),
        "wrong gamma": lambda rewards: _pbim(rewards, 0.99),
    },
    "changed afterwards": {
        "clipped": lambda rewards: np.clip(_pbim(rewards), -10, 10),
        "rounded to 6 decimals": lambda r: np.round(settled(r), 6),
    },
    "causality": {
        "depends on the coming end": _ends_early,
        "pays double where the last reward is the largest": lambda r: (
            settled(r) * (1 + (len(r) > 2 and r[-1] == r.max()))
        ),
    },
    "statistics of the whole episode": {
        "centred by the episode's own mean": lambda rewards: _pbim(rewards - rewards.mean()),
        "scaled by the episode's own size": lambda rewards: _pbim(rewards) / (1e-9 + np.abs(rewards).max()),
    },
    "one length of the episode": {
        "wrong for episodes of 37 steps": lambda r: settled(r, 1 + (len(r) == 37)),
        "paid only in long episodes": lambda rewards: _pbim(rewards) * (len(rewards) > 4),
    },
    "a late age": {
        "wrong beyond 900 steps": lambda r: settled(r, 1 + (len(r) > 900)),
    },
    "the size or value of the reward": {
        "no settlement after a large last reward": lambda r: settled(r, float(abs(r[-1]) < 1e4)),
        "wrong above 1e20": lambda r: settled(r, 1 + (np.abs(r).max() > 1e20)),
        "wrong below 1e-25": lambda r: settled(r, 1 + (np.abs(r).max() < 1e-25)),
        "reward of exactly 7 unpaid": lambda r: settled(r) * (r != 7),
    },
    "hidden state": {
        "remembers earlier episodes": _remembers(),
        "every seventh call": every_seventh_call(),
    },
    "purity and shape": {
        "writes into its input": lambda rewards: np.multiply(rewards, 0, out=rewards),
        "one step missing": lambda rewards: _pbim(rewards)[:-1],
    },
    "rounding": {
        "rounding grows": _recursion,
    },
    "float16": {
        "half a settlement in float16": lambda r: settled(r, 0.5).astype(np.float16),
    },
}
