"""Matching a whole (T, B) block at once on NumPy: the fast forms of `update`.

Rewards are touched in whole rows or whole blocks; the few episode ends are handled one by one. Rows that are
no transition come in with reward 0 and no end. Running sums are kept in float64, where rounding of γ does
not add up over an episode.
"""

from __future__ import annotations

import numpy as np

FEW = 8
"""Ends are few while one in so many rewards, or fewer, is a loan that an end settles."""
CHUNK = 64
"""Rows that are turned into float64 at a time: small enough to stay in the cache."""


def invalid_only_between_episodes(dones: np.ndarray, valid: np.ndarray, debtless: np.ndarray) -> bool:
    """Whether every row that is no transition stands where nothing is owed, and so needs no clock stopped."""
    free = np.concatenate((debtless[None], dones[:-1] | ~valid[:-1]))
    return bool((valid | free).all())


def lag_block(
    due_and_rest: np.ndarray, loans: np.ndarray, rewards: np.ndarray, dones: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repay each loan in one sum at age D = len(loans), or at its episode's end.

    Returns the loans left, newest first, and the shaped rewards.
    """
    D, T = len(loans), len(rewards)
    if D == 0:
        return loans, np.zeros_like(rewards)
    # Row t + D is step t, so that the loans carried in need no case of their own.
    rewards = np.ascontiguousarray(rewards)
    lent = np.ascontiguousarray(np.concatenate((loans[::-1], rewards)))
    ends = np.flatnonzero(dones)
    # Few ends are visited loan by loan; past that, going through all rows costs the same for any number.
    settle = _settle_by_loan if ends.size * D * FEW < rewards.size else _settle_by_row
    settlement = settle(due_and_rest[1], lent, ends)
    shaped = np.multiply(lent[:T], -float(due_and_rest[0, -1]))  # a NumPy scalar would widen float32
    shaped += rewards
    shaped.reshape(-1)[ends] = -settlement
    return lent[T:][::-1].copy(), shaped


def window_block(
    due_and_rest: np.ndarray, loans: np.ndarray, rewards: np.ndarray, dones: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repay each loan in shares over W = len(loans) steps, the rest at its episode's end."""
    W, T = len(loans), len(rewards)
    rewards = np.ascontiguousarray(rewards)
    lent = np.ascontiguousarray(np.concatenate((loans[::-1], rewards)))
    ends = np.flatnonzero(dones)
    settlement = _settle_by_loan(due_and_rest[1], lent.copy(), ends)
    due = np.ascontiguousarray(due_and_rest[0, ::-1], dtype=rewards.dtype)
    shaped = np.empty_like(rewards)
    columns, starts = _split_by_row(ends, *rewards.shape)
    for t in range(T):
        np.dot(due, lent[t : t + W], out=shaped[t])
        ended = columns[starts[t] : starts[t + 1]]
        if ended.size:
            lent[t : t + W + 1, ended] = 0
    np.subtract(rewards, shaped, out=shaped)
    shaped.reshape(-1)[ends] = -settlement
    return lent[T:][::-1].copy(), shaped


def lump_block(
    gamma: float, debt: np.ndarray, rewards: np.ndarray, dones: np.ndarray, settle: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Repay everything at the episode's end, or at the next event.

    `debt` (B,) is valued at the block's first step; returned valued at the step after the block.
    """
    settled = np.flatnonzero(dones if settle is None else dones | settle)
    shaped = rewards.copy(order="C")
    flat, over = shaped.reshape(-1), dones.reshape(-1)[settled]
    # After a repayment only an event's own reward is owed; an episode's last one is lent and repaid at once.
    flat[settled[over]] = 0
    fresh = flat[settled].astype(np.float64) / gamma
    debt, due = _accumulate(1 / gamma, debt.astype(np.float64), rewards, settled, settled, fresh)
    with np.errstate(over="ignore"):  # the caller looks for what overflowed, and says where
        flat[settled] -= due.astype(rewards.dtype)
    return debt, shaped


def geometric_block(
    gamma: float, rate: float, debt: np.ndarray, rewards: np.ndarray, dones: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repay the share 1 − rate of the debt at each step, the rest at the episode's end."""
    share, fade, rewards = 1 - rate, rate / gamma, np.ascontiguousarray(rewards)
    # What is due is carried instead of what is owed: one pass less a row.
    due = debt * share
    lent = rewards * (share / gamma)
    shaped = np.empty_like(rewards)
    ends = np.flatnonzero(dones)
    columns, starts = _split_by_row(ends, *rewards.shape)
    settlement = np.empty(ends.size, dtype=rewards.dtype)
    for t in range(len(rewards)):
        np.subtract(rewards[t], due, out=shaped[t])
        ended = columns[starts[t] : starts[t + 1]]
        if ended.size:
            # Not from `shaped`, because a large last reward takes the digits of what is due.
            settlement[starts[t] : starts[t + 1]] = due[ended]
        due *= fade
        due += lent[t]
        if ended.size:
            due[ended] = 0
    flat = shaped.reshape(-1)
    flat[ends] = -settlement / share
    return due / share, shaped


def _accumulate(
    interest: float, debt: np.ndarray, rewards: np.ndarray, read: np.ndarray, write: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run debt ← (debt + rewards[t])·interest over the rows; return the last debt and what was read on the way.

    `read` and `write` are sorted flat positions: the debt is read there before its row is added, and set to
    `values` after.
    """
    found = np.empty(read.size)
    (readers, reads), (writers, writes) = (_split_by_row(at, *rewards.shape) for at in (read, write))
    with np.errstate(over="ignore"):  # sums that are never read may grow out of bounds
        for t, row in enumerate(_float64_rows(rewards)):
            if reads[t + 1] > reads[t]:
                found[reads[t] : reads[t + 1]] = debt[readers[reads[t] : reads[t + 1]]]
            debt += row
            debt *= interest
            if writes[t + 1] > writes[t]:
                debt[writers[writes[t] : writes[t + 1]]] = values[writes[t] : writes[t + 1]]
    return debt, found


def _split_by_row(at: np.ndarray, T: int, B: int) -> tuple[np.ndarray, list[int]]:
    """Return the columns of sorted flat positions, row after row, and where each row's begin."""
    starts = np.searchsorted(at, np.arange(T + 1) * B)
    return at % B, starts.tolist()


def _float64_rows(rewards: np.ndarray):
    for first in range(0, len(rewards), CHUNK):
        yield from rewards[first : first + CHUNK].astype(np.float64, copy=False)


def _settle_by_loan(rest: np.ndarray, lent: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return Σ_{k=1}^{D} γ⁻ᵏ L_k at each end, over its own episode's loans, and strike those out of `lent`."""
    D, B = len(rest), lent.shape[1]
    outstanding = np.minimum(_steps_before_end(ends, B), D)
    order = np.argsort(-outstanding, kind="stable")
    at, flat = ends[order] + D * B, lent.reshape(-1)
    # With the longest first, those that still have a loan of age k are the first `many[k]`.
    many = np.searchsorted(-outstanding[order], -np.arange(D + 1), side="right")
    total = np.zeros(ends.size)
    flat[at] = 0
    for k in range(1, D + 1):
        loans = at[: many[k]] - k * B
        total[: many[k]] += rest[k - 1] * flat[loans]
        flat[loans] = 0
    settlement = np.empty_like(total)
    settlement[order] = total
    return settlement


def _settle_by_row(rest: np.ndarray, lent: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return and strike out the same as `_settle_by_loan`."""
    D, B = len(rest), lent.shape[1]
    last = ends + D * B
    first = last - np.minimum(_steps_before_end(ends, B), D) * B
    # A sum starts with the first loan that its end will find unpaid: what was added up before is dropped.
    dropped = np.sort(first[first >= B] - B)
    _, settlement = _accumulate(float(rest[0]), np.zeros(B), lent, last, dropped, np.zeros(dropped.size))
    struck = np.zeros((len(lent) + 1, B), dtype=np.int8)
    struck.reshape(-1)[first] += 1
    struck.reshape(-1)[last + B] -= 1
    for t in range(1, len(lent)):
        np.add(struck[t - 1], struck[t], out=struck[t])
    lent *= struck[:-1] == 0
    return settlement


def _steps_before_end(ends: np.ndarray, B: int) -> np.ndarray:
    """Return, for each end, the steps of its episode before it; what began before the block counts as long."""
    rows, columns = np.divmod(ends, B)
    # Row by row as they come, a stable sort by column keeps each column's ends in time; on small integers
    # it is a radix sort.
    order = np.argsort(columns.astype(np.uint16 if B <= 2**16 else np.int64), kind="stable")
    row, column = rows[order], columns[order]
    before = np.full(ends.size, np.iinfo(np.int64).max)
    same = column[1:] == column[:-1]
    before[1:][same] = (row[1:] - row[:-1] - 1)[same]
    result = np.empty_like(before)
    result[order] = before
    return result
