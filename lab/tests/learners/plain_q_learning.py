"""Q-learning with RND the plain way: one run, one step at a time, in Python with PyTorch.

What the tests hold the learner against, and `benchmarks/cliff.py` its speed.

Takes its first networks and its random numbers from outside, so that it can be held against the learner.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from payback_lab.environments.cliff import ACTIONS, moves
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.methods import transform_of


class TorchRnd:
    """RND as one would write it with PyTorch."""

    def __init__(self, target: torch.nn.Module, predictor: torch.nn.Module, cells: int, rate: float):
        self.target, self.predictor, self.inputs = target, predictor, torch.eye(cells)
        self.optimiser = torch.optim.Adam(predictor.parameters(), lr=rate)

    def __call__(self, cell: int) -> float:
        with torch.no_grad():
            said = self.target(self.inputs[cell])
        error = torch.mean((self.predictor(self.inputs[cell]) - said) ** 2)
        self.optimiser.zero_grad()
        error.backward()
        self.optimiser.step()
        return error.item()


def train(
    config: QLearning, scheme: str, mean: Any, curiosity: Any, draws: Iterator[tuple[float, float]]
) -> tuple[np.ndarray, list[tuple[int, float, float]]]:
    """Train; return Q and (length, return, Σ F) of every episode."""
    cliff, table = config.cliff, moves(config.cliff)
    q = np.full((cliff.cells, ACTIONS), config.first_q)
    transform = transform_of(scheme, config.gamma, mean)
    state = None if transform is None else transform.init(np.zeros(1))
    episodes = []
    for episode in range(config.episodes):
        chance = max(config.epsilon_first - config.epsilon_fall * episode, config.epsilon_last)
        cell, done, length, total, bonus = cliff.start, False, 0, 0.0, 0.0
        while not done:
            explore, which = next(draws)
            best = np.flatnonzero(q[cell] == q[cell].max())
            options = np.arange(ACTIONS) if explore < chance else best
            action = options[int(which * len(options))]
            reached, reward = int(table.cell[cell, action]), float(table.reward[cell, action])
            length, total = length + 1, total + reward
            done = bool(table.terminal[cell, action]) or length == config.limit
            target = reward
            if transform is not None:
                intrinsic = config.rnd_scale * curiosity(reached)
                bonus += intrinsic
                state, shaped = transform.update(state, np.array([intrinsic]), np.array([done]))
                target += float(shaped[0])
            if not done:
                target += config.gamma * q[reached].max()
            q[cell, action] += config.step_size * (target - q[cell, action])
            cell = reached
        episodes.append((length, total, bonus))
    return q, episodes
