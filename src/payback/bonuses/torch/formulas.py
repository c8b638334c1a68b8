"""The network bonuses: RND, NovelD, ICM, RIDE, E3B and Disagreement, each a formula and a loss on its networks.

`actions` is the action space of one environment, or a number of discrete actions; an adapter passes its environment's.
F is divided by the root mean square of all earlier F (`normalise`). Visits are counted as in `EpisodicCount`, by `key`
of one observation.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from payback.bonuses.bonus import ALPHA
from payback.bonuses.observations import Key
from payback.bonuses.torch.encoders import ActionEncoder
from payback.bonuses.torch.engine import Method, NetworkBonus, Options
from payback.bonuses.torch.memory import Ellipsoid, PerVisit
from payback.bonuses.torch.networks import InverseModel, dynamics, encoder, mlp
from payback.core.validate import read_count


def RND(  # noqa: N802  the method's name
    alpha: float = ALPHA,
    *,
    width: int = 256,
    latent: int = 128,
    deeper: int = 2,
    rate: float = 1e-3,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for observations whose random features a predictor has not learned yet (Burda et al. 2018).

        F_t = α ‖f̂(s_{t+1}) − f(s_{t+1})‖²

    f is a fixed random network; f̂, two layers `deeper`, is trained to copy it where the agent has been. The authors
    divide F by the deviation of discounted sums, and pay a second, non-episodic stream with its own γ, which lies
    outside the guarantee.

    F hardly changes within an episode: a step back and forth pays twice, and GRM repays what it paid a few steps
    before. With GRM, use `payback.bonuses.episodic(RND())`, which pays less for each further visit in an episode.

    >>> import numpy as np
    >>> bonus, obs = RND(normalise=False, learn_every=1, share=1.0), np.eye(4, dtype=np.float32)
    >>> F = [float(bonus(obs, None, obs, {})[0]) for _ in range(50)]
    >>> F[-1] < 0.5 * F[1]
    True
    """
    deeper = read_count("deeper", deeper, 0)
    method = Method(
        name="RND",
        sizes={"width": width, "latent": latent, "deeper": deeper},
        build=partial(_distillation, width=width, latent=latent, deeper=deeper),
        novelty=_error,
        loss=_error_loss,
    )
    return NetworkBonus(method, alpha=alpha, rate=rate, **options)


def NovelD(  # noqa: N802  the method's name
    alpha: float = ALPHA,
    *,
    key: Key | None = None,
    margin: float = 0.5,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for crossing from the known to the new, once per episode and observation (Zhang et al. 2021).

        F_t = α max(ν(s_{t+1}) − c ν(s_t), 0) · [s_{t+1} is visited for the first time in this episode]

    ν is the error of `RND` and c the `margin`. The authors clip the total reward to ±1, which would break the
    repayment.

    >>> import numpy as np
    >>> bonus, obs = NovelD(), np.eye(3, dtype=np.float32)
    >>> bonus(obs, None, obs, {})
    array([0., 0., 0.])
    """
    method = Method(
        name="NovelD",
        sizes={"width": width, "latent": latent},
        build=partial(_distillation, width=width, latent=latent, deeper=2),
        novelty=partial(_difference, margin=margin),
        loss=_error_loss,
        memory=PerVisit("NovelD", key, _first_visit),
        looks_back=True,
    )
    return NetworkBonus(method, alpha=alpha, rate=rate, **options)


def ICM(  # noqa: N802  the method's name
    actions: Any = None,
    alpha: float = ALPHA,
    *,
    width: int = 256,
    latent: int = 32,
    rate: float = 3e-4,
    forward: float = 0.2,
    inverse: float = 0.8,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for transitions that a forward model predicts badly, in features of what actions change (Pathak et al. 2017).

        F_t = α ‖φ(s_{t+1}) − g(φ(s_t), a_t)‖²

    φ learns to predict a_t from s_t and s_{t+1}, so that it can ignore noise that no action influences. `forward` and
    `inverse` are the paper's β and 1 − β.

    >>> import numpy as np
    >>> bonus, obs = ICM(actions=2), np.ones((4, 3), np.float32)
    >>> bonus(obs, np.array([0, 1, 0, 1]), obs, {}).shape
    (4,)
    """
    method = Method(
        name="ICM",
        sizes={"width": width, "latent": latent},
        build=partial(dynamics, width=width, latent=latent),
        novelty=_surprise,
        loss=partial(_dynamics_loss, forward=forward, inverse=inverse),
        reads_actions=True,
        looks_back=True,
    )
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


def RIDE(  # noqa: N802  the method's name
    actions: Any = None,
    alpha: float = ALPHA,
    *,
    key: Key | None = None,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    forward: float = 10.0,
    inverse: float = 0.1,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for actions that change what actions can change, less with each visit (Raileanu and Rocktäschel 2020).

        F_t = α ‖φ(s_{t+1}) − φ(s_t)‖ / √n(s_{t+1})

    φ learns from an inverse and a forward model, as in `ICM`; n counts this episode's visits. The authors clip the
    total reward to ±1, which would break the repayment.

    >>> import numpy as np
    >>> bonus, obs = RIDE(actions=2), np.eye(3, dtype=np.float32)
    >>> bonus(obs, np.array([0, 1, 0]), obs, {})
    array([0., 0., 0.])
    """
    method = Method(
        name="RIDE",
        sizes={"width": width, "latent": latent},
        build=partial(dynamics, width=width, latent=latent),
        novelty=_impact,
        loss=partial(_dynamics_loss, forward=forward, inverse=inverse),
        memory=PerVisit("RIDE", key, _one_over_root),
        reads_actions=True,
        looks_back=True,
    )
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


def E3B(  # noqa: N802  the method's name
    actions: Any = None,
    alpha: float = ALPHA,
    *,
    ridge: float = 0.1,
    width: int = 256,
    latent: int = 32,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for features that this episode has not seen yet, as an ellipsoid measures it (Henaff et al. 2022).

        F_t = α φ(s_{t+1})ᵀ C⁻¹ φ(s_{t+1}),   C = λI + Σ φφᵀ over this episode's earlier s′,  λ the `ridge`

    φ learns to predict a_t from s_t and s_{t+1}, as in `ICM`; steps already in C keep the φ that they had.

    >>> import numpy as np
    >>> bonus, obs = E3B(actions=2, normalise=False), np.ones((1, 3), np.float32)
    >>> first, second = (float(bonus(obs, np.array([0]), obs, {})[0]) for _ in range(2))
    >>> second < first
    True
    """
    method = Method(
        name="E3B",
        sizes={"width": width, "latent": latent},
        build=partial(dynamics, width=width, latent=latent, forward=False),
        novelty=_features,
        loss=partial(_dynamics_loss, forward=0.0, inverse=1.0),
        memory=Ellipsoid(latent, ridge),
        reads_actions=True,
        looks_back=True,
    )
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


def Disagreement(  # noqa: N802  the method's name
    actions: Any = None,
    alpha: float = ALPHA,
    *,
    models: int = 5,
    width: int = 128,
    latent: int = 32,
    rate: float = 1e-3,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for transitions on whose outcome several forward models disagree (Pathak, Gandhi, Gupta 2019).

        F_t = α · mean over features of  Var_k g_k(φ(s_t), a_t)

    φ is a fixed random network. The models start from different weights and learn from the same transitions, so they
    agree where they have learned, also on the mean of a random outcome.

    >>> import numpy as np
    >>> bonus, obs = Disagreement(actions=2), np.ones((4, 3), np.float32)
    >>> bonus(obs, np.array([0, 1, 0, 1]), obs, {}).shape
    (4,)
    """
    models = read_count("models", models, 2)
    method = Method(
        name="Disagreement",
        sizes={"models": models, "width": width, "latent": latent},
        build=partial(_ensemble, models=models, width=width, latent=latent),
        novelty=_spread,
        loss=_ensemble_loss,
        reads_actions=True,
        looks_back=True,
    )
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


# ------------------------------------------------------------------ formulas and losses: (networks, x, a, y)


def _distillation(shape: tuple[int, ...], actions: Any, *, width: int, latent: int, deeper: int) -> nn.ModuleDict:
    """Return the fixed random network and its predictor, which has `deeper` layers more."""
    target = encoder(shape, width, latent).requires_grad_(False)
    return nn.ModuleDict({"target": target, "predictor": encoder(shape, *[width] * (1 + deeper), latent)})


def _error(networks: nn.ModuleDict, x: Any, a: Any, y: torch.Tensor) -> torch.Tensor:
    """Return ‖f̂(y) − f(y)‖², (B,)."""
    return (networks["predictor"](y) - networks["target"](y)).square().sum(dim=1)


def _error_loss(networks: nn.ModuleDict, x: Any, a: Any, y: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error per feature, so that the rate means the same for every latent size."""
    return (networks["predictor"](y) - networks["target"](y)).square().mean()


def _difference(networks: nn.ModuleDict, x: torch.Tensor, a: Any, y: torch.Tensor, margin: float) -> torch.Tensor:
    """Return max(ν(s′) − c ν(s), 0), (B,)."""
    before, after = _error(networks, x, a, torch.cat([x, y])).chunk(2)
    return (after - margin * before).clamp(min=0)


def _first_visit(n: np.ndarray) -> np.ndarray:
    return n == 1


def _one_over_root(n: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(n)


def _surprise(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ‖φ(s′) − g(φ(s), a)‖², (B,)."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (networks["model"](torch.cat([before, a], dim=1)) - after).square().sum(dim=1)


def _impact(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ‖φ(s′) − φ(s)‖, (B,)."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (after - before).square().sum(dim=1).sqrt()


def _features(networks: nn.ModuleDict, x: Any, a: Any, y: torch.Tensor) -> torch.Tensor:
    """Return φ(s′), (B, latent)."""
    return networks["encoder"](y)


def _dynamics_loss(
    networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor, *, forward: float, inverse: float
) -> torch.Tensor:
    """Return  forward · ½‖g(φ(s), a) − φ(s′)‖² + inverse · (error of a predicted from φ(s), φ(s′))."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    model = networks["inverse"]
    assert isinstance(model, InverseModel)
    loss = inverse * model.error(before, after, a)
    if not forward:
        return loss
    ahead = networks["model"](torch.cat([before, a], dim=1))
    return forward * 0.5 * (ahead - after).square().sum(dim=1).mean() + loss


def _ensemble(
    shape: tuple[int, ...], actions: ActionEncoder | None, *, models: int, width: int, latent: int
) -> nn.ModuleDict:
    """Return the fixed features and the forward models."""
    assert actions is not None
    target = encoder(shape, width, latent).requires_grad_(False)
    ensemble = nn.ModuleList(mlp(latent + actions.size, width, latent) for _ in range(models))
    return nn.ModuleDict({"target": target, "models": ensemble})


def _guesses(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """Return every model's prediction of φ(s′), (models, B, latent)."""
    inputs, ensemble = torch.cat([networks["target"](x), a], dim=1), networks["models"]
    assert isinstance(ensemble, nn.ModuleList)
    return torch.stack([model(inputs) for model in ensemble])


def _spread(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the variance of the predictions, mean over φ(s′), (B,)."""
    if not len(x):
        return x.new_zeros(0)  # because Torch warns of the variance of no rows
    return _guesses(networks, x, a).var(dim=0, correction=0).mean(dim=1)


def _ensemble_loss(networks: nn.ModuleDict, x: torch.Tensor, a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the models' mean squared error, summed over the models, which share no weights."""
    return (_guesses(networks, x, a) - networks["target"](y)).square().mean(dim=(1, 2)).sum()
