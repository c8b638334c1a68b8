"""Running statistics of what came before: each is read before the step that it scales is added."""

from __future__ import annotations

import numpy as np
import torch

CLIP = 5.0
"""Whitened observations stay within ± this (Burda et al. 2018)."""


class Whitening:
    """Mean and variance of every number of an observation, over all earlier valid rows.

        x̂_t = clip((x_t − μ_{t−1}) / σ_{t−1}, ±5)

    Before the first row, μ = 0 and σ = 1.

    >>> whitening = Whitening((1,))
    >>> whitening.add(torch.tensor([[1.0], [3.0]]))
    >>> whitening(torch.tensor([[2.0], [3.0], [100.0]])).flatten().tolist()
    [0.0, 1.0, 5.0]
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device | str = "cpu"):
        self.mean, self.var = torch.zeros(shape, device=device), torch.ones(shape, device=device)
        self.count = 0
        self._each = torch.zeros((1, 0), device=device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows, whitened by what was added so far."""
        return (x - self.mean).mul_((self.var + 1e-8).rsqrt_()).clamp_(-CLIP, CLIP)

    def add(self, x: torch.Tensor) -> None:
        """Take rows into account from the next call on.

        With the old mean μ and d = x − μ of the new rows, their share being w:  μ ← μ + w d̄,
        σ² ← σ² + w (mean(d²) − σ²) − (w d̄)², which loses no digits because d is small.
        """
        rows = x.shape[0]
        if not rows:
            return
        if self.count == 0:
            self.var, self.mean = torch.var_mean(x.float(), dim=0, correction=0)
            self.count = rows
            return
        # A product with a row of 1/rows is the mean over rows, in half the time of `mean(dim=0)` for few rows.
        if self._each.shape[1] != rows:
            self._each = torch.full((1, rows), 1 / rows, device=x.device)
        away, share, shape = (x - self.mean).reshape(rows, -1), rows / (self.count + rows), self.mean.shape
        step = torch.mm(self._each, away).mul_(share).view(shape)
        square = torch.mm(self._each, away.square_()).view(shape)
        self.var = self.var.lerp(square, share).addcmul_(step, step, value=-1).clamp_(min=0)
        self.mean, self.count = self.mean + step, self.count + rows


class RootMeanSquare:
    """Root mean square of all earlier rewards, in float64.

        F̂_t = F_t / √(mean of F² over the steps before t)

    The first step, which nothing came before, is paid 0.

    >>> scale = RootMeanSquare()
    >>> scale(np.array([3.0])), scale.add(np.array([3.0])), scale(np.array([6.0]))
    (array([0.]), None, array([2.]))
    """

    def __init__(self):
        self.square, self.count = 0.0, 0

    def __call__(self, F: np.ndarray) -> np.ndarray:
        """Return the rewards, divided by what was added so far."""
        return F / np.sqrt(self.square) if self.square > 0 else np.zeros_like(F)

    def add(self, F: np.ndarray) -> None:
        """Take rewards into account from the next call on."""
        if len(F):
            self.count += len(F)
            self.square += (float(F @ F) - len(F) * self.square) / self.count
