"""`record="log"`: the steps of an adapter's environments, written to a folder that `payback audit log` reads."""

from __future__ import annotations

import multiprocessing
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from payback.auditing.recorder import Recorder
from payback.core.arrays import is_tuple
from payback.core.center import CenterState
from payback.core.transform import Match, RewardTransform

APART = 1_000_000_000
"""The environments of worker k have ids from k times this, so that no two workers' episodes have the same."""


class StepLog:
    """Hands each step to a `Recorder`, which is made at the first one, in the process that takes the steps.

    What is in memory is written when the environment is closed, when the log is garbage-collected, and when Python
    ends; `kill -9` costs the last part. A worker process, or one of several that the host numbers (`worker`), writes to
    a folder of its own inside the log's.
    """

    def __init__(self, folder: str | Path, transform: RewardTransform, num_envs: int, worker: int = 0):
        if not isinstance(transform, Match):
            raise ValueError("record=… needs a transform that repays, because only loans and repayments can be audited")
        self._folder, self._worker, self._gamma = Path(folder), worker, transform.gamma
        self._none, self._all = np.zeros(num_envs, dtype=bool), np.ones(num_envs, dtype=bool)
        self._recorder: Recorder | None = None

    def add(
        self,
        reward: np.ndarray,
        before: Any,
        shaped: np.ndarray,
        terminated: np.ndarray | None,
        truncated: np.ndarray | None,
        valid: np.ndarray | None,
    ) -> None:
        """Record one step; `before` is the shaping state before it, from which F̄ is read."""
        (self._recorder or self._open()).add(
            reward=reward,
            shaped=shaped,
            terminated=self._none if terminated is None else terminated,
            truncated=self._none if truncated is None else truncated,
            valid=self._all if valid is None else valid,
            lent=_lent(reward, before),
        )

    def restart(self, where: np.ndarray) -> None:
        """Leave the open episodes of the environments `where` unfinished: they were reset, or their debt carried."""
        if self._recorder is not None:
            self._recorder.restart(where)

    def flush(self) -> None:
        """Write what is in memory, and go on."""
        if self._recorder is not None:
            self._recorder.flush()

    def close(self) -> None:
        """Write what is left in memory."""
        if self._recorder is not None:
            self._recorder.close()

    def _open(self) -> Recorder:
        process = multiprocessing.current_process()
        child = multiprocessing.parent_process() is not None
        worker = self._worker or (process.pid or 0 if child else 0)
        folder = self._folder / f"worker-{worker}" if worker else self._folder
        self._recorder = Recorder(folder, gamma=self._gamma, first_env=worker * APART)
        weakref.finalize(self, _close, self._recorder)
        return self._recorder


def _close(recorder: Recorder) -> None:
    """Write what is left when Python ends, unless the folder was removed in the meantime."""
    if recorder.folder.exists():
        recorder.close()


def _lent(reward: np.ndarray, before: Any) -> np.ndarray | None:
    """Return F − F̄ where the transform is a `center` and a match, None where F itself is lent or it is not known."""
    first = before[0] if is_tuple(before) and len(before) == 2 else None
    return reward - float(first.mean) if isinstance(first, CenterState) else None
