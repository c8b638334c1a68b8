"""The network bonuses: RND, NovelD, ICM, RIDE, E3B and Disagreement, each a formula and a loss on its networks.

`actions` is the action space of one environment, or a number of discrete actions; an adapter passes its environment's.
Visits are counted as in `EpisodicCount`, by `key` of one observation.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any, Unpack, cast

import torch
from torch import Tensor, nn

from payback.bonuses.bonus import ALPHA
from payback.bonuses.observations import Key
from payback.bonuses.torch.engine import Method, NetworkBonus, Options
from payback.bonuses.torch.memory import Ellipsoid, PerVisit
from payback.core.validate import read_count

# With AVX-512, Torch's own product of float32 matrices takes twice as long on AMD's processors as oneDNN's, which
# compiles a kernel for each number of rows: hence multiples of a block only.
ONEDNN, BLOCK = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512", 64


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
    outside the guarantee. F hardly changes within an episode: with GRM, use `payback.bonuses.episodic(RND())`.

    >>> import numpy as np
    >>> bonus, obs = RND(normalise=False, learn_every=1, share=1.0), np.eye(4, dtype=np.float32)
    >>> F = [float(bonus(obs, None, obs, {})[0]) for _ in range(50)]
    >>> F[-1] < 0.5 * F[1]
    True
    """
    sizes = {"width": width, "latent": latent, "deeper": read_count("deeper", deeper, 0)}
    method = Method("RND", sizes, partial(_distillation, **sizes), _error, _error_loss)
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

    ν is the error of `RND` and c the `margin`. The authors clip the total reward to ±1, which breaks the repayment.

    >>> import numpy as np
    >>> bonus, obs = NovelD(), np.eye(3, dtype=np.float32)
    >>> bonus(obs, None, obs, {})
    array([0., 0., 0.])
    """
    sizes = {"width": width, "latent": latent}
    build, novelty = partial(_distillation, **sizes), partial(_difference, margin=margin)
    memory = PerVisit("NovelD", key, first_only=True)
    method = Method("NovelD", sizes, build, novelty, _error_loss, memory, looks_back=True)
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

    φ learns to predict a_t from s_t and s_{t+1}, so it can ignore noise. `forward` and `inverse` are β and 1 − β.

    >>> import numpy as np
    >>> bonus, obs = ICM(actions=2), np.ones((4, 3), np.float32)
    >>> bonus(obs, np.array([0, 1, 0, 1]), obs, {}).shape
    (4,)
    """
    sizes = {"width": width, "latent": latent}
    build, loss = partial(_dynamics, **sizes), partial(_dynamics_loss, forward=forward, inverse=inverse)
    method = Method("ICM", sizes, build, _surprise, loss, reads_actions=True, looks_back=True)
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
    sizes = {"width": width, "latent": latent}
    build, loss = partial(_dynamics, **sizes), partial(_dynamics_loss, forward=forward, inverse=inverse)
    memory = PerVisit("RIDE", key)
    method = Method("RIDE", sizes, build, _impact, loss, memory, reads_actions=True, looks_back=True)
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


def E3B(  # noqa: N802  the method's name
    actions: Any = None,
    alpha: float = ALPHA,
    *,
    ridge: float = 0.1,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> NetworkBonus:
    """Pay for features that this episode has not seen yet, as an ellipsoid measures it (Henaff et al. 2022).

        F_t = α φ(s_{t+1})ᵀ C⁻¹ φ(s_{t+1}),   C = λI + Σ φφᵀ over this episode's earlier s′,  λ the `ridge`

    φ learns as in `ICM`; C keeps each φ as it was. Take more features (`latent`) than an episode has different views.

    >>> import numpy as np
    >>> bonus, obs = E3B(actions=2, normalise=False), np.ones((1, 3), np.float32)
    >>> first, second = (float(bonus(obs, np.array([0]), obs, {})[0]) for _ in range(2))
    >>> second < first
    True
    """
    sizes = {"width": width, "latent": latent}
    build, loss = partial(_dynamics, forward=False, **sizes), partial(_dynamics_loss, forward=0.0, inverse=1.0)
    memory = Ellipsoid(latent, ridge)
    method = Method("E3B", sizes, build, _features, loss, memory, reads_actions=True, looks_back=True)
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
    sizes = {"models": read_count("models", models, 2), "width": width, "latent": latent}
    build = partial(_ensemble, **sizes)
    method = Method("Disagreement", sizes, build, _spread, _ensemble_loss, reads_actions=True, looks_back=True)
    return NetworkBonus(method, actions, alpha=alpha, rate=rate, **options)


class Layers(nn.Sequential):
    """Apply layers one after the other, without looking for hooks, which takes a quarter of a small pass."""

    def __call__(self, input: Tensor) -> Tensor:
        """Return the output of the last layer, by oneDNN where that is faster."""
        blocks = ONEDNN and len(input) % BLOCK == 0 < len(input) and input.device.type == "cpu"
        output = input.to_mkldnn() if blocks else input
        for layer in self:
            output = layer.forward(output)
        return output.to_dense() if blocks else output


def _mlp(*sizes: int) -> Layers:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return Layers(*layers[:-1])


def _encoder(shape: tuple[int, ...], *sizes: int) -> Layers:
    """Return a network from observations of this shape through hidden `sizes` to the last of them."""
    if len(shape) == 1:
        return _mlp(shape[0], *sizes)
    # Images (C, H, W) pass three convolutions as in RIDE and NovelD: 7×7 views become 1×1, 84×84 pixels 11×11.
    convolutions: list[nn.Module] = []
    depth, *pixels = shape
    for _ in range(3):
        convolutions += [nn.Conv2d(depth, 32, 3, stride=2, padding=1), nn.ReLU(inplace=True)]
        depth, pixels = 32, [(side + 1) // 2 for side in pixels]
    return Layers(*convolutions, nn.Flatten(), *_mlp(depth * math.prod(pixels), *sizes))


def _distillation(shape: tuple[int, ...], actions: Any, width: int, latent: int, deeper: int = 2) -> nn.ModuleDict:
    """Return the fixed random network and its predictor, which has `deeper` layers more."""
    target = _encoder(shape, width, latent).requires_grad_(False)
    return nn.ModuleDict({"target": target, "predictor": _encoder(shape, *[width] * (1 + deeper), latent)})


def _dynamics(shape: tuple[int, ...], actions: Any, width: int, latent: int, forward: bool = True) -> nn.ModuleDict:
    """Return φ(s), the forward model g(φ(s), a) → φ(s′), and the inverse model (φ(s), φ(s′)) → a with its loss."""
    networks: dict[str, nn.Module] = {"encoder": _encoder(shape, width, width, latent)}
    if forward:
        networks["model"] = _mlp(latent + actions.size, width, latent)
    networks["inverse"] = _mlp(2 * latent, width, actions.size)
    networks["inverse_loss"] = nn.CrossEntropyLoss() if actions.discrete else nn.MSELoss()
    return nn.ModuleDict(networks)


def _ensemble(shape: tuple[int, ...], actions: Any, models: int, width: int, latent: int) -> nn.ModuleDict:
    target = _encoder(shape, width, latent).requires_grad_(False)
    ensemble = nn.ModuleList(_mlp(latent + actions.size, width, latent) for _ in range(models))
    return nn.ModuleDict({"target": target, "models": ensemble})


def _error(networks: nn.ModuleDict, x: Any, a: Any, y: Tensor) -> Tensor:
    return (networks["predictor"](y) - networks["target"](y)).square().sum(dim=1)


def _error_loss(networks: nn.ModuleDict, x: Any, a: Any, y: Tensor) -> Tensor:
    """Return the mean squared error per feature, so that the rate means the same for every latent size."""
    return (networks["predictor"](y) - networks["target"](y)).square().mean()


def _difference(networks: nn.ModuleDict, x: Tensor, a: Any, y: Tensor, margin: float) -> Tensor:
    before, after = _error(networks, x, a, torch.cat([x, y])).chunk(2)
    return (after - margin * before).clamp(min=0)


def _surprise(networks: nn.ModuleDict, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (networks["model"](torch.cat([before, a], dim=1)) - after).square().sum(dim=1)


def _impact(networks: nn.ModuleDict, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    return (after - before).square().sum(dim=1).sqrt()


def _features(networks: nn.ModuleDict, x: Any, a: Any, y: Tensor) -> Tensor:
    return networks["encoder"](y)


def _dynamics_loss(networks: nn.ModuleDict, x: Tensor, a: Tensor, y: Tensor, forward: float, inverse: float) -> Tensor:
    """Return  forward · ½‖g(φ(s), a) − φ(s′)‖² + inverse · (error of a predicted from φ(s), φ(s′))."""
    before, after = networks["encoder"](torch.cat([x, y])).chunk(2)
    loss = inverse * networks["inverse_loss"](networks["inverse"](torch.cat([before, after], dim=1)), a)
    if not forward:
        return loss
    ahead = networks["model"](torch.cat([before, a], dim=1))
    return forward * 0.5 * (ahead - after).square().sum(dim=1).mean() + loss


def _guesses(networks: nn.ModuleDict, x: Tensor, a: Tensor) -> Tensor:
    """Return every model's prediction of φ(s′), (models, B, latent)."""
    inputs, models = torch.cat([networks["target"](x), a], dim=1), cast(nn.ModuleList, networks["models"])
    return torch.stack([model(inputs) for model in models])


def _spread(networks: nn.ModuleDict, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
    """Return the variance of the predictions, mean over φ(s′), (B,)."""
    if not len(x):  # Torch warns of the variance of no rows
        return x.new_zeros(0)
    return _guesses(networks, x, a).var(dim=0, correction=0).mean(dim=1)


def _ensemble_loss(networks: nn.ModuleDict, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
    """Return the models' mean squared error, summed over the models, which share no weights."""
    return (_guesses(networks, x, a) - networks["target"](y)).square().mean(dim=(1, 2)).sum()
