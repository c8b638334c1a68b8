"""The networks of all bonuses: MLPs for vectors, a small CNN before them for images, and models of the dynamics."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from payback.bonuses.torch.encoders import ActionEncoder


class Layers(nn.Sequential):
    """Apply layers one after the other, without looking for hooks, which takes a quarter of a small pass."""

    def __call__(self, input: torch.Tensor) -> torch.Tensor:
        """Return the output of the last layer."""
        return self.forward(input)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the output of the last layer."""
        for layer in self._modules.values():
            assert layer is not None
            input = layer.forward(input)
        return input


def mlp(*sizes: int) -> Layers:
    """Return linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return Layers(*layers[:-1])


def encoder(shape: tuple[int, ...], *sizes: int, channels: int = 32) -> Layers:
    """Return a network from observations of this shape through hidden `sizes` to the last of them.

    Images (C, H, W) pass three convolutions of 3×3 with stride 2 first, as in RIDE and NovelD: 7×7 views become 1×1,
    84×84 pixels 11×11.

    >>> encoder((3, 7, 7), 64, 16)(torch.zeros(2, 3, 7, 7)).shape
    torch.Size([2, 16])
    """
    if len(shape) == 1:
        return mlp(shape[0], *sizes)
    convolutions: list[nn.Module] = []
    depth, *pixels = shape
    for _ in range(3):
        convolutions += [nn.Conv2d(depth, channels, 3, stride=2, padding=1), nn.ReLU(inplace=True)]
        depth, pixels = channels, [(side + 1) // 2 for side in pixels]
    return Layers(*convolutions, nn.Flatten(), *mlp(channels * math.prod(pixels), *sizes))


class InverseModel(Layers):
    """Predict an action from φ(s) and φ(s′)."""

    def __init__(self, discrete: bool, *sizes: int):
        super().__init__(*mlp(*sizes))
        self.discrete = discrete

    def error(self, before: torch.Tensor, after: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of discrete actions, or the mean squared error of continuous ones."""
        guess = self(torch.cat([before, after], dim=1))
        return functional.cross_entropy(guess, a) if self.discrete else functional.mse_loss(guess, a)


def dynamics(
    shape: tuple[int, ...], actions: ActionEncoder | None, *, width: int, latent: int, forward: bool = True
) -> nn.ModuleDict:
    """Return φ(s), the forward model g(φ(s), a) → φ(s′) and the inverse model (φ(s), φ(s′)) → a."""
    assert actions is not None
    networks: dict[str, nn.Module] = {"encoder": encoder(shape, width, width, latent)}
    if forward:
        networks["model"] = mlp(latent + actions.size, width, latent)
    networks["inverse"] = InverseModel(actions.discrete, 2 * latent, width, actions.size)
    return nn.ModuleDict(networks)


def initialise(network: nn.Module) -> None:
    """Draw orthogonal weights of gain √2 and set biases to 0, as RND's authors do."""
    for layer in network.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)


def read_device(name: str, device: str | torch.device) -> torch.device:
    """Return the device, or raise if this Torch does not have it."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        there = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise ValueError(f"{name}: the device {str(device)!r} is not there; this Torch has {there}") from error
    return found
