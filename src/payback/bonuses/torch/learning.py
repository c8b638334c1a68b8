"""When a bonus learns, and from which transitions."""

# Torch's from_numpy has a parameter without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

Batch = tuple[Any, Any, torch.Tensor]
"""(x, a, y) of N rows, as they were seen and not yet whitened; x and a may be None."""


class Learning:
    """Keep the transitions of `every` calls, then hand out a random share of them in batches.

    >>> learning = Learning(every=2, share=0.5, batch_size=3, seed=0)
    >>> [learning.add((None, None, torch.zeros(4, 1))) for _ in range(2)]
    [False, True]
    >>> [len(y) for _, _, y in learning.draw()]
    [3, 1]
    """

    def __init__(self, every: int, share: float, batch_size: int, seed: int):
        self._every, self._share, self._size = every, share, batch_size
        self._generator = torch.Generator("cpu").manual_seed(seed)
        self._calls: list[Batch] = []

    def add(self, batch: Batch) -> bool:
        """Keep one call's valid rows; return whether it is time to learn."""
        if self._every == 0:
            return False
        self._calls.append(batch)
        return len(self._calls) >= self._every

    def draw(self) -> Iterator[Batch]:
        """Yield batches of a random share of what was kept, and forget it all."""
        columns, self._calls = list(zip(*self._calls, strict=True)), []
        x, a = (None if column[0] is None else torch.cat(column) for column in columns[:2])
        y = torch.cat(columns[2])
        drawn = torch.randperm(len(y), generator=self._generator, device="cpu")[: max(1, round(self._share * len(y)))]
        for rows in torch.split(drawn.to(y.device), self._size):
            yield None if x is None else x[rows], None if a is None else a[rows], y[rows]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save."""
        arrays = {"generator": self._generator.get_state().numpy(), "calls": np.array(len(self._calls))}
        for i, call in enumerate(self._calls):
            arrays |= {
                f"call.{i}.{part}": value.cpu().numpy()
                for part, value in zip("xay", call, strict=True)
                if value is not None
            }
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], device: torch.device) -> None:
        """Take over what was saved."""
        self._generator.set_state(torch.from_numpy(arrays["generator"]))
        self._calls = []
        for i in range(int(arrays["calls"])):
            parts = [arrays.get(f"call.{i}.{part}") for part in "xay"]
            x, a, y = (None if part is None else torch.as_tensor(part, device=device) for part in parts)
            assert y is not None
            self._calls.append((x, a, y))
