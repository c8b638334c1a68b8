"""Block forms for Torch tensors on an accelerator: a (T, B) rollout in O(log T) operations, with no loop over T.

A loop over the rows would cost several kernel launches a step. Instead, every debt is a linear recurrence
x_{t+1} = a_t x_t + b_t, with a_t = 0 where it is settled and a_t = 1, b_t = 0 in invalid rows, and rows are combined in
pairs, pairs of pairs and so on. Loans repaid at fixed ages are valued at the end that settles them, so that no rounding
grows. Sums are in float64 if the device has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from payback.core.arrays import Array
from payback.core.center import CenterState, _Center
from payback.core.repay_at_ages import AgesState, RepayAtAges
from payback.core.repay_at_once import RepayAtOnce, WhenState
from payback.core.repay_geometric import GeometricState, RepayGeometric
from payback.core.scaling import RmsState, _ScaleByRms
from payback.core.transform import RewardTransform, State

Block = tuple[Array, Array, Array | None, Array | None]
"""rewards, dones, valid, settle."""


def torch_block(xp: Any, transform: RewardTransform, state: State, block: Block) -> Any:
    """Return (state, shaped) as stepping through the block does, NotImplemented for other transforms."""
    for kind, form in FORMS.items():
        if isinstance(transform, kind):
            return form(xp, transform, state, *block)
    return NotImplemented


def before_each_row(xp: Any, factor: Array, added: Array, first: Array) -> tuple[Array, Array]:
    """Return x_t before each of T rows, and x_T, of x_{t+1} = factor_t x_t + added_t with x_0 = `first`.

    Doubling (Hillis and Steele 1986): after k rounds each row includes the 2ᵏ rows before it.
    """
    a = xp.concat((xp.zeros_like(factor[:1]), factor))
    x = xp.concat((xp.broadcast_to(first, added[:1].shape), added))
    reach = 1
    while reach < a.shape[0]:
        # A debt of 0 stays 0 if the product overflows.
        carried = xp.where(x[:-reach] == 0, 0.0, a[reach:] * x[:-reach])
        x = xp.concat((x[:reach], x[reach:] + carried))
        a = xp.concat((a[:reach], a[reach:] * a[:-reach]))
        reach *= 2
    return x[:-1], x[-1]


def _wide(xp: Any, x: Array) -> Array:
    return x.to(xp.float32 if x.device.type == "mps" else xp.float64)


def _paid(xp: Any, shaped: Array, rewards: Array, valid: Array | None) -> Array:
    shaped = shaped.to(rewards.dtype)
    return shaped if valid is None else xp.where(valid, shaped, 0.0)


def _debts(
    xp: Any, rewards: Array, debt: Array, growth: float, cleared: Array, kept: Array, valid: Array | None, gamma: float
) -> tuple[Array, Array]:
    """Return the debt before each row and after the last; `cleared`: settled rows, `kept`: what each row lends."""
    factor = xp.where(cleared, 0.0, xp.full_like(kept, growth))
    added = kept / gamma
    if valid is not None:
        factor, added = xp.where(valid, factor, 1.0), xp.where(valid, added, 0.0)
    return before_each_row(xp, factor, added, debt)


def _geometric(
    xp: Any, own: RepayGeometric, state: GeometricState, rewards: Array, dones: Array, valid: Any, settle: Any
) -> tuple[GeometricState, Array]:
    F = _wide(xp, rewards)
    kept = xp.where(dones, 0.0, F)
    debts, left = _debts(xp, F, _wide(xp, state.debt), own.rate / own.gamma, dones, kept, valid, own.gamma)
    shaped = xp.where(dones, -debts, F - (1 - own.rate) * debts)
    return GeometricState(left.to(state.debt.dtype), state.terms), _paid(xp, shaped, rewards, valid)


def _at_once(
    xp: Any, own: RepayAtOnce, state: Any, rewards: Array, dones: Array, valid: Any, settle: Any
) -> tuple[Any, Array]:
    F = _wide(xp, rewards)
    events = dones if settle is None or not isinstance(state, WhenState) else dones | settle
    lent = _wide(xp, state.lent)
    interest = xp.where(lent == 0, 1.0, xp.exp(-math.log(own.gamma) * _wide(xp, state.age)))
    kept = xp.where(dones, 0.0, F)
    debts, left = _debts(xp, F, lent * interest, 1 / own.gamma, events, kept, valid, own.gamma)
    shaped = kept - xp.where(events, debts, 0.0)
    return own._kind(left.to(rewards.dtype), xp.zeros_like(state.age), state.terms), _paid(xp, shaped, rewards, valid)


def _at_ages(
    xp: Any, own: RepayAtAges, state: AgesState, rewards: Array, dones: Array, valid: Any, settle: Any
) -> tuple[AgesState, Array]:
    """Repay over W ages; invalid rows are taken out first and put back as 0."""
    W, T = state.loans.shape[0], rewards.shape[0]
    if W == 0 or T == 0:
        return state, xp.zeros_like(rewards)
    if valid is not None:
        order = xp.argsort((~valid).to(xp.uint8), stable=True, axis=0)  # valid rows first, in time
        place = xp.argsort(order, axis=0)
        rows = valid.sum(0)
        loans, shaped = _repaid(xp, own, state.loans, rewards.gather(0, order), dones.gather(0, order), rows)
        return AgesState(loans, state.terms), xp.where(valid, shaped.gather(0, place), 0.0)
    rows = xp.full(rewards.shape[1:], T, dtype=xp.int64, device=rewards.device)
    loans, shaped = _repaid(xp, own, state.loans, rewards, dones, rows)
    return AgesState(loans, state.terms), shaped


def _repaid(xp: Any, own: RepayAtAges, loans: Array, rewards: Array, dones: Array, rows: Array) -> tuple[Array, Array]:
    """Return the loans left after each column's `rows`, newest first, and the shaped rewards."""
    W, T, device = loans.shape[0], rewards.shape[0], rewards.device
    lent = _wide(xp, xp.concat((loans.flip(0), rewards)))
    step = xp.arange(W + T, device=device)[:, None]
    ends = xp.concat((xp.zeros_like(loans, dtype=xp.bool), dones))
    last = xp.where(ends, step, -1).cummax(0).values  # the last end up to each row, itself included
    begun = xp.concat((xp.full_like(last[:1], -1), last[:-1]))  # the last end before each row
    due, rest = (xp.asarray(weights, dtype=lent.dtype, device=device) for weights in own._due_and_rest)
    paid = xp.zeros_like(lent[W:])
    for k in np.flatnonzero(own._shares) + 1:
        loan = lent[W - k : W - k + T]
        paid += due[k - 1] * xp.where(step[W - k : W - k + T] > begun[W:], loan, 0.0)
    end = xp.where(ends, step, W + T + W).flip(0).cummin(0).values.flip(0)  # the end that settles each row's loan
    ahead = end - step
    worth = xp.where((ahead > 0) & (ahead <= W), lent * rest[(ahead - 1).clamp(0, W - 1)], 0.0)
    settled, _ = before_each_row(xp, xp.where(ends, 0.0, xp.ones_like(lent)), worth * ~ends, xp.zeros_like(lent[0]))
    shaped = xp.where(dones, -settled[W:], lent[W:] - paid).to(rewards.dtype)
    # After `rows` rows the newest loan stands in row W + rows − 1 of `lent`; loans before the last end are settled.
    at = W + rows[None] - 1 - xp.arange(W, device=device)[:, None]
    final = last.gather(0, W + rows[None] - 1)
    return xp.where(at > final, lent.gather(0, at), 0.0).to(loans.dtype), shaped


def _counts(xp: Any, rewards: Array, valid: Array | None) -> Array:
    like = _wide(xp, rewards[:0].sum(1))
    if valid is None:
        return like.new_full((rewards.shape[0],), rewards.shape[1])
    return valid.sum(1).to(like.dtype)


def _centered(
    xp: Any, own: Any, state: CenterState, rewards: Array, dones: Array, valid: Any, settle: Any
) -> tuple[CenterState, Array]:
    n, wide = _counts(xp, rewards, valid), _wide(xp, rewards)
    fade = own._fade**n
    weight = _wide(xp, state.count if own._fade == 1 else state.weight)
    weights, weight_after = before_each_row(xp, fade, n, weight)
    total = weight * _wide(xp, state.mean + state.lost)
    totals, total_after = before_each_row(xp, fade, wide.sum(1), total)
    means = totals / weights.clamp(min=1e-30)
    mean = (total_after / weight_after.clamp(min=1e-30)).to(state.mean.dtype)
    after = CenterState(
        state.count + n.sum().to(state.count.dtype),
        weight_after.to(state.weight.dtype),
        mean,
        xp.zeros_like(state.lost),
        state.fade,
        state.merges,
    )
    return after, _paid(xp, rewards - means.to(rewards.dtype)[:, None], rewards, valid)


def _by_rms(
    xp: Any, own: Any, state: RmsState, rewards: Array, dones: Array, valid: Any, settle: Any
) -> tuple[RmsState, Array]:
    n = _counts(xp, rewards, valid)
    fade = own._fade**n
    weights, weight = before_each_row(xp, fade, n, _wide(xp, state.weight))
    squares, square = before_each_row(xp, fade, _wide(xp, rewards).square().sum(1), _wide(xp, state.squares))
    rms = xp.where(squares > 0, (squares / xp.where(weights > 0, weights, 1.0)).sqrt(), 1.0)
    after = RmsState(weight.to(state.weight.dtype), square.to(state.squares.dtype), state.fade)
    return after, _paid(xp, rewards / rms.to(rewards.dtype)[:, None], rewards, valid)


FORMS = {
    RepayGeometric: _geometric,
    RepayAtOnce: _at_once,
    RepayAtAges: _at_ages,
    _Center: _centered,
    _ScaleByRms: _by_rms,
}
