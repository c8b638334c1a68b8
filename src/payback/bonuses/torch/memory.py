"""What a network bonus keeps: statistics of all training, transitions to learn from, memories of current episodes."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from payback.bonuses.bonus import CLIP, Scale
from payback.bonuses.counts import Visits
from payback.bonuses.observations import Key, refuse_other_number, rows_to_reset

Batch = dict[str, torch.Tensor]  # s as "x", a as "a", s′ as "y" of N rows, not yet whitened; what a bonus reads


class Rows(NamedTuple):
    """n steps of B environments, as the host has them: blocks (n, B, …), or one step (B, …) without `ends`."""

    obs: Any
    next_obs: Any
    ends: np.ndarray | None = None
    valid: np.ndarray | None = None


class Whitening:
    """Mean and variance of every number of an observation, over all earlier valid rows.

    x̂_t = clip((x_t − μ_{t−1}) / σ_{t−1}, ±5),   μ = 0 and σ = 1 before the first row
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

    def add_steps(self, x: torch.Tensor, valid: np.ndarray | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Take n steps (n, B, …) into account; return the mean and variance before each of them, (n, 1, …).

        All sums are relative to the mean so far, so some rows have to be known.
        """
        away, counts, ones = x - self.mean, np.full(len(x), x.shape[1]), [1] * (x.ndim - 2)
        if valid is not None:
            counts = valid.sum(axis=1)
            away = torch.where(torch.from_numpy(valid).to(x.device).view(*valid.shape, *ones), away, 0.0)
        wide = wide_dtype(x.device)
        total = torch.as_tensor(self.count + np.cumsum(counts), dtype=wide, device=x.device).view(-1, *ones)
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
    """Return F̂ (T, B) as T calls of `scale` do, and take F into account; invalid rows hold 0, `counts` are valid.

    The sums stay on the device, and one of them is read at the end.
    """
    wide = wide_dtype(F.device)
    seen = scale.seen + np.cumsum(counts) - counts
    measured = np.where(seen >= scale.warmup // 2, counts, 0)
    total = scale.measured + np.cumsum(measured)
    start = torch.full((1,), scale.square * scale.measured, dtype=wide, device=F.device)
    squares = F.to(wide).square().sum(1) * torch.as_tensor(measured > 0, device=F.device)
    squares = torch.cat([start, start + squares.cumsum(0)])
    before = squares[:-1] / torch.as_tensor(np.maximum(total - measured, 1), dtype=wide, device=F.device)
    scaled = torch.where(before > 0, F.T / before.clamp(min=1e-300).sqrt().to(F.dtype), F.T * scale.first).T
    paid = torch.as_tensor(seen >= scale.warmup, device=F.device)[:, None]
    scale.square = float(squares[-1]) / max(int(total[-1]), 1)
    scale.seen, scale.measured = int(scale.seen + counts.sum()), int(total[-1])
    return torch.where(paid, scaled.clamp(max=scale.limit), 0.0)


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return float64, which Apple's GPUs do not have."""
    return torch.float32 if device.type == "mps" else torch.float64


class Learning:
    """Keep the transitions of `every` calls, then draw a random share of them in batches."""

    def __init__(self, every: int, share: float, batch_size: int, seed: int):
        self.every, self._share, self._size = every, share, batch_size
        self._generator = torch.Generator("cpu").manual_seed(seed)
        self._kept: list[Batch] = []
        self.calls = 0

    def add(self, batch: Batch, calls: int = 1) -> bool:
        """Keep the valid rows of some calls; return whether it is time to learn."""
        if self.every and len(batch["y"]):
            self._kept.append(batch)
            self.calls += calls
        return 0 < self.every <= self.calls

    def draw(self) -> Iterator[Batch]:
        """Yield batches of a random share of what was kept, and forget it all."""
        whole, self._kept, self.calls = self._whole(), [], 0
        N = len(whole["y"])
        drawn = torch.randperm(N, generator=self._generator, device="cpu")[: max(1, round(self._share * N))]
        for rows in torch.split(drawn.to(whole["y"].device), self._size):
            yield {name: part[rows] for name, part in whole.items()}

    def _whole(self) -> Batch:
        return {name: torch.cat([batch[name] for batch in self._kept]) for name in self._kept[0]}

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"generator": self._generator.get_state().numpy(), "calls": np.array(self.calls)}
        if self._kept:
            arrays |= {f"kept.{name}": part.cpu().numpy() for name, part in self._whole().items()}
        return arrays

    def _restore(self, arrays: dict[str, np.ndarray], device: torch.device) -> None:
        self._generator.set_state(torch.from_numpy(arrays["generator"]))
        self.calls = int(arrays["calls"])
        kept = {name: arrays[f"kept.{name}"] for name in ("x", "a", "y") if f"kept.{name}" in arrays}
        self._kept = [{name: torch.as_tensor(part, device=device) for name, part in kept.items()}] if kept else []


class PerVisit(Visits):
    """Divide novelty by √n(s′), or pay it for first visits only; visits of this episode are counted on the host."""

    def __init__(self, name: str, key: Key | None, *, first_only: bool = False):
        super().__init__(name, key)
        self._first_only = first_only

    def pay(self, novelty: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Return novelty / √n, or novelty · [n = 1], after counting s′."""
        if rows.ends is None:
            n = self.arrive(rows.obs, rows.next_obs, None if rows.valid is None else rows.valid[0])[None]
        else:
            n = self.of_rollout(rows.obs, rows.next_obs, rows.ends, rows.valid)
        factor = torch.from_numpy(n == 1 if self._first_only else 1 / np.sqrt(n))
        return novelty * factor.to(novelty.dtype).to(novelty.device)


class Ellipsoid:
    """Keep C⁻¹ of every environment's episode, (B, d, d), on the device, in float64."""

    def __init__(self, latent: int, ridge: float):
        if not ridge > 0:
            raise ValueError(f"E3B: ridge must be larger than 0, because C has to be inverted; got {ridge!r}")
        self._latent, self._ridge = latent, ridge
        self._inverse: torch.Tensor | None = None

    def pay(self, novelty: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Return φᵀC⁻¹φ of each step, then C⁻¹ ← C⁻¹ − C⁻¹φφᵀC⁻¹ / (1 + φᵀC⁻¹φ) (Sherman and Morrison)."""
        inverse = self._of(novelty.shape[1], novelty.device)
        if rows.valid is not None:
            novelty = torch.where(torch.from_numpy(rows.valid).to(novelty.device)[:, :, None], novelty, 0.0)
        ends = None if rows.ends is None else torch.from_numpy(rows.ends).to(novelty.device)
        fresh, paid = self._fresh(novelty.device), novelty.new_empty(novelty.shape[:2], dtype=inverse.dtype)
        for t, features in enumerate(novelty.to(inverse.dtype)):
            # Products of elements take a third of the time of batched ones, which read a matrix for one vector each.
            turned = (inverse * features[:, None]).sum(dim=2)
            paid[t] = (features * turned).sum(dim=1).clamp_(min=0)
            inverse = inverse.addcmul(turned[:, :, None] / (-1 - paid[t])[:, None, None], turned[:, None])
            if rows.ends is not None and ends is not None and rows.ends[t].any():
                inverse = torch.where(ends[t][:, None, None], fresh, inverse)
        self._inverse = inverse
        return paid.to(novelty.dtype)

    def reset(self, where: Any) -> None:
        """Forget the features of the environments in the mask; a mask of all may have another length."""
        where = rows_to_reset("E3B", where)
        if where.all():
            self._inverse = None
        inverse = self._of(len(where), torch.device("cpu") if self._inverse is None else self._inverse.device)
        mask = torch.from_numpy(where).to(inverse.device)
        self._inverse = torch.where(mask[:, None, None], self._fresh(inverse.device), inverse)

    def _of(self, B: int, device: torch.device) -> torch.Tensor:
        if self._inverse is None:
            self._inverse = self._fresh(device).repeat(B, 1, 1)
        refuse_other_number("E3B", len(self._inverse), B)
        return self._inverse.to(device)

    def _fresh(self, device: torch.device) -> torch.Tensor:
        return torch.eye(self._latent, dtype=wide_dtype(device), device=device) / self._ridge

    def _arrays(self) -> dict[str, np.ndarray]:
        return {} if self._inverse is None else {"inverse": self._inverse.cpu().numpy()}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        found = arrays.get("inverse")
        self._inverse = None if found is None else torch.from_numpy(found)
