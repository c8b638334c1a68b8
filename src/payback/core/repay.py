"""What our three ways to repay have in common: states, invalid rows, drops, and the passes over a block's rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from payback.core.arrays import Array, Mask, namespace
from payback.core.transform import Match, State
from payback.core.validate import ExpectedShape, read_state

CHUNK = 64
"""Rows cast to float64 at a time, few enough to stay in the cache."""


class Repayment(Match):
    """A matching of ours. Its state holds arrays of each environment, the debt or the loans first, and `terms` last."""

    _kind: ClassVar[type[Any]]

    @cached_property
    def _terms(self) -> np.ndarray:
        """γ, then whatever else distinguishes it from others of its kind."""
        return np.array([self.gamma])

    def _expected(self, state: State) -> ExpectedShape:
        read_state(self._name, state, self._kind, self._terms)
        return state[0], state[0].shape

    def _step(self, xp: Any, state: State, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[State, Array]:
        after, shaped = self._repay(xp, state, reward, done, settle)
        if valid is None:
            return after, shaped

        def keep(new: Array, old: Array) -> Array:
            return xp.where(valid, new, old)

        return self._each(keep, after, state), xp.where(valid, shaped, 0.0)

    def _repay(self, xp: Any, state: Any, reward: Array, done: Mask, settle: Mask) -> tuple[State, Array]:
        """Take a step of valid rows."""
        raise NotImplementedError

    def drop(self, state: State, where: Array, /) -> State:
        """Forget the debts of the environments `where`."""
        xp = namespace(state[0])

        def forget(x: Array) -> Array:
            return xp.where(where, 0, x)

        return self._each(forget, state)

    def _each(self, function: Any, *states: Any) -> State:
        """Return a state whose arrays of each environment are `function` of those of `states`."""
        parts = [function(*parts) for parts in zip(*(state[:-1] for state in states), strict=True)]
        return self._kind(*parts, states[0][-1])

    def _block(self, state: State, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        if namespace(rewards) is not np:
            return NotImplemented
        if valid is not None:
            debtless: Any = np.atleast_2d(state[0] == 0).all(axis=0)
            if not invalid_only_between_episodes(dones, valid, debtless):
                return NotImplemented
        return self._numpy_block(state, rewards, dones, settle)

    def _numpy_block(self, state: Any, rewards: np.ndarray, dones: np.ndarray, settle: Mask) -> tuple[State, Array]:
        """Repay over a (T, B) block whose invalid rows are 0 and stand between episodes."""
        raise NotImplementedError


# ------------------------------------------------------------------ rows of a NumPy block

# NumPy's block forms walk down the rows with a running sum. They touch rewards in whole rows, and the few episode ends
# one by one. Sums are in float64, in which the rounding of γ doesn't add up.


def invalid_only_between_episodes(dones: np.ndarray, valid: np.ndarray, debtless: np.ndarray) -> bool:
    """Return whether no invalid row has a debt, whose loans would have to stop ageing there."""
    free = np.concatenate((debtless[None], dones[:-1] | ~valid[:-1]))
    return bool((valid | free).all())


def accumulate(
    interest: float, debt: np.ndarray, rewards: np.ndarray, read: np.ndarray, write: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run debt ← (debt + rewards[t])·interest over the rows; return the last debt and the debts at `read`.

    `read` and `write` are sorted flat positions: the debt is read there before its row is added, and set to `values`
    after.
    """
    found = np.empty(read.size)
    (readers, reads), (writers, writes) = (split_by_row(at, *rewards.shape) for at in (read, write))
    with np.errstate(over="ignore"):  # sums that are never read may overflow
        for t, row in enumerate(_float64_rows(rewards)):
            if reads[t + 1] > reads[t]:
                found[reads[t] : reads[t + 1]] = debt[readers[reads[t] : reads[t + 1]]]
            debt += row
            debt *= interest
            if writes[t + 1] > writes[t]:
                debt[writers[writes[t] : writes[t + 1]]] = values[writes[t] : writes[t + 1]]
    return debt, found


def split_by_row(at: np.ndarray, T: int, B: int) -> tuple[np.ndarray, list[int]]:
    """Return the columns of sorted flat positions, and where each row's columns begin."""
    starts = np.searchsorted(at, np.arange(T + 1) * B)
    return at % B, starts.tolist()


def _float64_rows(rewards: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(rewards), CHUNK):
        yield from rewards[first : first + CHUNK].astype(np.float64, copy=False)
