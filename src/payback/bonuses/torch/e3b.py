"""Exploration via Elliptical Episodic Bonuses (Henaff, Raileanu, Jiang, Rocktäschel 2022)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from torch import nn

from payback.bonuses.observations import refuse_other_number, rows_to_reset
from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.dynamics import dynamics, dynamics_loss
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.sight import Actions


def E3B(  # noqa: N802  the method's name
    actions: Any,
    alpha: float = 1.0,
    *,
    ridge: float = 0.1,
    width: int = 256,
    latent: int = 32,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for features that this episode has not seen yet, as an ellipsoid around those seen measures it.

        F_t = α φ(s_{t+1})ᵀ C⁻¹ φ(s_{t+1}),   C = λI + Σ φφᵀ over this episode's earlier s′,  λ the `ridge`

    φ learns to tell a_t from s_t and s_{t+1} and stays what it was for the steps already in C. C⁻¹ is kept by the
    formula of Sherman and Morrison. F is divided by the root mean square of all earlier F (`normalise`).

    >>> import numpy as np
    >>> bonus, obs = E3B(actions=2, normalise=False), np.ones((1, 3), np.float32)
    >>> first, second = (float(bonus(obs, np.array([0]), obs, {})[0]) for _ in range(2))
    >>> second < first
    True
    """
    read = Actions("E3B", actions)

    def build(shape: tuple[int, ...], size: int) -> nn.ModuleDict:
        networks = dynamics(shape, size, width, latent)
        del networks["model"]
        return networks

    method = Method(
        name="E3B",
        sizes={"width": width, "latent": latent, "actions": read.size},
        build=build,
        novelty=lambda networks, x, a, y: networks["encoder"](y),
        loss=dynamics_loss(read.discrete, forward=0.0, inverse=1.0),
        memory=Ellipsoid(latent, ridge),
        actions=actions,
        looks_back=True,
    )
    return Curiosity(method, alpha=alpha, rate=rate, **options)


class Ellipsoid:
    """Keep C⁻¹ of every environment's episode, float64 (B, d, d).

    >>> memory = Ellipsoid(1, ridge=0.5)
    >>> [memory.pay(np.array([[1.0]]), None, None, None).round(3) for _ in range(2)]
    [array([2.]), array([0.667])]
    """

    def __init__(self, latent: int, ridge: float):
        if not ridge > 0:
            raise ValueError(f"E3B: ridge must be larger than 0, because C is to be inverted; got {ridge!r}")
        self._fresh = np.eye(latent) / ridge
        self._inverse: np.ndarray | None = None

    def pay(self, features: np.ndarray, obs: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        """Return φᵀC⁻¹φ, then C⁻¹ ← C⁻¹ − C⁻¹φφᵀC⁻¹ / (1 + φᵀC⁻¹φ)."""
        inverse = self._of(len(features))
        turned = (inverse @ features[:, :, None])[:, :, 0]
        F = (features * turned).sum(axis=1)
        change = turned[:, :, None] * (turned / (1 + F)[:, None])[:, None, :]
        if valid is None:
            inverse -= change
        else:
            inverse[valid] -= change[valid]
        return F

    def reset(self, where: Any) -> None:
        """Forget the features of the environments in the mask; a mask of all may have another length."""
        where = rows_to_reset("E3B", where)
        if where.all():
            self._inverse = None
        self._of(len(where))[where] = self._fresh

    def _of(self, B: int) -> np.ndarray:
        if self._inverse is None:
            self._inverse = np.repeat(self._fresh[None], B, axis=0)
        refuse_other_number("E3B", len(self._inverse), B)
        return self._inverse

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        return {} if self._inverse is None else {"inverse": self._inverse}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what was saved."""
        self._inverse = arrays.get("inverse")
