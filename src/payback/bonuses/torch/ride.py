"""Rewarding Impact-Driven Exploration (Raileanu and Rocktäschel 2020)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from payback.bonuses.observations import Key
from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.dynamics import dynamics, dynamics_loss
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.per_visit import PerVisit
from payback.bonuses.torch.sight import Actions


def RIDE(  # noqa: N802  the method's name
    actions: Any,
    alpha: float = 0.1,
    *,
    key: Key | None = None,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    forward: float = 10.0,
    inverse: float = 0.1,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for actions that change much of what actions can change, less where this episode has been before.

        F_t = α ‖φ(s_{t+1}) − φ(s_t)‖ / √n(s_{t+1})

    φ learns from an inverse and a forward model, as in `ICM`. n counts this episode's visits as `EpisodicCount` does,
    by `key` of one observation. F is not normalised; the authors clip the total reward to ±1, which would break the
    repayment.

    >>> import numpy as np
    >>> bonus, obs = RIDE(actions=2), np.eye(3, dtype=np.float32)
    >>> bonus(obs, np.array([0, 1, 0]), obs, {})
    array([0., 0., 0.])
    """
    read = Actions("RIDE", actions)
    method = Method(
        name="RIDE",
        sizes={"width": width, "latent": latent, "actions": read.size},
        build=lambda shape, size: dynamics(shape, size, width, latent),
        novelty=impact,
        loss=dynamics_loss(read.discrete, forward, inverse),
        memory=PerVisit("RIDE", key, lambda n: 1 / np.sqrt(n)),
        actions=actions,
        looks_back=True,
    )
    chosen: Options = {"normalise": False, **options}
    return Curiosity(method, alpha=alpha, rate=rate, **chosen)


def impact(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ‖φ(s′) − φ(s)‖, (B,)."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (after - before).square().sum(dim=1).sqrt()
