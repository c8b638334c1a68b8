"""The machine that all network bonuses share: read, pay, remember, learn, save. A bonus adds its `Method`."""

# Torch's fork_rng, manual_seed, backward and Optimizer.step have parameters without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from payback.bonuses.observations import valid_rows
from payback.bonuses.saved import read, write
from payback.bonuses.torch.learning import Learning
from payback.bonuses.torch.method import Method
from payback.bonuses.torch.networks import initialise, read_device
from payback.bonuses.torch.running import RootMeanSquare, Whitening
from payback.bonuses.torch.sight import Actions, Sight
from payback.core.arrays import all_finite
from payback.core.validate import read_count

_with_gradients = torch.inference_mode(False)
"""Hosts may collect in inference mode, as rsl_rl does, or without gradients, which learning needs."""


class Curiosity:
    """An intrinsic reward made of networks: call it on batches of transitions, and it trains itself.

    A call reads, then pays, then learns: statistics and weights are those of earlier calls. Invalid rows are paid 0,
    enter no statistic and are not learned from. A bonus of your own is a `Method` of its networks, formula and loss.

    >>> from payback.bonuses.torch import RND
    >>> bonus = RND(learn_every=0)
    >>> type(bonus).__name__, bonus(None, None, np.eye(3), {})
    ('Curiosity', array([0., 0., 0.]))
    >>> bonus.learn((None, None, np.eye(3))) > 0
    True
    """

    def __init__(
        self,
        method: Method,
        *,
        alpha: float,
        rate: float,
        normalise: bool = True,
        learn_every: int = 32,
        share: float = 0.25,
        batch_size: int = 256,
        whiten: bool = True,
        view: Callable[[Any], Any] | None = None,
        layout: str | None = None,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ):
        name = method.name
        if not 0 < share <= 1:
            raise ValueError(f"{name}: share must lie in (0, 1], got {share!r}")
        self.method, self.alpha, self.normalise, self.whiten = method, float(alpha), normalise, whiten
        self._device, self._seed, self._rate = read_device(name, device), seed, rate
        self._sight = Sight(name, view, layout, self._device)
        self._actions = None if method.actions is None else Actions(name, method.actions, self._device)
        self._learning = Learning(
            read_count("learn_every", learn_every, 0), share, read_count("batch_size", batch_size, 1), seed
        )
        self._scale = RootMeanSquare()
        self._shape: tuple[int, ...] | None = None
        self.networks = nn.ModuleDict()
        """Made at the first call, when the observations' shape is known."""

    @property
    def episodic(self) -> bool:
        """Whether it remembers the episodes under way; if not, RLlib's environments share it."""
        return self.method.memory is not None

    @_with_gradients
    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions, then learn from them if it is time."""
        batch = self._read(obs, action, next_obs)
        valid = valid_rows(info, len(batch[2]))
        with torch.inference_mode():
            novelty = self.method.novelty(self.networks, *self._whitened(batch)).cpu().numpy().astype(np.float64)
            self._refuse_not_finite(novelty, valid)
            batch = batch if valid is None else self._rows(batch, valid)
            if self.whiten:
                self._whitening.add(batch[2])
        memory = self.method.memory
        F = novelty if memory is None else memory.pay(novelty, obs, next_obs, valid)
        paid = self.alpha * (self._scale(F) if self.normalise else F)
        paid = paid if valid is None else np.where(valid, paid, 0.0)
        counted = F if valid is None else F[valid]
        self._scale.add(counted)
        if len(counted) and self._learning.add(batch):
            for part in self._learning.draw():
                self._step(part)
        return paid

    @_with_gradients
    def learn(self, batch: tuple[Any, Any, Any]) -> float:
        """Take one gradient step on (obs, action, next_obs), each of N rows, and return the loss.

        With `learn_every=0` this is the only training; observations are whitened by the statistics of the calls.
        """
        return self._step(self._read(*batch))

    def reset(self, where: Any) -> None:
        """Forget what belongs to the episodes of the environments in the (B,) mask."""
        if self.method.memory is not None:
            self.method.memory.reset(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, statistics, optimiser, random draws and what is yet to be learned to an NPZ file."""
        arrays = {"shape": np.array(self._shape or (), dtype=np.int64), **self._learning.arrays()}
        arrays["scale"] = np.array([self._scale.square, self._scale.count])
        if self._shape is not None:
            arrays |= {f"network.{key}": value.cpu().numpy() for key, value in self.networks.state_dict().items()}
            moments = {"mean": self._whitening.mean.cpu().numpy(), "var": self._whitening.var.cpu().numpy()}
            arrays |= {**moments, "seen": np.array(self._whitening.count)}
            for i, state in self._optimiser.state_dict()["state"].items():
                arrays |= {f"optimiser.{i}.{key}": value.cpu().numpy() for key, value in state.items()}
        if self.method.memory is not None:
            arrays |= self.method.memory.arrays()
        write(path, self.method.name, self.method.sizes, arrays)

    @_with_gradients
    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on exactly where the saved bonus was; its sizes and the observations' shape must be the same."""
        arrays = read(path, self.method.name, self.method.sizes)
        shape = tuple(arrays["shape"].tolist())
        if self._shape is not None and shape and shape != self._shape:
            raise ValueError(
                f"{path} holds a {self.method.name} for observations of shape {shape}, this one sees {self._shape}"
            )
        self._learning.restore(arrays, self._device)
        self._scale.square, self._scale.count = float(arrays["scale"][0]), int(arrays["scale"][1])
        self._shape = None
        if shape:
            self._build(shape)
            self._restore_networks(arrays)
        if self.method.memory is not None:
            self.method.memory.restore(arrays)

    def _read(self, obs: Any, action: Any, next_obs: Any) -> tuple[Any, Any, torch.Tensor]:
        y = self._sight(next_obs)
        if self._shape is None:
            self._build(tuple(y.shape[1:]))
        if tuple(y.shape[1:]) != self._shape:
            raise ValueError(
                f"{self.method.name} was made for observations of shape {self._shape}, got {tuple(y.shape[1:])}"
            )
        x = self._sight(obs) if self.method.looks_back else None
        return x, None if self._actions is None else self._actions(action, len(y)), y

    def _build(self, shape: tuple[int, ...]) -> None:
        # Drawn on the CPU whatever Torch's default device is, so that a seed means the same weights on every device.
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(self._seed)
            networks = self.method.build(shape, 0 if self._actions is None else self._actions.size)
            initialise(networks)
        self.networks, self._shape = networks.to(self._device), shape
        self._whitening = Whitening(shape, self._device)
        trained = [weight for weight in networks.parameters() if weight.requires_grad]
        self._optimiser = torch.optim.Adam(trained, lr=self._rate)

    def _step(self, batch: tuple[Any, Any, torch.Tensor]) -> float:
        loss = self.method.loss(self.networks, *self._whitened(batch))
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return float(loss.detach())

    def _whitened(self, batch: tuple[Any, Any, torch.Tensor]) -> tuple[Any, Any, torch.Tensor]:
        see = self._whitening if self.whiten else torch.Tensor.float
        return None if batch[0] is None else see(batch[0]), batch[1], see(batch[2])

    def _rows(self, batch: tuple[Any, Any, torch.Tensor], valid: np.ndarray) -> tuple[Any, Any, torch.Tensor]:
        rows = torch.as_tensor(valid, device=self._device)
        x, a, y = (None if part is None else part[rows] for part in batch)
        assert y is not None
        return x, a, y

    def _refuse_not_finite(self, novelty: np.ndarray, valid: np.ndarray | None) -> None:
        if all_finite(novelty):
            return
        bad = ~np.isfinite(novelty).reshape(len(novelty), -1).all(axis=1)
        bad = bad if valid is None else bad & valid
        if bad.any():
            raise ValueError(
                f"{self.method.name}: the bonus of environment {int(np.flatnonzero(bad)[0])} is not finite, because "
                "its observation is not (or the weights have diverged: lower the rate)"
            )

    def _restore_networks(self, arrays: dict[str, np.ndarray]) -> None:
        saved = {
            key.removeprefix("network."): torch.from_numpy(value)
            for key, value in arrays.items()
            if key.startswith("network.")
        }
        self.networks.load_state_dict(saved)
        self._whitening.mean = torch.as_tensor(arrays["mean"], device=self._device)
        self._whitening.var = torch.as_tensor(arrays["var"], device=self._device)
        self._whitening.count = int(arrays["seen"])
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in arrays.items():
            if key.startswith("optimiser."):
                _, i, part = key.split(".")
                state.setdefault(int(i), {})[part] = torch.from_numpy(value)
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": state})
