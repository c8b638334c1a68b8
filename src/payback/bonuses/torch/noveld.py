"""NovelD, the novelty difference (Zhang, Xu, Wang, Wu, Keutzer, Gonzalez, Tian 2021)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from payback.bonuses.observations import Key
from payback.bonuses.torch.curiosity import Curiosity
from payback.bonuses.torch.method import Method, Options
from payback.bonuses.torch.per_visit import PerVisit
from payback.bonuses.torch.rnd import distillation, error, loss


def NovelD(  # noqa: N802  the method's name
    alpha: float = 0.05,
    *,
    key: Key | None = None,
    margin: float = 0.5,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> Curiosity:
    """Pay for crossing from the known to the new, once per episode and place.

        F_t = α max(ν(s_{t+1}) − c ν(s_t), 0) · [s_{t+1} is visited for the first time in this episode]

    ν is the error of `RND` and c the `margin`. Visits are counted as `EpisodicCount` does, by `key` of one
    observation. F is not normalised; the authors clip the total reward to ±1, which would break the repayment.

    >>> import numpy as np
    >>> bonus, obs = NovelD(), np.eye(3, dtype=np.float32)
    >>> bonus(obs, None, obs, {})
    array([0., 0., 0.])
    """

    def difference(networks: nn.ModuleDict, x: torch.Tensor, a: Any, y: torch.Tensor) -> torch.Tensor:
        before, after = error(networks, torch.cat([x, y])).chunk(2)
        return (after - margin * before).clamp(min=0)

    method = Method(
        name="NovelD",
        sizes={"width": width, "latent": latent},
        build=lambda shape, actions: distillation(shape, width, latent),
        novelty=difference,
        loss=loss,
        memory=PerVisit("NovelD", key, lambda n: (n == 1).astype(np.float64)),
        looks_back=True,
    )
    chosen: Options = {"normalise": False, **options}
    return Curiosity(method, alpha=alpha, rate=rate, **chosen)
