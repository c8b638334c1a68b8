"""Encode a host's batches of observations and actions as the tensors that networks read."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from payback.bonuses.observations import View, as_array, flat_rows, numbers_of, refuse_other_actions

NARROW = (torch.uint8, torch.int8, torch.float32, torch.float16)  # kept as they are; others become float32


class ObservationEncoder:
    """Encode batches of observations as tensors: vectors (B, D), images (B, C, H, W).

    Bytes stay bytes, because they take a quarter of the memory of floats until they are learned from. Tensors stay
    on their way to the device: nothing goes through the host.
    """

    def __init__(self, name: str, view: View | None, layout: str | None, device: torch.device):
        if layout not in (None, "HWC", "CHW"):
            raise ValueError(f'{name}: layout is "HWC" (channels last), "CHW" (channels first) or None, got {layout!r}')
        self._name, self._view, self._layout, self._device = name, view, layout, device
        self._channels_are_last: bool | None = None
        self._states: tuple[int, int] | None = None

    def bind(self, space: Any) -> None:
        """Encode a Discrete space's states one-hot; other spaces show their form in each observation."""
        if self._view is None and hasattr(space, "n") and _is_discrete(space):
            self._states = int(space.n), int(getattr(space, "start", 0))

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return a copy, because hosts write the next observation into the same memory."""
        rows = self._as_tensor(obs if self._view is None else self._view(obs))
        if rows.ndim == 1:
            if self._states is None or rows.dtype.is_floating_point:
                what = f"an observation of one number ({str(rows.dtype).removeprefix('torch.')}): it takes vectors"
                remedy = "for a Discrete space of n states pass view=lambda obs: np.eye(n)[obs]"
                raise TypeError(f"{self._name} cannot read {what} and images; {remedy}")
            return _one_hot(self._name, "observations", rows.to(torch.int64), *self._states)
        if rows.ndim > 4:
            takes = "it takes vectors, images of two or three axes and Dicts; pass view=, a function that flattens them"
            raise TypeError(f"{self._name} cannot read observations of shape {tuple(rows.shape[1:])}: {takes}")
        if rows.ndim == 3:
            return rows[:, None]
        if rows.ndim == 4 and self._channels_are_last is None:
            self._channels_are_last = _layout_of(self._name, tuple(rows.shape[1:]), self._layout) == "HWC"
        return rows.permute(0, 3, 1, 2) if rows.ndim == 4 and self._channels_are_last else rows

    def _as_tensor(self, obs: Any) -> torch.Tensor:
        if isinstance(obs, torch.Tensor) and not obs.dtype.is_complex:
            rows = obs.detach()
            dtype = torch.uint8 if rows.dtype == torch.bool else rows.dtype if rows.dtype in NARROW else torch.float32
            if rows.ndim == 1:
                dtype = rows.dtype  # numbers of states, or a mistake that is named by its dtype
            return rows.to(self._device, dtype, copy=True)
        if type(obs) is not np.ndarray or obs.dtype.kind not in "fiub":
            in_parts = isinstance(obs, (Mapping, tuple))
            obs = flat_rows(self._name, obs, np.float32) if in_parts else numbers_of(self._name, obs)[0]
        if obs.dtype == np.bool_:
            obs = obs.view(np.uint8)  # because Torch does not subtract booleans
        elif obs.ndim > 1 and (obs.dtype == np.float64 or (obs.dtype.kind in "iu" and obs.dtype.itemsize > 1)):
            obs = obs.astype(np.float32)
        # Three times as fast as torch.tensor(obs); `to` copies nothing where the device is the CPU.
        return torch.from_numpy(obs.copy()).to(self._device)


def _layout_of(name: str, shape: tuple[int, ...], asked: str | None) -> str:
    """Return where the channels are: on the first or last axis, the one shorter than the other two."""
    last, first = shape[2] < min(shape[:2]), shape[0] < min(shape[1:])
    seen = "HWC" if last else "CHW" if first else None
    if asked is not None and seen not in (None, asked):
        looks = f"images of shape {shape} look like {seen}; pass layout={seen!r}, or transpose the image"
        raise ValueError(f"{name}: layout={asked!r} was asked for, but {looks}")
    if asked is None and seen is None:
        remedy = 'pass layout="HWC" (last) or layout="CHW" (first)'
        raise ValueError(f"{name}: images of shape {shape} do not show which axis has the channels; {remedy}")
    return asked or seen or "HWC"


def _one_hot(name: str, what: str, numbers: torch.Tensor, n: int, first: int) -> torch.Tensor:
    """Return n floats for each whole number, of which `first` is the lowest."""
    index = numbers.to(torch.int64) - first
    no_numbers = numbers.dtype.is_floating_point or numbers.dtype == torch.bool
    if no_numbers or bool(((index < 0) | (index >= n)).any()):
        got = f"got {numbers.tolist() if numbers.numel() <= 32 else 'others'}"
        raise ValueError(f"{name}: {what} must be whole numbers from {first} to {first + n - 1}, {got}")
    return torch.nn.functional.one_hot(index, n).float()


def _is_discrete(space: Any) -> bool:
    """Return whether it is a number or a Discrete space; MultiBinary has a whole number n as well, and shape (n,)."""
    n, shape = getattr(space, "n", space), getattr(space, "shape", None)
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and shape in (None, ())


class ActionEncoder:
    """Encode batches of actions as (B, size) floats: one-hot for a Discrete space, flat for a Box or MultiBinary."""

    def __init__(self, name: str, actions: Any, device: torch.device | str = "cpu"):
        shape = getattr(actions, "shape", None)
        self.discrete = _is_discrete(actions)
        if not self.discrete and (shape is None or getattr(actions, "nvec", None) is not None):
            takes = "the number of discrete actions, or a Discrete, Box or MultiBinary space"
            raise TypeError(f"{name}: actions is {takes}, got {type(actions).__name__}")
        self.size = int(getattr(actions, "n", actions)) if self.discrete else int(np.prod(shape or (1,)))
        if self.size < 1:
            raise ValueError(f"{name}: actions must be at least 1, got {actions}")
        self._name, self._device = name, device
        self._first = int(getattr(actions, "start", 0))

    def __call__(self, action: Any, B: int) -> torch.Tensor:
        """Return the actions of B environments as floats on the device."""
        if action is None:
            refuse_other_actions(self._name, None, B)
        array = action.detach() if isinstance(action, torch.Tensor) else torch.from_numpy(np.array(as_array(action)))
        refuse_other_actions(self._name, array.numel() if self.discrete or array.ndim == 0 else len(array), B)
        if self.discrete:
            return _one_hot(self._name, "actions", array.reshape(-1), self.size, self._first).to(self._device)
        if array.numel() != B * self.size:
            got = f"got an array of shape {tuple(array.shape)}; is the space that of one environment?"
            raise ValueError(f"{self._name} needs actions of {self.size} numbers each, {got}")
        return array.reshape(B, self.size).to(torch.float32, copy=True).to(self._device)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"action_space": np.array([self.size, self.discrete, self._first])}

    @classmethod
    def restored(cls, name: str, arrays: dict[str, np.ndarray], device: torch.device | str) -> ActionEncoder:
        """Return the encoder that was saved, for a bonus that has not seen its environment yet."""
        size, discrete, first = arrays["action_space"].tolist()
        return cls(name, SimpleNamespace(n=size, start=first, shape=() if discrete else (size,)), device)
