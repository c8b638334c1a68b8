"""What makes one network bonus differ from another, and the options that all of them take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import numpy as np
import torch
from torch import nn


class Memory(Protocol):
    """What a bonus remembers of the episodes under way, and what it pays by that."""

    def pay(self, novelty: np.ndarray, /, obs: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        """Return F (B,) from what `Method.novelty` returned; invalid rows leave the memory as it is."""
        ...

    def reset(self, where: Any) -> None:
        """Forget the episodes of the environments in the (B,) mask."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        ...

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what was saved."""
        ...


@dataclass(frozen=True, kw_only=True)
class Method:
    """What one intrinsic reward is: its networks, its formula and its loss.

    x, a, y stand for s, a, s′: whitened observations and encoded actions, (B, …); x and a are None without `actions`
    or `looks_back`.
    """

    name: str
    sizes: Mapping[str, Any]
    """Saved with the bonus and compared when it is loaded."""
    build: Callable[[tuple[int, ...], int], nn.ModuleDict]
    """From an observation's shape and the actions' size to the networks; those without gradient stay as drawn."""
    novelty: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → (B,), or what `memory.pay` takes."""
    loss: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → a number to make small."""
    memory: Memory | None = None
    actions: Any = None
    """A number of discrete actions or an action space, where the networks read actions."""
    looks_back: bool = False
    """Whether the networks read s as well as s′."""


class Options(TypedDict, total=False):
    """What every network bonus takes beside its own sizes."""

    learn_every: int
    """Learn after so many calls, from the transitions of those calls; 0 leaves it to `learn`. 32."""
    share: float
    """The share of these transitions that is learned from, drawn at random. 0.25, as in CleanRL's RND."""
    batch_size: int
    """At most so many transitions per gradient step. 256."""
    normalise: bool
    """Divide F by the root mean square of all earlier F. True, False for RIDE and NovelD."""
    whiten: bool
    """Whiten observations by the statistics of all earlier ones, clipped to ±5. True."""
    view: Callable[[Any], Any] | None
    """From a batch of observations to the array that the networks see, for instance `lambda obs: obs["image"]`."""
    layout: str | None
    """Where an image's channels are: "HWC", "CHW", or None to tell by its shape."""
    device: str | torch.device
    seed: int
    """Repeats weights and the draw of transitions; Torch's own generator is left alone."""
