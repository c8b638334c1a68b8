"""Repay loans at fixed ages: the mechanism behind `match_after`, `match_evenly` and `match_from_ages`.

`shares[k−1]` is the share of a loan that is repaid at age k = 1 … W; the shares add up to 1. With L_k the loan of age k
at step t,

    F′_t = F_t − Σ_{k=1}^{W} γ⁻ᵏ shares[k−1] L_k                          t < N−1
    F′_{N−1} = −Σ_{k=1}^{W} γ⁻ᵏ (shares[k−1] + … + shares[W−1]) L_k                               (drawer)

Without shares (W = 0) each loan is repaid at once (trivial_m), so nothing is paid. The state holds the loans of the
whole window, because the rounding error of the recursion debt ← debt/γ + F − due grows as γ⁻ᵗ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, Mask, constant, float_dtype, namespace, replaced, wide_constant
from payback.core.blocks import accumulate, before_each_row, everywhere, split_by_row, wide
from payback.core.transform import Repayment, Schedule
from payback.core.validate import OWN, ExpectedShape, longest_held, read_state, refuse_too_many

UNROLL = 32  # the longest window that JAX unrolls; longer ones are counted down or scanned
PER_LOAN = 8  # visiting one loan that an end settles costs about as much as passing this many rewards row by row


class AgesState(NamedTuple):
    """The open loans."""

    loans: Array  # (W, B), newest first; row k−1 has age k at the next step
    terms: Array  # (1 + W,) γ, then the share repaid at each age
    constants = ("terms",)


@dataclass(frozen=True, repr=False)
class RepayAtAges(Repayment):
    """Repay the share `_shares[k−1]` of each loan at age k, and the rest at the last step."""

    gamma: float
    _kind = AgesState
    falls_due_alone = True

    def __post_init__(self) -> None:
        """Compute the weights now, so that too many ages raise here."""
        _ = self._due_and_rest

    @property
    def _shares(self) -> np.ndarray:
        """The shares (W,) to repay at the ages 1 … W."""
        raise NotImplementedError

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.concatenate(([self.gamma], self._shares))

    @cached_property
    def _interest(self) -> np.ndarray:
        with np.errstate(over="ignore"):  # init refuses what overflows, once it knows the dtype
            return self.gamma ** -np.arange(1.0, len(self._shares) + 1)

    @cached_property
    def _due_and_rest(self) -> np.ndarray:
        shares = self._shares
        if not len(shares):
            return np.zeros((2, 1))  # for one row without loans, because Orbax cannot save an empty array
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack((self._interest * shares, self._interest * np.cumsum(shares[::-1])[::-1]))

    def init(self, example: Any, /) -> AgesState:
        """Begin without loans; raise if the interest overflows the dtype."""
        xp, W = namespace(example), len(self._interest)
        dtype = float_dtype(xp, example)
        if W and not self._interest[-1] < float(xp.finfo(dtype).max):
            limit = longest_held(xp, dtype, self.gamma)
            what = f"the interest γ⁻ᵏ of a loan overflows {dtype} at γ = {self.gamma} after {limit} steps"
            remedy = f"use at most {limit}, or rewards in float64"
            raise ValueError(f"{self._name}: {what}, and {W} are asked for; {remedy}")
        with refuse_too_many(self._name, "the longest age", W):
            row = xp.zeros_like(example, dtype=dtype)
            return AgesState(xp.stack([row] * (W + 1))[: W or 1], wide_constant(xp, self._terms, row))

    def _expected(self, state: AgesState) -> ExpectedShape:
        W = len(self._interest) or 1
        if type(state) is AgesState and len(state.loans) != W:
            found = f"loans of the last {len(state.loans)} steps"
            raise ValueError(f"{self._name}: the state holds {found}, this transform repays over {W}; {OWN}")
        read_state(self._name, state, AgesState, self._terms)
        return state.loans, state.loans.shape[1:]

    def _repay(self, xp: Any, state: Any, reward: Array, done: Mask, settle: Mask) -> tuple[AgesState, Array]:
        loans = state.loans
        if not len(self._interest):
            return state, xp.zeros_like(reward)
        after = xp.concat((reward[None], loans[:-1]))
        if done is None:
            shaped = reward - _weigh(xp, self._due_and_rest[0], loans)
        else:
            due, rest = _weigh(xp, self._due_and_rest, loans)
            shaped, after = replaced(xp, reward - due, done, -rest), replaced(xp, after, done, 0.0)
        return AgesState(after, state.terms), shaped

    def _where(self, xp: Any, where: Array, new: Any, old: Any) -> AgesState:
        return AgesState(xp.where(where, new[0], old.loans), old.terms)

    def owed(self, state: AgesState, /) -> Array:
        """Return what is left of each loan, with its interest."""
        loans = state.loans
        return _weigh(np if type(loans) is np.ndarray else namespace(loans), self._due_and_rest[1], loans)

    def _schedule(self) -> Schedule:
        return Schedule(np.concatenate(([0.0 if len(self._interest) else 1.0], self._shares)))

    @cached_property
    def _at_one_age(self) -> bool:
        return np.count_nonzero(self._shares) == 1

    def _block(self, state: AgesState, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        xp, W = namespace(rewards), len(self._interest)
        if W == 0:
            return state, xp.zeros_like(rewards)
        if not is_jax_namespace(xp):
            return super()._block(state, rewards, dones, valid, settle)
        if valid is None and W <= UNROLL:
            loans, shaped = _unrolled_block(xp, self._due_and_rest, state.loans, rewards, dones)
        elif valid is None and self._at_one_age:
            loans, shaped = _countdown_block(xp, self.gamma, state.loans, rewards, dones)
        else:
            return NotImplemented
        return AgesState(loans, state.terms), shaped

    def _numpy_block(self, state: Any, rewards: np.ndarray, dones: np.ndarray, settle: Mask) -> Any:
        due_of, rest_of = self._due_and_rest
        W, T = len(state.loans), len(rewards)
        # Row t + W is step t; the rows before hold the loans of the state.
        rewards = np.ascontiguousarray(rewards)
        lent = np.ascontiguousarray(np.concatenate((state.loans[::-1], rewards)))
        ends = np.flatnonzero(dones)
        if self._at_one_age:
            # Few ends are settled loan by loan; for many, a pass over all rows is cheaper, because its cost is fixed.
            settle_ends = _settle_by_loan if ends.size * W * PER_LOAN < rewards.size else _settle_by_row
            settlement = settle_ends(rest_of, lent, ends)
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
        return AgesState(lent[T:][::-1].copy(), state.terms), shaped

    def _device_block(self, xp: Any, state: Any, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        if valid is None:
            rows = xp.full(rewards.shape[1:], len(rewards), dtype=xp.int64, device=rewards.device)
            return self._repay_on_device(xp, state, rewards, dones, rows)
        # Take the invalid rows out, and put them back.
        order = xp.argsort((~valid).to(xp.uint8), stable=True, axis=0)  # valid rows first, in time
        taken = rewards.gather(0, order), dones.gather(0, order), valid.sum(0)
        after, shaped = self._repay_on_device(xp, state, *taken)
        return after, shaped.gather(0, xp.argsort(order, axis=0))

    def _repay_on_device(self, xp: Any, state: Any, rewards: Any, dones: Any, rows: Any) -> tuple[AgesState, Array]:
        """Return the state after each column's `rows`, and the shaped rewards."""
        # A loan that an end settles is valued at that end, so that no rounding grows.
        loans, T, device = state.loans, rewards.shape[0], rewards.device
        W = loans.shape[0]
        lent = wide(xp, xp.concat((loans.flip(0), rewards)))
        step = xp.arange(W + T, device=device)[:, None]
        ends = xp.concat((xp.zeros_like(loans, dtype=xp.bool), dones))
        last = xp.where(ends, step, -1).cummax(0).values  # the last end up to each row, itself included
        begun = xp.concat((xp.full_like(last[:1], -1), last[:-1]))  # the last end before each row
        due, rest = (constant(xp, weights, lent) for weights in self._due_and_rest)
        paid = xp.zeros_like(lent[W:])
        for k in np.flatnonzero(self._shares) + 1:
            loan = lent[W - k : W - k + T]
            paid += due[k - 1] * xp.where(step[W - k : W - k + T] > begun[W:], loan, 0.0)
        end = xp.where(ends, step, W + T + W).flip(0).cummin(0).values.flip(0)  # the end that settles each row's loan
        ahead = end - step
        worth = xp.where((ahead > 0) & (ahead <= W), lent * rest[(ahead - 1).clamp(0, W - 1)], 0.0)
        settled = before_each_row(xp, xp.where(ends, 0.0, xp.ones_like(lent)), worth * ~ends, xp.zeros_like(lent[0]))
        shaped = xp.where(dones, -settled[W:-1], lent[W:] - paid)
        # After `rows` rows the newest loan stands in row W + rows − 1 of `lent`; loans before the last end are settled.
        at = W + rows[None] - 1 - xp.arange(W, device=device)[:, None]
        final = last.gather(0, W + rows[None] - 1)
        left = xp.where(at > final, lent.gather(0, at), 0.0).to(loans.dtype)
        return AgesState(left, state.terms), shaped


def _weigh(xp: Any, weights: np.ndarray, loans: Array) -> Array:
    """Σ_k weights[…, k]·loans[k], in full precision on every device."""
    # Not a matrix product outside NumPy, because accelerators round its inputs to bfloat16 or TF32 by default.
    if xp is np:
        return (weights if weights.dtype == loans.dtype else weights.astype(loans.dtype)).dot(loans)
    columns = weights.reshape(*weights.shape, *(1,) * (loans.ndim - 1))
    return xp.sum(constant(xp, columns, loans) * loans, axis=weights.ndim - 1)


def _settle_by_loan(rest: np.ndarray, lent: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return Σ_{k=1}^{D} rest[k−1] L_k at each end over its own episode's loans, and delete those from `lent`."""
    D, B = len(rest), lent.shape[1]
    outstanding = np.minimum(_steps_before_end(ends, B), D)
    order = np.argsort(-outstanding, kind="stable")
    at, flat = ends[order] + D * B, lent.reshape(-1)
    # Longest first, so those that still have a loan of age k are the first `many[k]`.
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
    """Do the same as `_settle_by_loan` if every loan is repaid at age D = len(rest)."""
    D, B = len(rest), lent.shape[1]
    last = ends + D * B
    first = last - np.minimum(_steps_before_end(ends, B), D) * B
    # A sum starts with the first loan that its end finds unpaid, so drop what was added before.
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
    """Return the steps of each end's episode before it; an episode from before the block counts as infinitely long."""
    rows, columns = np.divmod(ends, B)
    # A stable sort by column keeps each column's ends in time; on small integers it is a radix sort.
    order = np.argsort(columns.astype(np.uint16 if B <= 2**16 else np.int64), kind="stable")
    row, column = rows[order], columns[order]
    before = np.full(ends.size, np.iinfo(np.int64).max)
    same = column[1:] == column[:-1]
    before[1:][same] = (row[1:] - row[:-1] - 1)[same]
    result = np.empty_like(before)
    result[order] = before
    return result


# ------------------------------------------------------------------ whole blocks in JAX

# `lax.scan` would copy the window at every step. A short window is unrolled: each age is a shifted view of the block,
# and XLA fuses them. In a long delay each loan is valued at the end that settles it: every delay costs the same.
# The bodies of the scans are cached, because outside `jit` JAX compiles a scan with a new function at every call.


def _unrolled_block(xp: Any, weights: np.ndarray, loans: Array, rewards: Array, dones: Array) -> tuple[Array, Array]:
    """Repay over W = len(loans) steps as the step does; return the loans left, newest first, and the shaped rewards."""
    from jax import lax

    W, T = loans.shape[0], rewards.shape[0]
    due, rest = weights.astype(rewards.dtype)
    lent = xp.concatenate((loans[::-1], rewards))
    start = everywhere(xp, dones, xp.int32(W))
    age = xp.concatenate((start[None], lax.scan(_count(xp, W), start, dones)[1]))  # (T+1, B), at most W
    paid, settled = xp.zeros_like(rewards), xp.zeros_like(rewards)
    for k in range(1, W + 1):
        loan = xp.where(age[:-1] >= k, lent[W - k : W - k + T], 0)
        if due[k - 1]:
            paid = paid + due[k - 1] * loan
        settled = settled + rest[k - 1] * loan
    shaped = xp.where(dones, -settled, rewards - paid)
    left = xp.where(age[-1] >= xp.arange(W, 0, -1)[:, None], lent[T:], 0)
    return left[::-1], shaped


def _countdown_block(xp: Any, gamma: float, loans: Array, rewards: Array, dones: Array) -> tuple[Array, Array]:
    """Repay each loan at age D = len(loans), or at its episode's end."""
    from jax import lax

    D, T, log_interest = loans.shape[0], rewards.shape[0], -math.log(gamma)
    lent = xp.concatenate((loans[::-1], rewards))
    ends = xp.concatenate((xp.zeros_like(loans, dtype=bool), dones))
    far, nothing = (everywhere(xp, dones, value) for value in (xp.int32(D + 1), rewards.dtype.type(0)))
    _, ahead = lax.scan(_count(xp, D + 1), far, ends, reverse=True)
    _, settlement = lax.scan(_settle(xp, D, log_interest), nothing, (lent, ends, ahead))
    # A loan is due at age D only if no end settles it before: `ahead` counts from its own step.
    due = xp.where(ahead[:T] < D, 0.0, lent[:T]) * float(gamma**-D)
    left = xp.where(ahead[T:] > D, lent[T:], 0.0)
    return left[::-1], xp.where(dones, -settlement[D:], rewards - due)


@lru_cache(maxsize=64)
def _count(xp: Any, most: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda steps, end: (xp.where(end, 0, xp.minimum(steps + 1, most)),) * 2


@lru_cache(maxsize=64)
def _settle(xp: Any, D: int, log_interest: float) -> Callable[[Array, tuple[Array, Array, Array]], tuple[Array, Array]]:
    def settle(debt: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        loan, end, steps = row
        at_end = loan * xp.exp(steps.astype(loan.dtype) * log_interest)
        return xp.where(end, 0.0, debt + xp.where(steps <= D, at_end, 0.0)), debt

    return settle
