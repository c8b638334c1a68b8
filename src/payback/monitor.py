"""Watching a ledger from Python: warnings, counts and the log, which the pure ledger cannot have.

    monitor = Monitor(payback.ledger.make(payback.grm(0.99, delay=30)), learner_gamma=0.99, record="log")
    state = monitor.ledger.init(np.zeros(num_envs))
    state, step = monitor.step(state, bonus, terminated, truncated)      as the ledger's, and looks at the result
    state = monitor.reset(state, where)                                  warns of the first debt that is dropped

This is the only mutable part of the shaping. A host that steps inside `jit`, or on an accelerator, calls the ledger
itself and hands the residuals of a rollout to `Monitor.judge`.
"""

from __future__ import annotations

import multiprocessing
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.auditing.record import Recorder
from payback.core.arrays import Array, any_of, is_tuple, namespace, size_of
from payback.core.center import CenterState
from payback.core.state import load_shared, load_state
from payback.core.transform import Match, fit_of
from payback.ledger import TOLERANCE, Ledger, LedgerState, Step

ROUNDING = 1e-5
"""How far the float32 reward that a learner reads may lie from what was paid, relatively."""
IDS_PER_WORKER = 1_000_000_000
"""The environments of worker k have ids from k times this, so that no two workers' episodes have the same."""


class Monitor:
    """Warn, count and log what a ledger does.

    `bonus` is the intrinsic reward: its method `reset(where)`, if it has one, is called with the (B,) mask of the
    environments whose episode ended or was reset. `learner_gamma` is compared with the transform's. `record` names the
    folder of a log that `payback audit` reads, and `worker` numbers its writers where the host has several processes.
    `pays` is the dtype in which the host pays: what it cannot hold is refused.

    >>> import payback
    >>> from payback.ledger import make
    >>> monitor = Monitor(make(payback.match_at_end(0.5)), learner_gamma=0.5)
    >>> state, no, yes = monitor.ledger.init(np.zeros(1)), np.array([False]), np.array([True])
    >>> state, step = monitor.step(state, np.array([3.0]), no, no)
    >>> state, step = monitor.step(state, np.array([0.0]), yes, no)
    >>> monitor.finished, monitor.broken, monitor.drops
    (1, 0, 0)
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        bonus: object | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
        worker: int = 0,
        pays: Any = np.float64,
    ):
        self.ledger = ledger
        self.confirmed = messages.is_confirmed(ledger.transform, learner_gamma)
        """Whether the learner's γ is known to be the match's; if not, the first end warns."""
        if not isinstance(ledger.transform, Match):
            messages.warn_no_match()
        self.log = None if record is None else Log(record, ledger, worker)
        self.steps = 0
        """Steps taken so far."""
        self.drops = 0
        """Episodes that were reset before they ended, with a debt."""
        self.dropped: Any = 0.0
        """What those episodes owed, summed per environment."""
        self.finished = 0
        """Episodes that ended and were settled."""
        self.broken = 0
        """Those whose shaped rewards do not cancel: `payback.ledger.TOLERANCE`."""
        self.worst = 0.0
        """The largest residual among the finished episodes."""
        self._residual = 0.0
        self._began: np.ndarray | int = 0
        self.pay_in(pays)
        self._repays = isinstance(ledger.transform, Match)
        self._clear_bonus = getattr(bonus, "reset", None)
        self._warned_limit = self._loaded = False

    def pay_in(self, dtype: Any) -> None:
        """Refuse from now on what a reward of this dtype cannot hold."""
        self._pays, self._largest = np.dtype(dtype).name, float(np.finfo(dtype).max)

    def step(
        self,
        state: LedgerState,
        reward: Array,
        terminated: Array | None,
        truncated: Array | None,
        valid: Array | None = None,
        event: Array | None = None,
    ) -> tuple[LedgerState, Step]:
        """Take `Ledger.step`, and look at what it paid."""
        if self._loaded:
            self._loaded = False
            messages.warn_loans_go_on(to_numpy(state.owed))
        after, step = self.ledger.step(state, reward, terminated, truncated, valid, event)
        if type(step.shaped) is not np.ndarray or not size_of(step.shaped) <= self._largest:
            self.refuse_too_large(step.shaped)
        if step.terminated is None and self.log is None:
            self.steps += 1
        else:
            self.see(state, reward, step, truncated, valid)
        return after, step

    def see(
        self, before: LedgerState, reward: Array, step: Step, truncated: Array | None, valid: Array | None = None
    ) -> None:
        """Look at a step that the ledger took: `before` is the state before it, `truncated` the environment's word."""
        self.steps += 1
        if self.log is not None:
            self.log.add(to_numpy(reward), before.loans, step, truncated, None if valid is None else to_numpy(valid))
        if step.terminated is None:
            return
        settled, carried = to_numpy(step.terminated), to_numpy(step.truncated)
        if valid is not None:
            settled, carried = settled & to_numpy(valid), carried & to_numpy(valid)
        cuts = any_of(carried)
        if not (cuts or any_of(settled)):
            return
        ended = settled | carried if cuts else settled
        self._end(ended, carried if cuts else None)
        if not self._warned_limit and self.ledger.settles and any_of(to_numpy(truncated) & ended):
            self.see_time_limit()
        if self._repays:
            self.judge(to_numpy(step.residual)[settled])

    def _end(self, ended: np.ndarray, carried: np.ndarray | None) -> None:
        """Take note of the ends, and tell the log and the bonus."""
        self._began = np.where(ended, self.steps, self._began)
        if not self.confirmed:
            self.confirmed = True
            messages.warn_unconfirmed(self.ledger.transform)
        if self.log is not None and carried is not None:
            self.log.restart(carried)
        if self._clear_bonus is not None:
            self._clear_bonus(ended)

    def see_time_limit(self) -> None:
        """Warn once that settling truncated episodes makes the time limit part of the task."""
        if not self._warned_limit:
            self._warned_limit = True
            messages.warn_time_limit()

    def judge(self, residual: Array) -> int:
        """Count finished episodes by their residuals, any shape, and warn of the first that do not cancel.

        Returns how many do not. What is not a number does not cancel.
        """
        values: list[float] = to_numpy(residual).reshape(-1).tolist()
        if not values:
            return 0
        broken, before, worst = sum(not value <= TOLERANCE for value in values), self.broken, max(values)
        self.finished += len(values)
        self._residual, self.worst = max(self._residual, worst), max(self.worst, worst)
        if broken:
            self.broken += broken
            if not before:
                messages.warn_broken(self.broken, self.finished, worst)
        return broken

    def take_residual(self) -> float:
        """Return the largest residual of the episodes that finished since it was taken last."""
        residual, self._residual = self._residual, 0.0
        return residual

    def reset(self, state: LedgerState, where: Array | None = None) -> LedgerState:
        """Begin new episodes in the environments `where`, or all; debts in mid-episode are dropped and counted."""
        if where is None:
            xp = namespace(state.owed)
            where = xp.ones_like(state.owed, dtype=xp.bool)
        after, dropped = self.ledger.reset(state, where)
        self.see_reset(to_numpy(dropped), to_numpy(where))
        return after

    def see_reset(self, dropped: np.ndarray, where: np.ndarray) -> None:
        """Take note of a reset of the environments `where`, and of what they still owed."""
        self._loaded = False
        if self.log is not None and np.count_nonzero(open_ := where & (self._began != self.steps)):
            self.log.restart(open_)
        self._began = np.where(where, self.steps, self._began)
        if np.count_nonzero(dropped):
            if not self.drops:
                messages.warn_dropped(dropped, self.steps)
            self.drops += int(np.count_nonzero(dropped))
            self.dropped = self.dropped + dropped
        if self._clear_bonus is not None:
            self._clear_bonus(where)

    def load(self, path: str | os.PathLike[str], state: LedgerState) -> LedgerState:
        """Read a transform's state that `payback.save_state(path, state.loans)` wrote.

        One of another number of environments gives what they share (F̄), and no loans.
        """
        try:
            loans = load_state(path, like=state.loans)
        except ValueError:
            loans = load_shared(path, self.ledger.init(state.owed).loans)
        fit_of(self.ledger.transform, loans)  # read once here, because the raw steps trust it
        state = self.ledger.init(state.owed, loans)
        self._loaded = bool(np.count_nonzero(to_numpy(state.owed)))
        return state

    def close(self) -> None:
        """Write what is left of the log to the disk."""
        if self.log is not None:
            self.log.close()

    def refuse_too_large(self, shaped: Array) -> None:
        """Refuse what the host's dtype cannot hold, also NaN; on an accelerator `judge` sees it later."""
        if not isinstance(shaped, np.ndarray):
            if str(getattr(shaped, "device", "")) != "cpu":
                return
            shaped = to_numpy(shaped)
        paid: np.ndarray[Any, Any] = shaped  # pyright: ignore[reportUnknownVariableType]
        k = int(np.argmax(np.abs(paid)))
        if not abs(paid[k]) <= self._largest:
            began = np.broadcast_to(self._began, paid.shape)
            messages.refuse_too_large(float(paid[k]), k, self.steps + 1 - int(began[k]), self._pays)


class Log:
    """Hand each step to a `Recorder`, which is made at the first one, in the process that takes the steps.

    What is in memory is written when the log is closed or garbage-collected, and when Python ends; `kill -9` costs the
    last part. A worker process, or one of several that the host numbers (`worker`), writes to a folder of its own
    inside the log's.
    """

    def __init__(self, folder: str | Path, ledger: Ledger, worker: int = 0):
        if not isinstance(ledger.transform, Match):
            raise ValueError("record= needs a transform that repays: only loans and repayments can be audited")
        self._folder, self._worker, self._gamma = Path(folder), worker, ledger.transform.gamma
        self._settles = ledger.settles
        self._recorder: Recorder | None = None

    def add(
        self, reward: np.ndarray, before: Any, step: Step, truncated: Array | None, valid: np.ndarray | None
    ) -> None:
        """Record one step; `before` is the transform's state before it, `truncated` the environment's word."""
        none = np.zeros(len(reward), dtype=bool)
        settled = none if step.terminated is None else to_numpy(step.terminated)
        cut = none if truncated is None or not self._settles else settled & to_numpy(truncated)
        (self._recorder or self._open()).add(
            reward=reward,
            shaped=to_numpy(step.shaped),
            terminated=settled & ~cut,
            truncated=cut,
            valid=~none if valid is None else valid,
            lent=_lent(reward, before),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_recorder": None}  # a copy opens the log anew

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
        self._recorder = Recorder(folder, gamma=self._gamma, first_env=worker * IDS_PER_WORKER)
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


def changed(given: np.ndarray, extrinsic: np.ndarray, shaped: np.ndarray) -> int | None:
    """Return the first environment whose reward is not r_t + F′_t, None if all are.

    >>> changed(np.array([3.0, 1.0]), np.array([1.0, 1.0]), np.array([2.0, 2.0]))
    1
    """
    size = np.abs(extrinsic) + np.abs(shaped)
    wrong = ~(np.abs(given - (extrinsic + shaped)) <= ROUNDING * size + 1e-12)
    return int(np.flatnonzero(wrong)[0]) if np.count_nonzero(wrong) else None


def to_numpy(x: Any) -> np.ndarray:
    """Return an array of any library as NumPy's, from whatever device it is on."""
    if type(x) is np.ndarray:
        return x
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)
