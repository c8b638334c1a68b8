"""Random Network Distillation (Burda, Edwards, Storkey, Klimov 2018)."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import nn

from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.networks import encoder
from payback.core.validate import read_count


def RND(  # noqa: N802  the method's name
    alpha: float = 0.05,
    *,
    width: int = 256,
    latent: int = 128,
    deeper: int = 2,
    rate: float = 1e-3,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for observations whose random features a predictor has not learned yet.

        F_t = α ‖f̂(s_{t+1}) − f(s_{t+1})‖²

    f is a fixed random network, f̂, `deeper` by two layers, is trained to copy it where the agent has been. Observations
    are whitened and clipped to ±5. F is divided by the root mean square of all earlier F (`normalise`), so that
    α = 0.05 makes discounted sums of order 1 at γ = 0.99. The authors divide by the deviation of these sums, and pay a
    second, non-episodic stream with its own γ, which lies outside the guarantee.

    >>> import numpy as np
    >>> bonus, obs = RND(normalise=False, learn_every=1, share=1.0), np.eye(4, dtype=np.float32)
    >>> F = [float(bonus(obs, None, obs, {})[0]) for _ in range(50)]
    >>> F[-1] < 0.5 * F[1]
    True
    """
    method = Method(
        name="RND",
        sizes={"width": width, "latent": latent, "deeper": read_count("deeper", deeper, 0)},
        build=lambda shape, actions: distillation(shape, width, latent, deeper),
        novelty=lambda networks, x, a, y: error(networks, y),
        loss=loss,
    )
    return Curiosity(method, alpha=alpha, rate=rate, **options)


def distillation(shape: tuple[int, ...], width: int, latent: int, deeper: int = 2) -> nn.ModuleDict:
    """Return the fixed random network and its predictor, which has so many layers more."""
    target = encoder(shape, width, latent).requires_grad_(False)
    return nn.ModuleDict({"target": target, "predictor": encoder(shape, *[width] * (1 + deeper), latent)})


def error(networks: nn.ModuleDict, y: torch.Tensor) -> torch.Tensor:
    """Return ‖f̂(y) − f(y)‖², (B,)."""
    return (networks["predictor"](y) - networks["target"](y)).square().sum(dim=1)


def loss(networks: nn.ModuleDict, x: Any, a: Any, y: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error per feature, so that the rate means the same for every latent size."""
    return (networks["predictor"](y) - networks["target"](y)).square().mean()
