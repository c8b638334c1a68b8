"""Loans repaid at fixed ages: the mechanism behind `match_after` and `match_evenly`.

`shares[k−1]` is the part of a loan that is repaid at age k = 1 … W, adding up to 1. With L_k the loan of age
k at step t,

    F'_t = F_t − Σ_{k=1}^{W} γ⁻ᵏ shares[k−1] L_k                          t < N−1
    F'_{N−1} = −Σ_{k=1}^{W} γ⁻ᵏ (shares[k−1] + … + shares[W−1]) L_k                               (drawer)

No shares (W = 0) means that each loan is repaid at once (trivial_m): nothing is paid.

`update` says it once, for every library. The block forms do the same for (T, B) rewards at once; the tests
hold them against stepping.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, constant, float_dtype, namespace
from payback.core.blocks import invalid_only_between_episodes, lag_block, window_block
from payback.core.blocks_jax import UNROLL, countdown_block, unrolled_block
from payback.core.transform import RewardTransform
from payback.core.validate import fit_state, read_state, read_step


class WindowState(NamedTuple):
    """The loans that are not repaid in full."""

    loans: Array
    """(W, B), newest first; row k−1 has age k at the next step."""


def window_match(name: str, gamma: float, shares: np.ndarray) -> RewardTransform:
    """Repay the share `shares[k−1]` of each loan at age k, and all that is left at the last step."""
    W = len(shares)
    with np.errstate(over="ignore"):  # init refuses what overflows, once it knows the dtype
        interest = gamma ** -np.arange(1.0, W + 1)
        left = np.cumsum(shares[::-1])[::-1]
        due_and_rest = np.stack([interest * shares, interest * left])
    due_soon, rest_of = due_and_rest

    def init(example: Array) -> WindowState:
        xp = namespace(example)
        dtype = float_dtype(xp, example)
        largest = float(xp.finfo(dtype).max)
        if W and not interest[-1] < largest:
            limit = math.ceil(math.log(largest) / -math.log(gamma)) - 1
            raise ValueError(
                f"{name}: the interest γ⁻ᵏ of a loan overflows {dtype} at γ = {gamma} after {limit} steps, "
                f"and {W} are asked for; use at most {limit}, or rewards in float64"
            )
        row = xp.zeros_like(example, dtype=dtype)
        return WindowState(xp.stack([row] * (W + 1))[:W])

    def update(
        state: WindowState,
        reward: Array,
        done: Array,
        valid: Array | None = None,
        settle: Array | None = None,
    ) -> tuple[WindowState, Array]:
        read_state(name, state, WindowState)
        _fits(name, state, W)
        xp, reward, done, valid = read_step(name, state.loans, reward, done, valid)
        if xp is np and W and valid is None and not np.count_nonzero(done):
            return common_step(state, reward)
        return step(xp, state, reward, done, valid)

    def step(xp: Any, state: WindowState, reward: Array, done: Array, valid: Array | None) -> tuple[WindowState, Array]:
        due, rest = _weigh(xp, due_and_rest, state.loans)
        shaped = xp.where(done, -rest, reward - due) if W else xp.zeros_like(reward)
        loans = xp.concat((reward[None], state.loans))[:W]
        loans = xp.where(done, 0.0, loans)
        if valid is not None:
            shaped, loans = (
                xp.where(valid, shaped, 0.0),
                xp.where(valid, loans, state.loans),
            )
        return WindowState(loans), shaped

    def common_step(state: WindowState, reward: np.ndarray) -> tuple[WindowState, np.ndarray]:
        """No end, nothing to settle."""
        shaped = reward - _weigh(np, due_soon, state.loans)
        return WindowState(np.concatenate((reward[None], state.loans[:-1]))), shaped

    def quick(state: WindowState, reward: np.ndarray, done: np.ndarray | None) -> tuple[WindowState, np.ndarray] | None:
        fits = type(state) is WindowState and type(state.loans) is np.ndarray
        if not fits or state.loans.dtype != reward.dtype or state.loans.shape != (W, len(reward)):
            return None
        return step(np, state, reward, done, None) if done is not None else common_step(state, reward)

    def owed(state: WindowState) -> Array:
        read_state(name, state, WindowState)
        _fits(name, state, W)
        return _weigh(namespace(state.loans), rest_of, state.loans)

    def drop(state: WindowState, where: Array) -> WindowState:
        xp = namespace(state.loans)
        return WindowState(xp.where(where, 0.0, state.loans))

    def rollout(
        state: WindowState, rewards: Array, dones: Array, valid: Array | None, settle: Array | None
    ) -> tuple[WindowState, Array]:
        read_state(name, state, WindowState)
        fit_state(name, state.loans, rewards)
        _fits(name, state, W)
        xp = namespace(rewards)
        if xp is np:
            if valid is not None and not invalid_only_between_episodes(dones, valid, ~state.loans.any(axis=0)):
                return NotImplemented
            block = window_block if np.count_nonzero(shares) > 1 else lag_block
            loans, shaped = block(due_and_rest, state.loans, rewards, dones)
        elif is_jax_namespace(xp) and valid is None and W <= UNROLL:
            loans, shaped = unrolled_block(xp, due_and_rest, state.loans, rewards, dones)
        elif is_jax_namespace(xp) and valid is None and np.count_nonzero(shares) == 1:
            loans, shaped = countdown_block(xp, gamma, state.loans, rewards, dones)
        else:
            return NotImplemented
        return WindowState(loans), shaped

    return RewardTransform(
        init, update, gamma, owed=owed, drop=drop, carries=True, rollout=rollout, quick=quick if W else None
    )


def _weigh(xp: Any, weights: np.ndarray, loans: Array) -> Array:
    """Σ_k weights[…, k]·loans[k], in full precision on every device.

    Not a matrix product outside NumPy: accelerators round its inputs to bfloat16 or TF32 by default.
    """
    if xp is not np or weights.dtype != loans.dtype:
        weights = constant(xp, weights, loans)
    if xp is np:
        return weights.dot(loans)  # the numbers of `@`, in half its time for a few environments
    return xp.sum(weights[..., None] * loans, axis=-2)


def _fits(name: str, state: WindowState, W: int) -> None:
    if state.loans.shape[0] != W:
        raise ValueError(
            f"{name}: the state holds loans of the last {state.loans.shape[0]} steps, this transform repays over {W}; "
            "use the state that this transform's init or update returned"
        )
