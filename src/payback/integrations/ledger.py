"""The loans of a batch of environments, which an adapter holds between two steps of its host's loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from payback.core.arrays import size_of
from payback.core.state_io import load_state, save_state
from payback.core.transform import Match, RewardTransform, drop, fit_of, owed, raw_step
from payback.core.validate import refuse_overflow
from payback.integrations.lasting_state import lasting, load_for_others, with_lasting
from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.step_log import StepLog
from payback.integrations.told import (
    confirm_gamma,
    refuse_too_large,
    refuse_unknown,
    say_dropped,
    say_loans_go_on,
    say_time_limit,
    say_unconfirmed,
)
from payback.integrations.watch import Watch

__all__ = ["Ledger", "ShapingWarning"]

Mask = np.ndarray
"""(B,) booleans."""


class Ledger:
    """Holds a transform's state for B environments, in float64: the debt grows as γ⁻ᵏ.

    `bonus` is the intrinsic reward: if it has a method `reset(where)`, that is called with the (B,) mask of the
    environments whose episode ended, after the last transition was rewarded, and at every reset. `record` is the folder
    of a log that `payback audit` reads; `worker` tells the log's writers apart where the host has several processes.

    >>> import payback
    >>> ledger = Ledger(payback.match_at_end(0.5), 1)
    >>> no, yes = np.array([False]), np.array([True])
    >>> ledger.step(np.array([3.0]), no, no), ledger.owed
    (array([3.]), array([6.]))
    >>> ledger.step(np.array([0.0]), yes, no), ledger.owed
    (array([-6.]), array([0.]))
    """

    def __init__(
        self,
        transform: RewardTransform,
        num_envs: int,
        on_truncation: str = "settle",
        bonus: object | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
        worker: int = 0,
    ):
        refuse_unknown(transform, on_truncation)
        self.confirmed = confirm_gamma(transform, learner_gamma)
        """Whether the learner's γ is known to be the transform's; where it is not, the first end says so."""
        self.transform = transform
        self.num_envs = num_envs
        self.settles = on_truncation == "settle"
        self.state = transform.init(np.zeros(num_envs))
        self.owed = np.zeros(num_envs)
        """What each environment owes, valued at its next step."""
        self.ending = self.owed
        """The same before a truncated episode's debt was left to the bootstrapped value."""
        self.steps = 0
        """Steps taken so far."""
        self.largest = float(np.finfo(np.float64).max)
        """The largest number that the learner's dtype holds."""
        self._began = np.zeros(num_envs, dtype=np.int64)
        self.drops = 0
        """Episodes that were reset before they ended, with a debt."""
        self.dropped = np.zeros(num_envs)
        """What those episodes owed, summed per environment."""
        self._said = self._loaded = False
        self._clear_bonus: Callable[[Mask], None] | None = getattr(bonus, "reset", None)
        self._name, self._step = repr(transform), raw_step(transform)
        self._owed = transform.owed if isinstance(transform, Match) else None
        self.watch = Watch(transform.gamma, num_envs) if isinstance(transform, Match) else None
        """Counts the finished episodes whose shaped rewards do not cancel, and warns of the first."""
        self.log = None if record is None else StepLog(record, transform, num_envs, worker)

    def step(
        self,
        reward: np.ndarray,
        terminated: np.ndarray | None,
        truncated: np.ndarray | None,
        valid: np.ndarray | None = None,
        settle: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return F'_t for F_t = `reward`, finite float64 as `read_intrinsic` gives it; flags are booleans, all (B,).

        `terminated` and `truncated` may be None where no episode ends in that way. Input was read by the adapter, so
        the transform's raw step is taken.
        """
        if self._loaded:
            self._loaded = False
            say_loans_go_on(self.owed, stacklevel=5)
        self.steps += 1
        ended = _either(terminated, truncated)
        done = ended if self.settles else terminated
        if valid is not None:
            reward, done = np.where(valid, reward, 0.0), None if done is None else done & valid
            settle = None if settle is None else settle & valid
        if done is not None and not np.count_nonzero(done):
            done = None
        state, shaped = self._step(np, self.state, reward, done, valid, settle)
        if not size_of(shaped) <= self.largest:
            self._refuse_size(shaped)
        if self.log is not None:
            self.log.add(reward, self.state, shaped, terminated, truncated if self.settles else None, valid)
        if self.watch is not None:
            self.watch.add(shaped, valid, self.owed)
        self.state = state
        if self._owed is not None:
            self.owed = self.ending = self._owed(state)
        if ended is not None:
            self._end(ended if valid is None else ended & valid, terminated)
        return shaped

    def _refuse_size(self, shaped: np.ndarray) -> None:
        """Refuse what overflows float64, or the learner's own dtype."""
        refuse_overflow(np, self._name, shaped)
        k = int(np.argmax(np.abs(shaped)))
        if abs(shaped[k]) > self.largest:
            refuse_too_large(float(shaped[k]), k, self.steps - int(self._began[k]))

    def _end(self, ended: Mask, terminated: Mask | None) -> None:
        """Leave the debt of carried truncations to the bootstrapped value, and let the bonus begin anew."""
        if not np.count_nonzero(ended):
            return
        self._began[ended] = self.steps
        if not self.confirmed:
            self.confirmed = True
            say_unconfirmed(self.transform, stacklevel=5)
        if not self.settles:
            carried = ended if terminated is None else ended & ~terminated
            self.forget(carried)
            if self.watch is not None:
                self.watch.end(carried, judged=False)
            if self.log is not None:
                self.log.restart(carried)
        if self.watch is not None:
            self.watch.end(ended, judged=True)
        if self._clear_bonus is not None:
            self._clear_bonus(ended)

    def abandon(self, ended: Mask | None) -> None:
        """Close the episodes that ended in a step which could not be rewarded, because the bonus raised.

        Their debts are dropped: a caller that goes on must not find them in the next episode.
        """
        if ended is not None:
            self.reset(ended)

    def ends(self, terminated: np.ndarray, truncated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (terminated, truncated) as the learner must see them: never settle *and* bootstrap."""
        if not self.settles or not np.count_nonzero(truncated):
            return terminated, truncated
        if not self._said:
            self._said = True
            say_time_limit(stacklevel=5)
        return terminated | truncated, np.zeros_like(truncated)

    def reset(self, where: np.ndarray | None = None) -> None:
        """Start new episodes in the environments `where`, or all; debts in mid-episode are dropped and counted."""
        where = np.ones(self.num_envs, dtype=bool) if where is None else where
        dropped = self.forget(where)
        self._loaded = self._loaded and bool(np.count_nonzero(self.owed))
        if self.log is not None and np.count_nonzero(open_ := where & (self._began != self.steps)):
            self.log.restart(open_)
        self._began[where] = self.steps
        if self.watch is not None:
            self.watch.end(where, judged=False)
        if np.count_nonzero(dropped):
            if not self.drops:
                say_dropped(dropped, self.steps, stacklevel=4)
            self.drops += int(np.count_nonzero(dropped))
            self.dropped = self.dropped + dropped
        if self._clear_bonus is not None:
            self._clear_bonus(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to an NPZ file, to train on from it; see `payback.save_state`."""
        save_state(path, self.state)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read a state that `save` wrote for the same transform; for another number of environments, without loans."""
        try:
            state = load_state(path, like=self.state)
        except ValueError:
            stored = load_for_others(path, self.transform)
            if stored is None:
                raise
            state = with_lasting(self.transform, self.state, lasting(self.transform, stored))
        fit_of(self.transform, state)  # read once here, because the raw steps trust it
        self.state = state
        if self._owed is not None:
            self.owed = self.ending = self._owed(self.state)
        self._loaded = bool(np.count_nonzero(self.owed))
        if self.watch is not None:
            self.watch.go_on_from(self.owed)

    def close(self) -> None:
        """Write what is left of the log to the disk."""
        if self.log is not None:
            self.log.close()

    def forget(self, where: Mask) -> np.ndarray:
        """Drop the debts of the environments `where`, without counting them, and return them: (B,)."""
        if self._owed is None:
            return np.zeros(self.num_envs)
        self.state, dropped = drop(self.transform, self.state, where)
        self.owed = owed(self.transform, self.state)
        return dropped


def _either(terminated: Mask | None, truncated: Mask | None) -> Mask | None:
    if terminated is None or truncated is None:
        return truncated if terminated is None else terminated
    return terminated | truncated
