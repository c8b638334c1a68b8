"""What makes one network bonus differ from another, what it remembers of an episode, and when it learns."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np
import torch
from torch import nn

from payback.bonuses.torch.encoders import ActionEncoder


class Batch(NamedTuple):
    """s, a and s′ as tensors of N rows, not yet whitened; None where a bonus does not read it."""

    x: torch.Tensor | None
    a: torch.Tensor | None
    y: torch.Tensor

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """Apply a function to each tensor."""
        return Batch(*(None if part is None else function(part) for part in self))  # type: ignore[arg-type]


class Rows(NamedTuple):
    """n steps of B environments, as the host has them: observations (n·B, …), and flags (n, B)."""

    obs: Any
    next_obs: Any
    ends: np.ndarray | None = None
    valid: np.ndarray | None = None


class Memory(Protocol):
    """What a bonus remembers of the current episodes, and the F that follows from it."""

    def pay(self, novelty: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Return F (n, B) from what `Method.novelty` returned, (n, B, …); invalid rows leave the memory as it is."""
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

    x, a, y stand for s, a, s′: whitened observations and encoded actions, (B, …).
    """

    name: str
    sizes: Mapping[str, Any]
    """Saved with the bonus and compared when it is loaded."""
    build: Callable[[tuple[int, ...], ActionEncoder | None], nn.ModuleDict]
    """From an observation's shape and the action encoder to the networks; those without gradient stay as drawn."""
    novelty: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → (B,), or what `memory.pay` takes."""
    loss: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → the number to minimise."""
    memory: Memory | None = None
    reads_actions: bool = False
    looks_back: bool = False
    """Whether the networks read s as well as s′."""


class Options(TypedDict, total=False):
    """The options of every network bonus, beside its own sizes."""

    normalise: bool
    """Divide F by the root mean square of all earlier F (`payback.bonuses.bonus.Scale`). True."""
    warmup: int
    """Pay 0 for this many transitions: the first half sets the scale of observations, the second that of F. 256."""
    clip: float
    """Limit normalised F to this, before α. 10."""
    whiten: bool
    """Whiten observations by the statistics of all earlier ones, clipped to ±5. True."""
    learn_every: int
    """Learn after this many calls, from the transitions of those calls; 0 leaves it to `learn`. 32."""
    share: float
    """The share of these transitions that is learned from, drawn at random. 0.25, as in CleanRL's RND."""
    batch_size: int
    """The most transitions per gradient step. 256."""
    view: Callable[[Any], Any] | None
    """From a batch of observations to the array that the networks see, for instance `lambda obs: obs["image"]`."""
    layout: str | None
    """Where an image's channels are: "HWC", "CHW", or None to infer it from the shape."""
    device: str | torch.device
    seed: int
    """Repeats weights and the draw of transitions; Torch's own generator is left alone."""


class Learning:
    """Keep the transitions of `every` calls, then draw a random share of them in batches.

    >>> learning = Learning(every=2, share=0.5, batch_size=3, seed=0)
    >>> [learning.add(Batch(None, None, torch.zeros(4, 1))) for _ in range(2)]
    [False, True]
    >>> [len(batch.y) for batch in learning.draw()]
    [3, 1]
    """

    def __init__(self, every: int, share: float, batch_size: int, seed: int):
        self.every, self._share, self._size = every, share, batch_size
        self._generator = torch.Generator("cpu").manual_seed(seed)
        self._kept: list[Batch] = []
        self.calls = 0

    def add(self, batch: Batch, calls: int = 1) -> bool:
        """Keep the valid rows of some calls; return whether it is time to learn."""
        if self.every and len(batch.y):
            self._kept.append(batch)
            self.calls += calls
        return 0 < self.every <= self.calls

    def draw(self) -> Iterator[Batch]:
        """Yield batches of a random share of what was kept, and forget it all."""
        whole, self._kept, self.calls = self._whole(), [], 0
        N = len(whole.y)
        drawn = torch.randperm(N, generator=self._generator, device="cpu")[: max(1, round(self._share * N))]
        for rows in torch.split(drawn.to(whole.y.device), self._size):
            yield whole.map(lambda part, rows=rows: part[rows])

    def _whole(self) -> Batch:
        columns = zip(*self._kept, strict=True)
        return Batch(*(None if column[0] is None else torch.cat(column) for column in columns))  # type: ignore[arg-type]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        arrays = {"generator": self._generator.get_state().numpy(), "calls": np.array(self.calls)}
        if self._kept:
            whole = self._whole()._asdict()
            arrays |= {f"kept.{part}": value.cpu().numpy() for part, value in whole.items() if value is not None}
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], device: torch.device) -> None:
        """Take over what was saved."""
        self._generator.set_state(torch.from_numpy(arrays["generator"]))
        self.calls, found = int(arrays["calls"]), [arrays.get(f"kept.{part}") for part in Batch._fields]
        parts: list[Any] = [None if part is None else torch.as_tensor(part, device=device) for part in found]
        self._kept = [] if parts[-1] is None else [Batch(*parts)]
