"""What some bonuses remember of the current episodes: visits (RIDE, NovelD) and an ellipsoid of features (E3B)."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from payback.bonuses.observations import Key, map_parts, refuse_other_number, rows_to_reset
from payback.bonuses.torch.learning import Rows
from payback.bonuses.torch.statistics import wide_dtype
from payback.bonuses.visits import Visits


class PerVisit(Visits):
    """Multiply novelty by a factor of n(s′), the visits in this episode, which are counted on the host.

    >>> memory, rows = PerVisit("RIDE", None, one_over_root), Rows(-np.ones((1, 1)), np.ones((1, 1)))
    >>> [memory.pay(torch.tensor([[2.0]]), rows).item() for _ in range(2)]
    [2.0, 1.4142135381698608]
    """

    def __init__(self, name: str, key: Key | None, factor: Callable[[np.ndarray], np.ndarray]):
        super().__init__(name, key)
        self._factor = factor

    def pay(self, novelty: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Return novelty · factor(n), after counting s′."""
        if rows.ends is None:
            n = self.arrive(rows.obs, rows.next_obs, None if rows.valid is None else rows.valid[0])[None]
        else:
            shape = rows.ends.shape
            obs, next_obs = (map_parts(lambda part: part.reshape(*shape, *part.shape[1:]), x) for x in rows[:2])
            n = self.of_rollout(obs, next_obs, rows.ends, rows.valid)
        return novelty * torch.from_numpy(self._factor(n)).to(novelty.dtype).to(novelty.device)


def one_over_root(n: np.ndarray) -> np.ndarray:
    """Return RIDE's factor, 1/√n."""
    return 1 / np.sqrt(n)


def first_visit(n: np.ndarray) -> np.ndarray:
    """Return NovelD's factor, 1 at the first visit and 0 later."""
    return (n == 1).astype(np.float64)


class Ellipsoid:
    """Keep C⁻¹ of every environment's episode, (B, d, d), on the device, in float64.

    >>> memory, rows = Ellipsoid(1, ridge=0.5), Rows(None, None)
    >>> [round(memory.pay(torch.ones(1, 1, 1), rows).item(), 3) for _ in range(2)]
    [2.0, 0.667]
    """

    def __init__(self, latent: int, ridge: float):
        if not ridge > 0:
            raise ValueError(f"E3B: ridge must be larger than 0, because C has to be inverted; got {ridge!r}")
        self._latent, self._ridge = latent, ridge
        self._inverse: torch.Tensor | None = None

    def pay(self, novelty: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Return φᵀC⁻¹φ of each step, then C⁻¹ ← C⁻¹ − C⁻¹φφᵀC⁻¹ / (1 + φᵀC⁻¹φ) (Sherman and Morrison)."""
        n, B = novelty.shape[:2]
        inverse = self._of(B, novelty.device)
        flags = (rows.valid, rows.ends)
        valid, ends = (None if flag is None else torch.from_numpy(flag).to(novelty.device) for flag in flags)
        fresh, paid = self._fresh(novelty.device), torch.empty((n, B), dtype=inverse.dtype, device=novelty.device)
        for t, features in enumerate(novelty.to(inverse.dtype)):
            turned = torch.bmm(inverse, features[:, :, None])
            paid[t] = (features * turned[:, :, 0]).sum(dim=1).clamp_(min=0)
            changed = torch.baddbmm(inverse, turned / (-1 - paid[t])[:, None, None], turned.transpose(1, 2))
            inverse = changed if valid is None else torch.where(valid[t][:, None, None], changed, inverse)
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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        return {} if self._inverse is None else {"inverse": self._inverse.cpu().numpy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what was saved."""
        found = arrays.get("inverse")
        self._inverse = None if found is None else torch.from_numpy(found)
