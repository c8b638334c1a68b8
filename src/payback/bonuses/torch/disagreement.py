"""Exploration via Disagreement (Pathak, Gandhi, Gupta 2019)."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import nn

from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.networks import encoder, mlp
from payback.bonuses.torch.sight import Actions
from payback.core.validate import read_count


def Disagreement(  # noqa: N802  the method's name
    actions: Any,
    alpha: float = 0.05,
    *,
    models: int = 5,
    width: int = 128,
    latent: int = 32,
    rate: float = 1e-3,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for transitions on whose outcome several forward models disagree.

        F_t = α · mean over features of  Var_k g_k(φ(s_t), a_t)

    φ is a fixed random network. The models start from different weights and learn from the same transitions, so that
    they agree where they have learned, also on the mean of what is random. F is divided by the root mean square of
    all earlier F (`normalise`).

    >>> import numpy as np
    >>> bonus, obs = Disagreement(actions=2), np.ones((4, 3), np.float32)
    >>> bonus(obs, np.array([0, 1, 0, 1]), obs, {}).shape
    (4,)
    """
    models = read_count("models", models, 2)
    read = Actions("Disagreement", actions)

    def build(shape: tuple[int, ...], size: int) -> nn.ModuleDict:
        target = encoder(shape, width, latent).requires_grad_(False)
        ensemble = nn.ModuleList(mlp(latent + size, width, latent) for _ in range(models))
        return nn.ModuleDict({"target": target, "models": ensemble})

    method = Method(
        name="Disagreement",
        sizes={"models": models, "width": width, "latent": latent, "actions": read.size},
        build=build,
        novelty=spread,
        loss=loss,
        actions=actions,
        looks_back=True,
    )
    return Curiosity(method, alpha=alpha, rate=rate, **options)


def guesses(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """Return every model's guess of φ(s′), (models, B, latent)."""
    inputs = torch.cat([networks["target"](x), a], dim=1)
    ensemble = networks["models"]
    assert isinstance(ensemble, nn.ModuleList)
    return torch.stack([model(inputs) for model in ensemble])


def spread(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the variance of the guesses, mean over φ(s′), (B,)."""
    if not len(x):
        return x.new_zeros(0)  # because Torch warns of the variance of no rows
    return guesses(networks, x, a).var(dim=0, correction=0).mean(dim=1)


def loss(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the models' mean squared error, summed over the models, which share no weights."""
    return (guesses(networks, x, a) - networks["target"](y)).square().mean(dim=(1, 2)).sum()
