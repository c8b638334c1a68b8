"""Features learned from what actions do: an encoder φ, an inverse model and a forward model (Pathak et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from payback.bonuses.torch.networks import encoder, mlp


def dynamics(shape: tuple[int, ...], actions: int, width: int, latent: int) -> nn.ModuleDict:
    """Return φ(s), the forward model g(φ(s), a) → φ(s′) and the inverse model (φ(s), φ(s′)) → a."""
    return nn.ModuleDict(
        {
            "encoder": encoder(shape, width, width, latent),
            "model": mlp(latent + actions, width, latent),
            "inverse": mlp(2 * latent, width, actions),
        }
    )


def dynamics_loss(discrete: bool, forward: float, inverse: float) -> Callable[[nn.ModuleDict, Any, Any, Any], Any]:
    """Return the loss  forward · ½‖g(φ(s), a) − φ(s′)‖² + inverse · (how badly a is told from φ(s), φ(s′))."""

    def loss(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
        guess = networks["inverse"](torch.cat([before, after], dim=1))
        told = functional.cross_entropy(guess, a) if discrete else functional.mse_loss(guess, a)
        if not forward:
            return inverse * told
        ahead = networks["model"](torch.cat([before, a], dim=1))
        return forward * 0.5 * (ahead - after).square().sum(dim=1).mean() + inverse * told

    return loss
