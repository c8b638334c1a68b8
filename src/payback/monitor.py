"""Warn, count and log what a ledger does, which the pure ledger cannot.

This is the only mutable part of the shaping. A host that steps inside `jit`, or on an accelerator, calls the ledger and
passes the residuals of a rollout to `Monitor.judge`.
"""

from __future__ import annotations

import multiprocessing
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.auditing.record import Recorder, step_without_debt
from payback.core.arrays import Array, Mask, any_of, constant, namespace, replaced, size_of, to_numpy
from payback.core.center import CenterState
from payback.core.state import load_shared, load_state
from payback.core.transform import Match
from payback.ledger import TOLERANCE, Ledger, LedgerState, Step

ROUNDING = 1e-5  # largest relative difference between the float32 reward that a learner reads and what was paid
IDS_PER_WORKER = 1_000_000_000  # worker k numbers its environments from k times this, so that no two share an id


class Monitor:
    """Warn, count and log what a ledger does.

    `bonus`: the intrinsic reward; `bonus.reset(where)`, if it exists, is called with the (B,) mask of environments
    whose episode ended or was reset. `learner_gamma`: the learner's discount, compared with the transform's. `record`:
    the folder of a log for `payback audit`. `worker`: the number of this process where several write to one log.
    `pays`: the dtype of the host's rewards; a shaped reward that overflows it raises.

    Counts `steps`, `finished` episodes (ended and settled) and `broken` ones (their residual exceeds
    `payback.ledger.TOLERANCE`; `worst` is the largest), `drops` (episodes reset in debt before they ended) and the
    `dropped` debts, per environment. `confirmed`: whether the learner's γ is known to equal the match's; if not, the
    first end warns.

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
        messages.warn_of_transform(ledger.transform)
        self.log = None if record is None else Log(record, ledger, worker)
        self.steps = self.finished = self.broken = self.drops = 0
        self.worst = self._residual = 0.0
        self.dropped: Any = 0.0
        self._began: Any = np.zeros((), dtype=int)
        self.pay_in(pays)
        self._repays = isinstance(ledger.transform, Match)
        self._clear_bonus = getattr(bonus, "reset", None)
        self._warned_limit = self._warned_drop = self._warned_reward = self._loaded = False

    def pay_in(self, dtype: Any) -> None:
        """Raise from now on if a shaped reward overflows this dtype."""
        self._pays, self._largest = np.dtype(dtype).name, float(np.finfo(dtype).max)

    def step(
        self, state: LedgerState, reward: Any, terminated: Mask, truncated: Mask, valid: Mask = None, event: Mask = None
    ) -> tuple[LedgerState, Step]:
        """Take `Ledger.step` and check what it paid."""
        after, step = self.ledger.step(state, reward, terminated, truncated, valid, event)
        self.see(state, reward, step, truncated, valid)
        return after, step

    def see(self, before: LedgerState, reward: Array, step: Step, truncated: Mask, valid: Mask = None) -> None:
        """Check a step of the ledger before it is used: it refuses what the host's dtype cannot hold.

        `before`: the state before the step, `truncated`: as the environment reported.
        """
        if self._loaded:
            self._loaded = False
            messages.warn_loans_go_on(to_numpy(before.owed))
        if type(step.shaped) is not np.ndarray or not size_of(step.shaped) <= self._largest:
            self._refuse_too_large(step.shaped)
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
        self._began = replaced(np, self._began, ended, self.steps)
        if not self.confirmed:
            self.confirmed = True
            messages.warn_unconfirmed(self.ledger.transform)
        if self.log is not None and cuts:
            self.log.restart(carried)
        if self._clear_bonus is not None:
            self._clear_bonus(ended)
        if not self._warned_limit and any_of(to_numpy(truncated) & ended):
            self.see_time_limit()
        if self._repays:
            self.judge(to_numpy(step.residual)[settled])

    def see_reward(self, given: Any, extrinsic: Any, step: Step) -> None:
        """Warn once if the reward `given` to the learner is not `extrinsic` + `step.shaped`: call it last in a loop.

        >>> import payback
        >>> from payback.ledger import make
        >>> monitor = Monitor(make(payback.match_at_end(0.5)), learner_gamma=0.5)
        >>> state, no = monitor.ledger.init(np.zeros(1)), np.array([False])
        >>> state, step = monitor.step(state, np.array([3.0]), no, no)
        >>> monitor.see_reward(1 + step.shaped, np.ones(1), step)  # right, so it says nothing
        """
        given, extrinsic, shaped = to_numpy(given), to_numpy(extrinsic), to_numpy(step.shaped)
        k = None if self._warned_reward else changed(given, extrinsic, shaped)
        if k is not None:
            self._warned_reward = True
            remedy = "clip and scale the bonus before it is shaped"
            paid = float(extrinsic[k] + shaped[k])
            messages.warn(messages.changed_reward(paid, float(given[k]), k, "something after the shaping", remedy))

    def see_time_limit(self) -> None:
        """Warn once that settling makes the time limit part of the task, unless `on_truncation="settle"` accepts it."""
        if not self._warned_limit and self.ledger.on_truncation is None and self.ledger.settles:
            messages.warn_time_limit()
        self._warned_limit = True

    def judge(self, residual: Array) -> int:
        """Count finished episodes by their residuals, of any shape; warn of the first that do not cancel.

        Returns the number that do not. NaN does not cancel.
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
        """Return the largest residual of the episodes that finished since the last call."""
        residual, self._residual = self._residual, 0.0
        return residual

    def reset(self, state: LedgerState, where: Mask = None) -> LedgerState:
        """Start new episodes in the environments `where`, or all; count the debts that this drops."""
        if where is None:
            xp = namespace(state.owed)
            where = xp.ones_like(state.owed, dtype=xp.bool)
        after, dropped = self.ledger.reset(state, where)
        self.see_reset(to_numpy(dropped), to_numpy(where))
        return after

    def see_reset(self, dropped: np.ndarray, where: np.ndarray) -> None:
        """Count the debts that a reset of the environments `where` dropped."""
        resumed, self._loaded = self._loaded, False
        if self.log is not None and np.count_nonzero(open_ := where & (self._began != self.steps)):
            self.log.restart(open_)
        self._began = replaced(np, self._began, where, self.steps)
        if np.count_nonzero(dropped):
            if not self._warned_drop and not resumed:  # a reset after `load` is how a checkpoint is resumed
                self._warned_drop = True
                messages.warn_dropped(dropped, self.steps)
            self.drops += int(np.count_nonzero(dropped))
            self.dropped = self.dropped + dropped
        if self._clear_bonus is not None:
            self._clear_bonus(where)

    def load(self, path: str | os.PathLike[str], state: LedgerState) -> LedgerState:
        """Read a transform's state that `payback.save_state(path, state.loans)` wrote.

        From another number of environments, only what they share (F̄) is loaded.
        """
        try:
            loans = load_state(path, like=state.loans)
        except ValueError:
            loans = load_shared(path, self.ledger.init(state.owed).loans)
        self.ledger.transform._expected(loans)  # the raw steps do not validate it
        state = self.ledger.init(state.owed, loans)
        self._loaded = bool(np.count_nonzero(to_numpy(state.owed)))
        return state

    def close(self) -> None:
        """Write the rest of the log to disk."""
        if self.log is not None:
            self.log.close()

    def _refuse_too_large(self, shaped: Array) -> None:
        """Raise on NaN and on what overflows the host's dtype; on an accelerator `judge` detects it later."""
        if str(getattr(shaped, "device", "cpu")) != "cpu":
            return
        paid = to_numpy(shaped)
        k = int(np.argmax(np.abs(paid)))
        if not abs(float(paid[k])) <= self._largest:
            began = np.broadcast_to(self._began, paid.shape)
            messages.refuse_too_large(float(paid[k]), k, self.steps + 1 - int(began[k]), self._pays)


class Log:
    """Write each step with a `Recorder`, which the process that steps opens at the first one, in a folder of its own.

    Closing or deleting the log, and the end of Python, write what is left in memory; `kill -9` loses it.
    """

    def __init__(self, folder: str | Path, ledger: Ledger, worker: int = 0):
        if not isinstance(ledger.transform, Match):
            raise ValueError("record= needs a transform that repays, or there is nothing to audit; add a match")
        self._folder, self._worker, self._match, self._settles = Path(folder), worker, ledger.transform, ledger.settles
        self._recorder: Recorder | None = None

    def add(self, reward: np.ndarray, before: Any, step: Step, truncated: Mask, valid: np.ndarray | None) -> None:
        """Record one step; `before`: the transform's state before it, `truncated`: as the environment reported."""
        none = np.zeros(len(reward), dtype=bool)
        settled = none if step.terminated is None else to_numpy(step.terminated)
        cut = none if truncated is None or not self._settles else settled & to_numpy(truncated)
        (self._recorder or self._open()).add(
            reward=reward,
            shaped=to_numpy(step.shaped),
            terminated=settled & ~cut,
            truncated=cut,
            valid=~none if valid is None else valid,
            lent=_lent(self._match, reward, before, valid),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_recorder": None}  # a copy opens the log anew

    def restart(self, where: np.ndarray | None) -> None:
        """Leave the episodes of the environments `where`, or all, unfinished: because of a reset or a carried debt."""
        if self._recorder is not None:
            self._recorder.restart(where)

    def flush(self) -> None:
        """Write what is in memory, and continue."""
        if self._recorder is not None:
            self._recorder.flush()

    def close(self) -> None:
        """Write what is left in memory."""
        if self._recorder is not None:
            self._recorder.close()

    def _open(self) -> Recorder:
        worker = self._worker or (0 if multiprocessing.parent_process() is None else os.getpid())
        folder = self._folder / f"worker-{worker}" if worker else self._folder
        self._recorder = Recorder(folder, gamma=self._match.gamma, first_env=worker * IDS_PER_WORKER)
        weakref.finalize(self, _close, self._recorder)
        return self._recorder


def _close(recorder: Recorder) -> None:
    """Write what is left when Python ends, unless somebody removed the folder."""
    if recorder.folder.exists():
        recorder.close()


def _lent(match: Match, reward: np.ndarray, before: Any, valid: np.ndarray | None) -> np.ndarray | None:
    """Return what a chain lends at a step, from its state before it; None for a match alone, which lends F itself."""
    if not match._parts:
        return None
    if len(match._parts) == 2 and isinstance(before[0], CenterState):  # the usual chain, without a second update
        return reward - float(before[0].mean)
    like = match.owed(before)
    xp = namespace(like)
    live = None if valid is None else constant(xp, valid, like, xp.bool)
    return to_numpy(step_without_debt(match, before, constant(xp, reward, like), live)[1])


def changed(given: np.ndarray, extrinsic: np.ndarray, shaped: np.ndarray) -> int | None:
    """Return the first environment whose reward is not r_t + F′_t, None if all are."""
    size = np.abs(extrinsic) + np.abs(shaped)
    wrong = ~(np.abs(given - (extrinsic + shaped)) <= ROUNDING * size + 1e-12)
    return int(np.flatnonzero(wrong)[0]) if np.count_nonzero(wrong) else None
