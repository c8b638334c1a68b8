"""Running statistics of observations and rewards: each step is scaled by earlier ones, alone or in a rollout."""

from __future__ import annotations

import numpy as np
import torch

from payback.bonuses.bonus import Scale

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
        self.mean: torch.Tensor = torch.zeros(shape, device=device)
        self.var: torch.Tensor = torch.ones(shape, device=device)
        self.count = 0
        self._each = torch.zeros((1, 0), device=device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows, whitened by what was added so far."""
        return whitened(x, self.mean, self.var)

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

    def add_steps(
        self, x: torch.Tensor, counts: np.ndarray, valid: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Take n steps (n, B, …) into account; return the mean and variance before each of them, (n, 1, …).

        `counts` (n,) are their valid rows. All sums are relative to the mean so far, so some rows have to be known.
        """
        away = x - self.mean
        if valid is not None:
            away = torch.where(valid.view(*valid.shape, *[1] * (x.ndim - 2)), away, 0.0)
        wide = wide_dtype(x.device)
        total = torch.as_tensor(self.count + np.cumsum(counts), dtype=wide, device=x.device)
        total = total.view(-1, *[1] * (x.ndim - 2))
        step = away.sum(1).cumsum(0, dtype=wide) / total
        square = (self.var.to(wide) * self.count + away.square_().sum(1).cumsum(0, dtype=wide)) / total
        var = (square - step * step).clamp_(min=0).float()
        mean = (self.mean + step).float()
        before = torch.cat([self.mean[None], mean[:-1]])[:, None], torch.cat([self.var[None], var[:-1]])[:, None]
        self.mean, self.var, self.count = mean[-1], var[-1], self.count + int(counts.sum())
        return before


def whitened(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
    """Return (x − mean) / √var, clipped."""
    return (x - mean).mul_((var + 1e-8).rsqrt()).clamp_(-CLIP, CLIP)


def scale_steps(scale: Scale, F: torch.Tensor, counts: np.ndarray) -> torch.Tensor:
    """Return F̂ (T, B) as T calls of `scale` do, and take F into account; invalid rows hold 0.

    The sums stay on the device, and one of them is read at the end.
    """
    seen = scale.seen + np.cumsum(counts) - counts
    measured = np.where(seen >= scale.warmup // 2, counts, 0)
    wide, device = wide_dtype(F.device), F.device
    total = scale.measured + np.cumsum(measured)
    squares = F.to(wide).square().sum(1) * torch.as_tensor(measured > 0, device=device)
    squares = squares.cumsum(0) + scale.square * scale.measured
    first = torch.full((1,), scale.square * scale.measured, dtype=wide, device=device)
    before = torch.cat([first, squares[:-1]]) / torch.as_tensor(
        np.maximum(total - measured, 1), dtype=wide, device=device
    )
    scaled = torch.where(before > 0, F.T / before.clamp(min=1e-300).sqrt().to(F.dtype), F.T * scale.first).T
    scaled = torch.where(
        torch.as_tensor(seen < scale.warmup, device=device)[:, None], 0.0, scaled.clamp(max=scale.limit)
    )
    scale.square = float(squares[-1]) / max(int(total[-1]), 1)
    scale.seen, scale.measured = int(scale.seen + counts.sum()), int(total[-1])
    return scaled


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return float64, which Apple's GPUs do not have."""
    return torch.float32 if device.type == "mps" else torch.float64
