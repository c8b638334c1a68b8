"""Loans repaid at fixed ages: the mechanism behind `match_after`, `match_evenly` and `match_from_ages`.

`shares[k−1]` is the part of a loan that is repaid at age k = 1 … W, adding up to 1. With L_k the loan of age k at
step t,

    F′_t = F_t − Σ_{k=1}^{W} γ⁻ᵏ shares[k−1] L_k                          t < N−1
    F′_{N−1} = −Σ_{k=1}^{W} γ⁻ᵏ (shares[k−1] + … + shares[W−1]) L_k                               (drawer)

No shares (W = 0) means that each loan is repaid at once (trivial_m): nothing is paid. `step` says it for every array
library; the block forms below do the same for a (T, B) block at once, and the tests hold them to stepping.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, constant, float_dtype, namespace, wide_dtype
from payback.core.block_rows import accumulate, invalid_only_between_episodes, split_by_row
from payback.core.repay_at_ages_jax import UNROLL, countdown_block, unrolled_block
from payback.core.transform import Door, Match, Schedule
from payback.core.validate import OWN, Fit, read_state, read_terms, refuse_too_many

PER_LOAN = 8
"""Visiting one loan that an end settles costs about as much as going through so many rewards row by row."""


class AgesState(NamedTuple):
    """The loans that are not repaid in full."""

    loans: Array
    """(W, B), newest first; row k−1 has age k at the next step."""
    terms: Array
    """(1 + W,) γ, then the share repaid at each age."""


def match_at_ages(name: str, gamma: float, shares: np.ndarray, call: str) -> Match:
    """Repay the share `shares[k−1]` of each loan at age k, and all that is left at the last step."""
    W, terms = len(shares), np.concatenate(([gamma], shares))
    with np.errstate(over="ignore", invalid="ignore"):  # init refuses what overflows, once it knows the dtype
        interest = gamma ** -np.arange(1.0, W + 1)
        due_and_rest = np.stack((interest * shares, interest * np.cumsum(shares[::-1])[::-1]))
    due_of, rest_of = due_and_rest

    def init(example: Array) -> AgesState:
        xp = namespace(example)
        dtype = float_dtype(xp, example)
        largest = float(xp.finfo(dtype).max)
        if W and not interest[-1] < largest:
            limit = math.ceil(math.log(largest) / -math.log(gamma)) - 1
            raise ValueError(
                f"{name}: the interest γ⁻ᵏ of a loan overflows {dtype} at γ = {gamma} after {limit} steps, "
                f"and {W} are asked for; use at most {limit}, or rewards in float64"
            )
        with refuse_too_many(name, "the longest age", W):
            row = xp.zeros_like(example, dtype=dtype)
            return AgesState(xp.stack([row] * (W + 1))[:W], constant(xp, terms, row, wide_dtype(xp)))

    def fit(state: AgesState) -> Fit:
        read_state(name, state, AgesState)
        if state.loans.shape[0] != W:
            raise ValueError(
                f"{name}: the state holds loans of the last {state.loans.shape[0]} steps, this transform repays over "
                f"{W}; {OWN}"
            )
        read_terms(name, state.terms, terms)
        return state.loans, state.loans.shape[1:]

    def step(
        xp: Any, state: AgesState, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[AgesState, Array]:
        loans = state.loans
        if W == 0:
            return state, xp.zeros_like(reward)
        after = xp.concat((reward[None], loans[:-1]))
        if done is None:
            shaped = reward - _weigh(xp, due_of, loans)
        else:
            due, rest = _weigh(xp, due_and_rest, loans)
            shaped, after = xp.where(done, -rest, reward - due), xp.where(done, 0.0, after)
        if valid is not None:
            shaped, after = xp.where(valid, shaped, 0.0), xp.where(valid, after, loans)
        return AgesState(after, state.terms), shaped

    def owed(state: AgesState) -> Array:
        return _weigh(namespace(state.loans), rest_of, state.loans)

    def drop(state: AgesState, where: Array) -> AgesState:
        return AgesState(namespace(state.loans).where(where, 0.0, state.loans), state.terms)

    def block(state: AgesState, rewards: Array, dones: Array, valid: Array | None, settle: Array | None) -> Any:
        xp, at_one_age = namespace(rewards), np.count_nonzero(shares) == 1
        if W == 0:
            return state, xp.zeros_like(rewards)
        if xp is np:
            if valid is not None and not invalid_only_between_episodes(dones, valid, ~state.loans.any(axis=0)):
                return NotImplemented
            loans, shaped = _numpy_block(due_of, rest_of, state.loans, rewards, dones, at_one_age)
        elif is_jax_namespace(xp) and valid is None and W <= UNROLL:
            loans, shaped = unrolled_block(xp, due_of, rest_of, state.loans, rewards, dones)
        elif is_jax_namespace(xp) and valid is None and at_one_age:
            loans, shaped = countdown_block(xp, gamma, state.loans, rewards, dones)
        else:
            return NotImplemented
        return AgesState(loans, state.terms), shaped

    return Match(
        init,
        Door(name, fit, step),
        gamma=gamma,
        owed=owed,
        drop=drop,
        falls_due_alone=True,
        _schedule=Schedule(np.concatenate(([0.0 if W else 1.0], shares))),
        _block=block,
        _call=call,
    )


def _weigh(xp: Any, weights: np.ndarray, loans: Array) -> Array:
    """Σ_k weights[…, k]·loans[k], in full precision on every device.

    Not a matrix product outside NumPy, because accelerators round its inputs to bfloat16 or TF32 by default.
    """
    if xp is np:
        return (weights if weights.dtype == loans.dtype else weights.astype(loans.dtype)).dot(loans)
    columns = weights.reshape(*weights.shape, *(1,) * (loans.ndim - 1))
    return xp.sum(constant(xp, columns, loans) * loans, axis=weights.ndim - 1)


def _numpy_block(
    due_of: np.ndarray, rest_of: np.ndarray, loans: np.ndarray, rewards: np.ndarray, dones: np.ndarray, at_one_age: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Repay each loan in shares over W = len(loans) steps, or in one sum at that age, the rest at its episode's end.

    Returns the loans left, newest first, and the shaped rewards.
    """
    W, T = len(loans), len(rewards)
    # Row t + W is step t, so that the loans carried in need no case of their own.
    rewards = np.ascontiguousarray(rewards)
    lent = np.ascontiguousarray(np.concatenate((loans[::-1], rewards)))
    ends = np.flatnonzero(dones)
    if at_one_age:
        # Few ends are settled loan by loan; for many, going through all rows is cheaper, because its cost is fixed.
        settle = _settle_by_loan if ends.size * W * PER_LOAN < rewards.size else _settle_by_row
        settlement = settle(rest_of, lent, ends)
        shaped = np.multiply(lent[:T], -float(due_of[-1]))  # a NumPy scalar would widen float32
        shaped += rewards
    else:
        settlement = _settle_by_loan(rest_of, lent.copy(), ends)
        due = np.ascontiguousarray(due_of[::-1], dtype=rewards.dtype)
        shaped = np.empty_like(rewards)
        columns, starts = split_by_row(ends, *rewards.shape)
        for t in range(T):
            np.dot(due, lent[t : t + W], out=shaped[t])
            ended = columns[starts[t] : starts[t + 1]]
            if ended.size:
                lent[t : t + W + 1, ended] = 0
        np.subtract(rewards, shaped, out=shaped)
    shaped.reshape(-1)[ends] = -settlement
    return lent[T:][::-1].copy(), shaped


def _settle_by_loan(rest: np.ndarray, lent: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return Σ_{k=1}^{D} rest[k−1] L_k at each end, over its own episode's loans, and strike those out of `lent`."""
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
    """Return and strike out the same as `_settle_by_loan`, where every loan is repaid at age D = len(rest)."""
    D, B = len(rest), lent.shape[1]
    last = ends + D * B
    first = last - np.minimum(_steps_before_end(ends, B), D) * B
    # A sum starts with the first loan that its end will find unpaid: what was added up before is dropped.
    dropped = np.sort(first[first >= B] - B)
    _, settlement = accumulate(float(rest[0]), np.zeros(lent.shape[1:]), lent, last, dropped, np.zeros(dropped.size))
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
    # Row by row as they come, a stable sort by column keeps each column's ends in time; on small integers it is a
    # radix sort.
    order = np.argsort(columns.astype(np.uint16 if B <= 2**16 else np.int64), kind="stable")
    row, column = rows[order], columns[order]
    before = np.full(ends.size, np.iinfo(np.int64).max)
    same = column[1:] == column[:-1]
    before[1:][same] = (row[1:] - row[:-1] - 1)[same]
    result = np.empty_like(before)
    result[order] = before
    return result
