"""From a host's batch of observations or actions to tensors that networks read."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch

from payback.bonuses.observations import as_array, flattened, numbers_of, refuse_other_actions

LAYOUTS = ("HWC", "CHW")


class Sight:
    """Turn batches of observations into tensors of their own: vectors (B, D), images (B, C, H, W).

    The dtype is kept, because bytes take a quarter of the memory of floats until they are learned from.

    >>> Sight("RND")(np.zeros((2, 7, 7, 3), dtype=np.uint8)).shape
    torch.Size([2, 3, 7, 7])
    >>> Sight("RND")({"b": np.zeros((2, 3)), "a": np.zeros((2, 2, 2))}).shape
    torch.Size([2, 7])
    """

    def __init__(
        self,
        name: str,
        view: Callable[[Any], Any] | None = None,
        layout: str | None = None,
        device: torch.device | str = "cpu",
    ):
        if layout not in (None, *LAYOUTS):
            raise ValueError(f'{name}: layout is "HWC" (channels last), "CHW" (channels first) or None, got {layout!r}')
        self._name, self._view, self._layout, self._device = name, view, layout, device
        self._permute: bool | None = None

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return a copy, because hosts write the next observation into the same memory."""
        if self._view is not None:
            obs = self._view(obs)
        if type(obs) is not np.ndarray or obs.dtype.kind not in "fiub":
            obs = self._one_array(obs)
        if obs.ndim == 1:
            raise TypeError(
                f"{self._name} cannot read an observation of one number ({obs.dtype}): it takes vectors and images; "
                "for a Discrete space of n states pass view=lambda obs: np.eye(n)[obs]"
            )
        if obs.ndim > 4:
            raise TypeError(
                f"{self._name} cannot read observations of shape {obs.shape[1:]}: it takes vectors, images of two or "
                "three axes, and Dicts; pass view=, a function that flattens them"
            )
        if obs.ndim == 3:
            obs = obs[:, None]
        elif obs.ndim == 4 and self._channels_last(obs.shape[1:]):
            obs = obs.transpose(0, 3, 1, 2)
        if obs.dtype == np.bool_:
            obs = obs.view(np.uint8)  # because Torch does not subtract booleans
        elif obs.dtype == np.float64 or (obs.dtype.kind in "iu" and obs.dtype.itemsize > 1):
            obs = obs.astype(np.float32)
        # In a third of the time that torch.tensor(obs) takes; `to` copies nothing where the device is the CPU.
        return torch.from_numpy(obs.copy()).to(self._device)

    def _one_array(self, obs: Any) -> np.ndarray:
        _, found = numbers_of(self._name, obs)
        if len(found) == 1 and not isinstance(obs, (Mapping, tuple)):
            return found[0]
        return np.concatenate([flattened(array).astype(np.float32) for array in found], axis=1)

    def _channels_last(self, shape: tuple[int, ...]) -> bool:
        if self._permute is None:
            self._permute = _layout_of(self._name, shape, self._layout) == "HWC"
        return self._permute


def _layout_of(name: str, shape: tuple[int, ...], asked: str | None) -> str:
    """Return where the channels are: on the first or last axis, the one shorter than the other two."""
    last, first = shape[2] < min(shape[:2]), shape[0] < min(shape[1:])
    seen = "HWC" if last else "CHW" if first else None
    if asked is not None and seen not in (None, asked):
        raise ValueError(
            f"{name}: layout={asked!r} was asked for, but images of shape {shape} look like {seen}, because channels "
            f"are fewer than pixels; pass layout={seen!r}, or transpose the image"
        )
    if asked is None and seen is None:
        raise ValueError(
            f"{name}: images of shape {shape} do not show which axis has the channels; "
            'pass layout="HWC" (last) or layout="CHW" (first)'
        )
    return asked or seen or "HWC"


class Actions:
    """Turn batches of actions into (B, size) floats: one-hot for a Discrete space, flat for a Box or MultiBinary.

    >>> Actions("ICM", 3)(np.array([2, 0]), 2).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    def __init__(self, name: str, actions: Any, device: torch.device | str = "cpu"):
        n = getattr(actions, "n", actions)
        shape = getattr(actions, "shape", None)
        # MultiBinary has a whole number n as well, and the shape (n,).
        self.discrete = isinstance(n, (int, np.integer)) and not isinstance(n, bool) and shape in (None, ())
        if not self.discrete and (shape is None or getattr(actions, "nvec", None) is not None):
            raise TypeError(
                f"{name}: actions is the number of discrete actions, or a Discrete, Box or MultiBinary space, "
                f"got {type(actions).__name__}"
            )
        self.size = int(cast(Any, n)) if self.discrete else int(np.prod(shape or (1,)))
        if self.size < 1:
            raise ValueError(f"{name}: actions must be at least 1, got {actions}")
        self._name, self._device = name, device
        self._first = int(getattr(actions, "start", 0))

    def __call__(self, action: Any, B: int) -> torch.Tensor:
        """Return the actions of B environments as floats on the device."""
        array = as_array(action)
        rows = array.size if self.discrete or array.ndim == 0 else len(array)
        refuse_other_actions(self._name, None if action is None else rows, B)
        return self._one_hot(array) if self.discrete else self._flat(array, B)

    def _flat(self, array: np.ndarray, B: int) -> torch.Tensor:
        if array.size != B * self.size:
            raise ValueError(
                f"{self._name} needs actions of {self.size} numbers each, got an array of shape {array.shape}; "
                "is the space that of one environment?"
            )
        return torch.tensor(array.reshape(B, self.size), dtype=torch.float32, device=self._device)

    def _one_hot(self, array: np.ndarray) -> torch.Tensor:
        index = array.reshape(-1) - self._first
        if index.dtype.kind not in "iu" or index.min(initial=0) < 0 or index.max(initial=0) >= self.size:
            raise ValueError(
                f"{self._name}: actions must be whole numbers from {self._first} to {self._first + self.size - 1}, "
                f"got {array.tolist()}"
            )
        return torch.tensor(np.eye(self.size, dtype=np.float32)[index], device=self._device)
