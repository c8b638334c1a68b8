"""Encode a host's batches of observations and actions as the tensors that networks read."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from payback.bonuses.observations import as_array, flat_rows, numbers_of, refuse_other_actions

NARROW = (torch.uint8, torch.int8, torch.float32, torch.float16)
"""Dtypes that are kept as they are; others become float32."""


class ObservationEncoder:
    """Encode batches of observations as tensors: vectors (B, D), images (B, C, H, W).

    Bytes stay bytes, because they take a quarter of the memory of floats until they are learned from. Tensors stay
    on their way to the device: nothing goes through the host.

    >>> ObservationEncoder("RND")(np.zeros((2, 7, 7, 3), dtype=np.uint8)).shape
    torch.Size([2, 3, 7, 7])
    >>> ObservationEncoder("RND")({"b": np.zeros((2, 3)), "a": np.zeros((2, 2, 2))}).shape
    torch.Size([2, 7])
    """

    def __init__(
        self,
        name: str,
        view: Callable[[Any], Any] | None = None,
        layout: str | None = None,
        device: torch.device | str = "cpu",
    ):
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
            rows = self._one_hot(rows)
        if rows.ndim > 4:
            raise TypeError(
                f"{self._name} cannot read observations of shape {tuple(rows.shape[1:])}: it takes vectors, images of "
                "two or three axes, and Dicts; pass view=, a function that flattens them"
            )
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
            obs = self._one_array(obs)
        if obs.dtype == np.bool_:
            obs = obs.view(np.uint8)  # because Torch does not subtract booleans
        elif obs.ndim > 1 and (obs.dtype == np.float64 or (obs.dtype.kind in "iu" and obs.dtype.itemsize > 1)):
            obs = obs.astype(np.float32)
        # Three times as fast as torch.tensor(obs); `to` copies nothing where the device is the CPU.
        return torch.from_numpy(obs.copy()).to(self._device)

    def _one_array(self, obs: Any) -> np.ndarray:
        if isinstance(obs, (Mapping, tuple)):
            return flat_rows(self._name, obs, np.float32)
        return numbers_of(self._name, obs)[0]

    def _one_hot(self, rows: torch.Tensor) -> torch.Tensor:
        if self._states is None or rows.dtype.is_floating_point:
            raise TypeError(
                f"{self._name} cannot read an observation of one number ({str(rows.dtype).removeprefix('torch.')}): "
                "it takes vectors and images; for a Discrete space of n states pass view=lambda obs: np.eye(n)[obs]"
            )
        n, start = self._states
        index = rows.to(torch.int64) - start
        if bool(((index < 0) | (index >= n)).any()):
            raise ValueError(f"{self._name}: observations must be whole numbers from {start} to {start + n - 1}")
        return torch.nn.functional.one_hot(index, n).float()


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


def _is_discrete(space: Any) -> bool:
    """Return whether it is a number or a Discrete space; MultiBinary has a whole number n as well, and shape (n,)."""
    n, shape = getattr(space, "n", space), getattr(space, "shape", None)
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and shape in (None, ())


class ActionEncoder:
    """Encode batches of actions as (B, size) floats: one-hot for a Discrete space, flat for a Box or MultiBinary.

    >>> ActionEncoder("ICM", 3)(np.array([2, 0]), 2).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    def __init__(self, name: str, actions: Any, device: torch.device | str = "cpu"):
        shape = getattr(actions, "shape", None)
        self.discrete = _is_discrete(actions)
        if not self.discrete and (shape is None or getattr(actions, "nvec", None) is not None):
            raise TypeError(
                f"{name}: actions is the number of discrete actions, or a Discrete, Box or MultiBinary space, "
                f"got {type(actions).__name__}"
            )
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
        return (self._one_hot(array) if self.discrete else self._flat(array, B)).to(self._device)

    def _flat(self, array: torch.Tensor, B: int) -> torch.Tensor:
        if array.numel() != B * self.size:
            raise ValueError(
                f"{self._name} needs actions of {self.size} numbers each, got an array of shape {tuple(array.shape)}; "
                "is the space that of one environment?"
            )
        return array.reshape(B, self.size).to(torch.float32, copy=True)

    def _one_hot(self, array: torch.Tensor) -> torch.Tensor:
        index = array.reshape(-1)
        whole = not (index.dtype.is_floating_point or index.dtype == torch.bool)
        index = index.to(torch.int64) - self._first
        if not whole or bool(((index < 0) | (index >= self.size)).any()):
            raise ValueError(
                f"{self._name}: actions must be whole numbers from {self._first} to {self._first + self.size - 1}, "
                f"got {array.tolist() if array.numel() <= 32 else 'others'}"
            )
        return torch.nn.functional.one_hot(index, self.size).float()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        return {"action_space": np.array([self.size, self.discrete, self._first])}

    @classmethod
    def restored(cls, name: str, arrays: dict[str, np.ndarray], device: torch.device | str) -> ActionEncoder:
        """Return the encoder that was saved, for a bonus that has not seen its environment yet."""
        encoder = cls(name, 1, device)
        encoder.size, discrete, encoder._first = arrays["action_space"].tolist()
        encoder.discrete = bool(discrete)
        return encoder
