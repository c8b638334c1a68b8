"""TorchRL: what was paid, handed on to the watch over finished episodes and to the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from payback.core.transform import Match, owed
from payback.integrations.host import host
from payback.integrations.step_log import StepLog
from payback.integrations.watch import Watch

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch


class Followed:
    """The watch and the log of B environments, which take NumPy arrays."""

    def __init__(self, match: Match, num_envs: int, settles: bool, record: str | Path | None):
        self.watch = Watch(match.gamma, num_envs)
        """Counts the finished episodes whose shaped rewards do not cancel, and warns of the first."""
        self.log = None if record is None else StepLog(record, match, num_envs)
        self._settles, self._match = settles, match

    def add(
        self,
        F: torch.Tensor,
        before: Any,
        shaped: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor,
        valid: torch.Tensor | None,
    ) -> None:
        """Take one step; `before` is the shaping state before it."""
        paid, died, cut = _numpy(shaped), _numpy(terminated), _numpy(truncated)
        rows = None if valid is None else _numpy(valid)
        ended = died | cut if rows is None else (died | cut) & rows
        self.watch.add(paid, rows, _numpy(owed(self._match, before)) if self.watch.full else None)
        if self.log is not None:
            self.log.add(_numpy(F), before, paid, died, cut if self._settles else None, rows)
        if ended.any():
            carried = np.zeros_like(ended) if self._settles else ended & ~died
            self.watch.end(carried, judged=False)
            self.watch.end(ended, judged=True)
            if self.log is not None:
                self.log.restart(carried)

    def restart(self, where: torch.Tensor, lengths: torch.Tensor) -> None:
        """Close the open episodes of the environments `where`, whose `lengths` so far are more than 0, unjudged."""
        mask = _numpy(where)
        begun = mask & (_numpy(lengths) > 0)
        self.watch.end(mask, judged=False)
        if self.log is not None and begun.any():
            self.log.restart(begun)

    def close(self) -> None:
        """Write what is left of the log to the disk."""
        if self.log is not None:
            self.log.close()


def _numpy(x: torch.Tensor) -> np.ndarray:
    return x.cpu().numpy()
