"""Watching what was paid: do the shaped rewards of every finished episode cancel?"""

from __future__ import annotations

import warnings

import numpy as np

from payback.integrations.shaping_warning import ShapingWarning

TOLERANCE = 1e-5
"""|Σγ^t F′_t| ≤ 1e-5 · Σγ^t |F′_t| holds for every lawful match, also in float32; worst seen 3.3e-6."""
LEAST_STEPS, MOST_STEPS, CELLS = 32, 256, 4096
ROUNDING = 1e-5
"""How far the float32 reward that a learner reads may lie from what was paid, relatively."""
FADED = 0.01
"""A block is so short that γ^t is more than this in it, because what is discounted further could not be seen."""
FLOOR = 1e-4
"""Of the largest reward that an episode paid: so much, times `TOLERANCE`, is rounding, whatever came after it."""


class Watch:
    """Follows Σγ^t F′_t of B environments and counts the finished episodes in which it is not 0.

    Steps are kept in a block and summed when it is full, because that costs a tenth of summing at every step. At a
    block's end the sum so far must be γ^t Debt_t (the law); from there on an episode is judged from that debt, so that
    the discount hides nothing of what comes late.

    >>> watch = Watch(0.5, 1)
    >>> for shaped in (1.0, -2.0):
    ...     watch.add(np.array([shaped]), None)
    >>> watch.end(np.array([True]), judged=True)
    >>> watch.add(np.array([0.0]), None)
    >>> watch.end(np.array([True]), judged=True)
    >>> watch.sum_up()
    >>> watch.finished, watch.broken, watch.worst
    (2, 0, 0.0)
    """

    def __init__(self, gamma: float, num_envs: int):
        self._log_gamma = float(np.log(gamma))
        steps = min(MOST_STEPS, max(LEAST_STEPS, CELLS // num_envs))
        if gamma < 1:
            steps = max(1, min(steps, int(np.log(FADED) / self._log_gamma)))
        self._shaped = np.zeros((steps, num_envs))
        self._valid = np.ones(self._shaped.shape, dtype=bool)
        self._ends = np.zeros(self._shaped.shape, dtype=np.int8)
        """1: an episode's last step, 2: the same, not to be judged."""
        self._rows = 0
        self._age = np.zeros(num_envs, dtype=np.int64)
        self._sum = np.zeros(num_envs)
        self._size = np.zeros(num_envs)
        self._largest = np.zeros(num_envs)
        self._off = np.zeros(num_envs)
        """How far, relatively, the open episode's sum was from its debt at the ends of blocks so far."""
        self.finished = 0
        """Episodes that ended and were judged."""
        self.broken = 0
        """Those that did not cancel."""
        self.worst = 0.0
        """The largest |Σγ^t F′_t| / Σγ^t |F′_t| among them."""
        self._residual = 0.0

    @property
    def full(self) -> bool:
        """Whether the next `add` sums the block up, and takes the debts."""
        return self._rows == len(self._shaped)

    def add(self, shaped: np.ndarray, valid: np.ndarray | None, owed: np.ndarray | None = None) -> None:
        """Take what one step paid, and what was owed before it; `end` comes after the step that it belongs to."""
        if self._rows == len(self._shaped):
            self.sum_up()
            if owed is not None:
                self._judge_from(owed)
        self._shaped[self._rows] = shaped
        if valid is not None:
            self._valid[self._rows] = valid
        self._rows += 1

    def end(self, where: np.ndarray, judged: bool) -> None:
        """Close the episodes of the environments `where` after this step; dropped or carried debts are not judged."""
        if self._rows:
            row = self._ends[self._rows - 1]
            row[where & (row == 0)] = 1 if judged else 2
        else:
            self._age[where] = 0
            self._sum[where] = self._size[where] = self._largest[where] = self._off[where] = 0.0

    def go_on_from(self, owed: np.ndarray) -> None:
        """Judge the open episodes from the debts `owed`, of a state that was loaded in their midst."""
        self.sum_up()
        self.end(np.ones(len(owed), dtype=bool), judged=False)
        self._sum, self._size = owed.astype(np.float64), np.abs(owed)

    def sum_up(self) -> None:
        """Sum the block, judge the episodes that ended in it, and warn once if one of them did not cancel."""
        T, before = self._rows, self.broken
        if not T:
            return
        # Environment by environment, so that an episode's steps stand side by side.
        shaped, valid, ends = (x[:T].T for x in (self._shaped, self._valid, self._ends))
        ages = np.cumsum(valid, axis=1) - valid + self._age[:, None]
        started = np.zeros_like(ages)
        started[:, 1:] = np.where(ends[:, :-1] > 0, (ages + valid)[:, :-1], 0)
        ages -= np.maximum.accumulate(started, axis=1)
        paid = np.exp(self._log_gamma * ages) * shaped
        first = np.zeros(ends.shape, dtype=bool)
        first[:, 0], first[:, 1:] = True, ends[:, :-1] > 0
        begins = np.flatnonzero(first)
        lasts = np.append(begins[1:], first.size) - 1
        sums, sizes = (np.add.reduceat(x.ravel(), begins) for x in (paid, np.abs(paid)))
        heads = np.searchsorted(begins, np.arange(len(shaped)) * T)
        sums[heads] += self._sum
        sizes[heads] += self._size
        off = np.zeros(len(begins))
        off[heads] = self._off
        self._judge(sums, sizes, off, ends.ravel()[lasts] == 1)
        tails = np.append(heads[1:], len(begins)) - 1
        going = ends[:, -1] == 0
        self._sum, self._size = np.where(going, sums[tails], 0.0), np.where(going, sizes[tails], 0.0)
        self._age = np.where(going, ages[:, -1] + valid[:, -1], 0)
        self._off = np.where(going, off[tails], 0.0)
        largest = np.maximum.reduceat(np.abs(shaped).ravel(), begins)
        largest[heads] = np.maximum(largest[heads], self._largest)
        self._largest = np.where(going, largest[tails], 0.0)
        self._rows = 0
        self._valid[:], self._ends[:] = True, 0
        if self.broken and not before:
            self._warn()

    def take_residual(self) -> float:
        """Return the largest |Σγ^t F′_t| / Σγ^t |F′_t| of the episodes that were judged since it was taken last.

        Those that ended in the block under way come with a later one, because summing it up early would cost more than
        all else that the watch does where rollouts are short.
        """
        residual, self._residual = self._residual, 0.0
        return residual

    def _judge_from(self, owed: np.ndarray) -> None:
        """Compare the open episodes' sums with γ^t Debt_t, and go on from Debt_t."""
        faded = np.exp(self._log_gamma * self._age)
        left, size = np.abs(self._sum - faded * owed), self._size + faded * np.abs(owed)
        self._off = np.maximum(self._off, left / np.maximum(size, 1e-12 / TOLERANCE))
        self._sum, self._size = owed.astype(np.float64), np.abs(owed) + FLOOR * self._largest
        self._age = np.zeros_like(self._age)

    def _judge(self, sums: np.ndarray, sizes: np.ndarray, off: np.ndarray, judged: np.ndarray) -> None:
        # What is below 1e-12 is rounding, whatever the size.
        ratio = np.maximum(off, np.abs(sums) / np.maximum(sizes, 1e-12 / TOLERANCE))[judged]
        wrong = ratio > TOLERANCE
        self.finished += len(ratio)
        self.broken += int(np.count_nonzero(wrong))
        if len(ratio):
            self._residual = max(self._residual, float(ratio.max()))
        if wrong.any():
            self.worst = max(self.worst, float(ratio.max()))

    def _warn(self) -> None:
        warnings.warn(
            f"{self.broken} of {self.finished} finished episodes did not cancel: |Σγ^t F′_t| is up to {self.worst:.3g} "
            "of Σγ^t |F′_t|, where 0 is right, so the bonus may change the optimal policy. The likely cause is a Match "
            "of your own that does not settle at `done`, or whose `owed` is wrong: payback.check_transform shows where",
            ShapingWarning,
            stacklevel=6,
        )
