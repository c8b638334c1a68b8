"""What all ready bonuses share: one size, rewards of a whole rollout, and a file to save to."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from payback.bonuses.observations import batch_size, rollout_flags, rows_at, valid_rows
from payback.core.state import read_npz, write_npz
from payback.core.validate import read_count

ALPHA = 0.02  # the default coefficient of every bonus
LIMIT = 10.0  # a normalised bonus pays at most this, times α
CLIP = 5.0  # whitened observations stay within ± this (Burda et al. 2018)
WARMUP = 256  # transitions during which a bonus of networks pays 0
FORMAT = 3  # the version of the file format


class Scale:
    """Divide a bonus by the root mean square of its earlier values: the one rule that gives α its meaning.

        F̂_t = min(F_t / √(mean of F² before step t), limit)

    Only earlier steps enter, so F̂ is causal. The mean stays in; `payback.center` removes it. During the first
    `warmup` transitions F̂ = 0, and F is measured from their second half on, when a network's observations are whitened
    on their own scale: the errors before are tiny. Before anything is measured F̂ = `first` · F.

    >>> scale = Scale()
    >>> scale(np.array([3.0])), scale.add(np.array([3.0])), scale(np.array([6.0])), scale(np.array([60.0]))
    (array([3.]), None, array([2.]), array([10.]))
    """

    def __init__(self, warmup: int = 0, limit: float = LIMIT, first: float = 1.0):
        self.warmup, self.limit, self.first = warmup, limit, first
        self.seen, self.measured, self.square = 0, 0, 0.0

    def __call__(self, F: np.ndarray) -> np.ndarray:
        """Return F̂ by the values added so far."""
        if self.seen < self.warmup:
            return np.zeros_like(F)
        return np.minimum(F / math.sqrt(self.square) if self.square > 0 else F * self.first, self.limit)

    def add(self, F: np.ndarray) -> None:
        """Take the values of valid rows into account from the next call on."""
        if len(F) and self.seen >= self.warmup // 2:
            self.measured += len(F)
            self.square += (float(F @ F) - len(F) * self.square) / self.measured
        self.seen += len(F)


class Options(TypedDict, total=False):
    """Options of every network bonus, in Torch and JAX."""

    normalise: bool  # divide F by the root mean square of all earlier F (`Scale`); default True
    warmup: int  # transitions that are paid 0: half of them set the scale of observations, half that of F; default 256
    clip: float  # upper limit of a normalised F, before α; default 10
    whiten: bool  # whiten observations by the statistics of all earlier ones and clip them to ±5; default True
    learn_every: int  # learn after this many calls, from their transitions; with 0, only `learn` trains; default 32
    share: float  # fraction of these transitions to learn from, drawn at random; default 0.25, as in CleanRL's RND
    batch_size: int  # most transitions per gradient step; default 256


def read_options(learn_every: int, share: float, batch_size: int, warmup: int, clip: float) -> None:
    """Refuse options that make no sense."""
    read_count("learn_every", learn_every, 0)
    read_count("batch_size", batch_size, 1)
    read_count("warmup", warmup, 0)
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    if not clip > 0:
        raise ValueError(f"clip must be larger than 0, got {clip!r}; clip=math.inf sets no limit")


class Bonus:
    """An intrinsic reward with a memory: call it on batches of transitions, or on a finished rollout.

        F_t = α · novelty_t / √(mean of novelty² before step t)

    A subclass returns the novelty of a batch from `_novelty`. With `normalise=False` it is paid as it is, times α.
    """

    episodic: bool = False
    """Whether it remembers the current episodes: if not, hosts that step one environment at a time share it."""

    def __init__(self, name: str, alpha: float, normalise: bool, scale: Scale, memory: Any = None):
        if not math.isfinite(alpha):
            raise ValueError(f"{name}: alpha must be a finite number, got {alpha!r}")
        self.name, self.alpha, self.normalise, self._scale = name, float(alpha), normalise, scale
        self._memory, self.episodic = memory, self.episodic or memory is not None

    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions."""
        valid = self._valid(info, next_obs)
        return self._paid(self._novelty(obs, action, next_obs, valid), valid)

    def of_rollout(self, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None) -> Any:
        """Return F (T, B) of a finished rollout: what T calls return, with a `reset` where an episode ends.

        `dones` (T, B) marks the ends of episodes, `valid` the rows that count. F is a Torch tensor where `next_obs` is.
        """
        ends, counted = rollout_flags(self.name, (obs, actions, next_obs), dones, valid)
        F = np.zeros(ends.shape)
        for t in range(len(ends)):
            s, a, then = (rows_at(part, t) for part in (obs, actions, next_obs))
            F[t] = self(s, a, then, {} if counted is None else {"valid": counted[t]})
            if ends[t].any():
                self.reset(ends[t])
        return as_tensor_like(next_obs, F)

    def bind(self, observation_space: Any, action_space: Any) -> None:
        """Learn the spaces of one environment; the adapters call this before the first step."""

    def reset(self, where: Any) -> None:
        """Forget the current episodes of the environments in the (B,) mask."""
        if self._memory is not None:
            self._memory.reset(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything the bonus has learned to an NPZ file. The path is used as given, with no suffix added."""
        write_npz(path, {"format": FORMAT, "kind": self.name, "sizes": self._sizes()}, self._arrays())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue exactly where the saved bonus was; its sizes must be the same."""
        not_ours = f"{path} is not a bonus that save wrote, or is damaged"
        (number, found, saved), arrays = read_npz(path, ["format", "kind", "sizes"], not_ours)
        if number != FORMAT:
            raise ValueError(f"{path} holds a bonus of format {number}, this version reads {FORMAT}")
        if found != self.name:
            raise ValueError(f"{path} holds the bonus {found}, not {self.name}; load it into a {found}")
        for name, size in json.loads(json.dumps(dict(self._sizes()))).items():
            if saved.get(name) != size:
                words = f"{name} = {saved.get(name)}, this one has {name} = {size}; create it with the saved sizes"
                raise ValueError(f"{path} holds a {found} with {words}")
        self._restore(arrays, str(path))

    def _valid(self, info: Any, next_obs: Any) -> np.ndarray | None:
        return valid_rows(info, batch_size(self.name, next_obs))

    def _paid(self, novelty: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
        """Return F of a batch, 0 in invalid rows, and take its novelty into account."""
        F = self.alpha * (self._scale(novelty) if self.normalise else novelty)
        self._scale.add(novelty if valid is None else novelty[valid])
        return F if valid is None else np.where(valid, F, 0.0)

    def _novelty(self, obs: Any, action: Any, next_obs: Any, valid: np.ndarray | None) -> np.ndarray:
        """Return the novelty of each row, float64 (B,), by earlier rows, then remember the valid ones."""
        raise NotImplementedError

    def _sizes(self) -> Mapping[str, Any]:
        """Return what a saved bonus must agree on."""
        return {}

    def _arrays(self) -> dict[str, np.ndarray]:
        scale = {"scale": np.array([self._scale.seen, self._scale.measured, self._scale.square])}
        return scale if self._memory is None else scale | self._memory._arrays()

    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        seen, measured, self._scale.square = arrays["scale"].tolist()
        self._scale.seen, self._scale.measured = int(seen), int(measured)
        if self._memory is not None:
            self._memory._restore(arrays)


def as_tensor_like(obs: Any, F: np.ndarray) -> Any:
    """Return rewards as a Torch tensor on the device of `obs` if that is one, else as they are."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(obs, torch.Tensor):
        return F
    return torch.as_tensor(F, dtype=torch.float32, device=obs.device)
