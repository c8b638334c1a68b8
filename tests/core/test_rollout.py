"""Whole (T, B) rollouts are stepping: every internal path, every memory layout, cut anywhere."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import payback
from payback.core import repay_at_ages
from payback.core.blocks import CHUNK
from payback.core.transform import altered

from .cases import (
    Match,
    Stream,
    assert_close,
    by_definition,
    calm,
    gammas,
    matches,
    quiet,
    random_stream,
    step_through,
    streams,
)
from .libraries import LIBRARIES, rollouts, wide

pytestmark = quiet


@given(match=matches(), stream=streams(), gamma=gammas, cut=st.integers(0, 14))
@calm
def test_rollouts_are_drawer_wherever_they_are_cut(match: Match, stream: Stream, gamma: float, cut: int):
    transform, T = match.make(gamma), len(stream.rewards)
    state, shaped = transform.init(stream.rewards[0]), []
    for first, last in ((0, min(cut, T)), (min(cut, T), T)):
        state, block = payback.shape_rollout(transform, state, *stream.rows(first, last))
        shaped.append(block)
    expected, owed = by_definition(match, stream, gamma)
    assert_close(np.concatenate(shaped), expected, what="shaped")
    assert_close(payback.owed(transform, state), owed, what="owed")


def assert_rollout_is_stepping(transform: payback.RewardTransform, stream: Stream, pieces: int = 1) -> None:
    _, expected = step_through(transform, stream)
    state = transform.init(stream.rewards[0])
    assert_close(rollouts("numpy", transform, state, stream, pieces)[1], expected)


# ------------------------------------------------------------------ NumPy's two ways to settle, JAX's two to unroll

PATHS = ["_settle_by_loan", "_settle_by_row"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("delay", [1, 2, 5, 30, 70])
@pytest.mark.parametrize("ends", [0.0, 0.02, 0.5, 1.0])
def test_both_ways_to_settle(path: str, delay: int, ends: float, monkeypatch: pytest.MonkeyPatch):
    for other in PATHS:
        monkeypatch.setattr(repay_at_ages, other, getattr(repay_at_ages, path))
    assert_rollout_is_stepping(payback.match_after(0.9, delay), random_stream(delay, 60, 5, ends=ends), pieces=3)


def test_few_ends_are_settled_by_loan_and_many_by_row(monkeypatch: pytest.MonkeyPatch):
    taken = []
    for name in PATHS:
        way = getattr(repay_at_ages, name)
        monkeypatch.setattr(repay_at_ages, name, lambda *args, way=way, name=name: (taken.append(name), way(*args))[1])
    for ends in (0.005, 0.5):
        assert_rollout_is_stepping(payback.match_after(0.9, 5), random_stream(1, 300, 5, ends=ends))
    assert taken == PATHS


@pytest.mark.parametrize("unroll", [0, 100])
@pytest.mark.parametrize("delay", [1, 5, 33])
def test_both_ways_to_unroll(unroll: int, delay: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repay_at_ages, "UNROLL", unroll)
    transform, stream = payback.match_after(0.9, delay), random_stream(delay, 60, 4)
    expected = step_through(transform, stream)[1]
    with wide("jax"):
        state = LIBRARIES["jax"].init(transform, stream)
        assert_close(rollouts("jax", transform, state, stream, pieces=3)[1], expected)


def test_a_block_longer_than_a_chunk():
    for transform in (payback.match_at_end(0.99), payback.match_after(0.99, 3)):
        assert_rollout_is_stepping(transform, random_stream(2, 2 * CHUNK + 5, 2, ends=0.02))


# ------------------------------------------------------------------ layouts and sizes

LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}
MATCHES = {
    "at_end": payback.match_at_end(0.9),
    "after-1": payback.match_after(0.9, 1),
    "after-4": payback.match_after(0.9, 4),
    "evenly": payback.match_evenly(0.9, 3),
    "geometric": payback.match_geometric(0.9, 0.5),
    "when": payback.match_when(0.9),
    "grm": payback.grm(0.9, 3),
}
WITHOUT_TORCH = ("backwards", "read-only")
"""Torch has no such tensors."""


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize(
    ("layout", "torched"), [(name, t) for name in LAYOUTS for t in (False, True) if not (t and name in WITHOUT_TORCH)]
)
def test_any_memory_layout(match: str, layout: str, torched: bool):
    """A (B, T) buffer, transposed, is a (T, B) rollout like any other."""
    transform, stream = MATCHES[match], random_stream(3, 30, 5, settle=True)
    expected = step_through(transform, stream)[1]
    arrays = [None if block is None else LAYOUTS[layout](block) for block in stream]
    if torched:
        arrays = [None if block is None else torch.from_numpy(block) for block in arrays]
    state = transform.init(torch.zeros(5, dtype=torch.float64) if torched else np.zeros(5))
    assert_close(payback.shape_rollout(transform, state, *arrays)[1], expected)


def test_a_state_of_any_memory_layout():
    transform, stream = payback.match_after(0.9, 4), random_stream(3, 30, 5)
    state, _ = step_through(transform, stream)
    expected = step_through(transform, stream, state)[1]
    turned = state._replace(loans=np.asfortranarray(state.loans))
    rewards, dones = (np.asfortranarray(block) for block in stream[:2])
    assert_close(payback.shape_rollout(transform, turned, rewards, dones)[1], expected)


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize(("T", "B"), [(0, 3), (1, 1), (1, 4), (7, 1)])
def test_small_blocks(match: str, T: int, B: int):
    transform, stream = MATCHES[match], random_stream(1, T, B, ends=0.3, valid=True, settle=True)
    begin = transform.init(np.zeros(B))
    state, shaped = payback.shape_rollout(transform, begin, *stream)
    assert_close(shaped, step_through(transform, stream, begin)[1])
    assert shaped.shape == (T, B)
    assert payback.owed(transform, state).shape == (B,)


def test_numbers_as_flags():
    """0/1 integers and floats are flags, as many buffers keep them."""
    transform, stream = payback.match_when(0.9), random_stream(4, 20, 3, valid=True, settle=True)
    expected = step_through(transform, stream)[1]
    for kind in (np.int64, np.uint8, np.float32):
        flags = [None if block is None else block.astype(kind) for block in stream[1:]]
        state = transform.init(stream.rewards[0])
        assert_close(payback.shape_rollout(transform, state, stream.rewards, *flags)[1], expected)
        assert_close(step_through(transform, Stream(stream.rewards, *flags))[1], expected)


def test_torch_rewards_with_gradients():
    """A loan is remembered for many steps, so it never holds a graph: a bonus without `no_grad` leaks nothing."""
    transform, stream = payback.match_after(0.5, 1), random_stream(5, 3, 1, ends=0)
    rewards = torch.tensor(stream.rewards, requires_grad=True)
    state, shaped = payback.shape_rollout(
        transform, transform.init(rewards[0]), rewards, torch.from_numpy(stream.dones)
    )
    assert not shaped.requires_grad
    state, shaped = transform.update(state, rewards[0], torch.zeros(1, dtype=torch.bool))
    assert not any(x.requires_grad for x in (shaped, *state, payback.owed(transform, state)))


@pytest.mark.parametrize("match", MATCHES)
def test_torch_bfloat16(match: str):
    """NumPy has no bfloat16, so that its fast forms cannot take such a block: it is stepped through."""
    transform, stream = MATCHES[match], random_stream(7, 12, 3, settle=True)
    assert stream.settle is not None
    rewards, dones, settle = (torch.from_numpy(x) for x in (stream.rewards, stream.dones, stream.settle))
    rewards = rewards.bfloat16()
    begin = state = transform.init(rewards[0])
    expected = torch.empty_like(rewards)
    for t in range(12):
        state, expected[t] = transform.update(state, rewards[t], dones[t], settle=settle[t])
    _, shaped = payback.shape_rollout(transform, begin, rewards, dones, settle=settle)
    assert shaped.dtype == torch.bfloat16
    assert torch.equal(shaped, expected)


# ------------------------------------------------------------------ invalid rows


@pytest.mark.parametrize("match", MATCHES)
def test_autoreset_rows_pay_nothing_and_move_no_clock(match: str):
    """Taking the invalid rows out gives the same shaped rewards, whatever those rows held."""
    transform = MATCHES[match]
    plain = random_stream(6, 24, 2, ends=0.2, settle=True)
    held = np.full((30, 2), True)
    held[[3, 4, 11, 12, 13, 29]] = False

    def widen(block: np.ndarray, filler: Any) -> np.ndarray:
        wide = np.full((30, 2), filler, dtype=block.dtype)
        wide[held[:, 0]] = block
        return wide

    assert plain.settle is not None
    stream = Stream(widen(plain.rewards, np.nan), widen(plain.dones, True), held, widen(plain.settle, True))
    expected = step_through(transform, plain)[1]
    for state, shaped in (
        step_through(transform, stream),
        payback.shape_rollout(transform, transform.init(np.zeros(2)), *stream),
    ):
        assert_close(shaped[held[:, 0]], expected)
        assert not shaped[~held[:, 0]].any()
        assert_close(payback.owed(transform, state), payback.owed(transform, step_through(transform, plain)[0]))


@pytest.mark.parametrize("match", MATCHES)
def test_a_rollout_may_begin_with_an_invalid_row_in_mid_episode(match: str):
    """All other invalid rows stand between episodes; the first stops a clock that runs from the rollout before."""
    transform, before = MATCHES[match], random_stream(8, 5, 2, ends=0.0)
    state, _ = step_through(transform, before)
    stream = random_stream(9, 6, 2, ends=0.0)
    stream.dones[3] = True
    valid = np.array([[False], [True], [True], [True], [False], [True]]) & np.ones((6, 2), bool)
    stream = stream._replace(valid=valid)
    expected = step_through(transform, stream, state)[1]
    assert_close(payback.shape_rollout(transform, state, *stream)[1], expected)


# ------------------------------------------------------------------ the comparison itself can fail


def forgets_the_past(transform: payback.RewardTransform) -> payback.RewardTransform:
    """A mutant: every rollout begins anew, as if nothing were owed from the one before."""

    def rollout(state: Any, rewards: np.ndarray, *flags: Any) -> Any:
        return transform._block(transform.init(rewards[0]), rewards, *flags)

    return altered(transform, _block=rollout)


def counts_invalid_rows(transform: payback.RewardTransform) -> payback.RewardTransform:
    """A mutant: the clock runs on in invalid rows."""
    return altered(transform, _block=lambda s, r, d, valid, settle: transform._block(s, r, d, None, settle))


@pytest.mark.parametrize("transform", [MATCHES[name] for name in ("at_end", "after-4", "evenly", "geometric")])
@pytest.mark.parametrize(("mutant", "valid"), [(forgets_the_past, False), (counts_invalid_rows, True)])
def test_the_comparison_with_stepping_can_fail(transform: payback.RewardTransform, mutant: Any, valid: bool):
    stream = random_stream(7, 30, 3, valid=valid)
    assert_rollout_is_stepping(transform, stream, pieces=2)
    with pytest.raises(AssertionError):
        assert_rollout_is_stepping(mutant(transform), stream, pieces=2)
