"""The Intrinsic Curiosity Module (Pathak, Agrawal, Efros, Darrell 2017)."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import nn

from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.dynamics import dynamics, dynamics_loss
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.sight import Actions


def ICM(  # noqa: N802  the method's name
    actions: Any,
    alpha: float = 0.05,
    *,
    width: int = 256,
    latent: int = 32,
    rate: float = 3e-4,
    forward: float = 0.2,
    inverse: float = 0.8,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for transitions that a forward model predicts badly, in features of what actions influence.

        F_t = α ‖φ(s_{t+1}) − g(φ(s_t), a_t)‖²

    φ learns to tell a_t from s_t and s_{t+1}, so that noise which no action influences need not be in it. `actions`
    is the number of discrete actions, or a Discrete, Box or MultiBinary space. `forward` and `inverse` are the paper's
    β and 1 − β. F is divided by the root mean square of all earlier F (`normalise`).

    >>> import numpy as np
    >>> bonus, obs = ICM(actions=2), np.ones((4, 3), np.float32)
    >>> bonus(obs, np.array([0, 1, 0, 1]), obs, {}).shape
    (4,)
    """
    read = Actions("ICM", actions)
    method = Method(
        name="ICM",
        sizes={"width": width, "latent": latent, "actions": read.size},
        build=lambda shape, size: dynamics(shape, size, width, latent),
        novelty=novelty,
        loss=dynamics_loss(read.discrete, forward, inverse),
        actions=actions,
        looks_back=True,
    )
    return Curiosity(method, alpha=alpha, rate=rate, **options)


def novelty(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ‖φ(s′) − g(φ(s), a)‖², (B,)."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (networks["model"](torch.cat([before, a], dim=1)) - after).square().sum(dim=1)
