"""Centring: the mean of earlier calls only, shared over environments, exact for long, mergeable."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import payback

from .cases import Stream, assert_close, calm, random_stream, step_through, streams
from .libraries import LIBRARIES, rollouts, wide

HORIZONS = [None, 1.5, 7, 1000.0]


def mean_before(stream: Stream, horizon: float | None) -> np.ndarray:
    """F̄ before each row, from its definition: every earlier valid reward with its own weight.

    What is old keeps (1 − 1/horizon)ⁿ of its weight after n more valid rewards of *later* calls.
    """
    fade = 1.0 if horizon is None else 1 - 1 / horizon
    valid = np.ones_like(stream.dones) if stream.valid is None else stream.valid
    seen = valid.sum(axis=1)
    means = []
    for t in range(len(seen)):
        weight = np.array([fade ** seen[s + 1 : t].sum() for s in range(t)])
        total = (weight * seen[:t]).sum()
        sums = np.where(valid[:t], stream.rewards[:t], 0.0).sum(axis=1)
        means.append((weight * sums).sum() / total if total else 0.0)
    return np.array(means)


@given(stream=streams(settle=False), horizon=st.sampled_from(HORIZONS))
@calm
def test_the_mean_of_earlier_calls_is_subtracted(stream: Stream, horizon: float | None):
    transform = payback.center(horizon)
    expected = stream.rewards - mean_before(stream, horizon)[:, None]
    if stream.valid is not None:
        expected = np.where(stream.valid, expected, 0.0)
    assert_close(step_through(transform, stream)[1], expected)
    state = transform.init(stream.rewards[0])
    assert_close(payback.shape_rollout(transform, state, *stream)[1], expected)


def test_the_mean_does_not_see_its_own_call_and_is_shared():
    subtract, no = payback.center(), np.array([False, False])
    state, first = subtract.update(subtract.init(np.zeros(2)), np.array([10.0, 20.0]), no)
    assert first.tolist() == [10.0, 20.0]
    state, second = subtract.update(state, np.array([0.0, 100.0]), no)
    assert second.tolist() == [-15.0, 85.0]
    assert int(state.count) == 4


def test_the_mean_outlives_episodes_and_passes_invalid_rows_by():
    subtract, yes, no = payback.center(), np.array([True]), np.array([False])
    state, _ = subtract.update(subtract.init(np.zeros(1)), np.array([4.0]), yes)
    state, shaped = subtract.update(state, np.array([np.nan]), no, no)
    assert shaped.tolist() == [0.0]
    assert int(state.count) == 1
    assert subtract.update(state, np.array([1.0]), no)[1].tolist() == [-3.0]


@pytest.mark.parametrize("horizon", HORIZONS)
def test_what_is_old_fades(horizon: float | None):
    """One reward of 1, then n zeros: the mean is the weight that the 1 has kept."""
    subtract, no = payback.center(horizon), np.array([False])
    state, _ = subtract.update(subtract.init(np.zeros(1)), np.ones(1), no)
    for _ in range(5):
        state, _ = subtract.update(state, np.zeros(1), no)
    fade = 1.0 if horizon is None else 1 - 1 / horizon
    assert float(state.mean) == pytest.approx(fade**5 / sum(fade**n for n in range(6)))


def test_only_the_chosen_choices_of_mean_are_taken():
    for wrong in (0, 1, 0.5, -3, float("nan"), "10", True):
        with pytest.raises(ValueError, match="horizon must be more than 1 reward, or None"):
            payback.center(wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------ long runs in float32


def test_the_count_is_exact_past_2_24_in_float32():
    """Seventeen calls of 2²⁰ + 1 rewards, under jit: a float32 count would have lost the last ones."""
    subtract, B = payback.center(), 2**20 + 1
    update = jax.jit(subtract.update)
    rewards, dones = jnp.full(B, 0.1), jnp.zeros(B, bool)
    state = subtract.init(rewards)
    for _ in range(17):
        state, _ = update(state, rewards, dones)
    assert int(state.count) == 17 * B > 2**24
    assert state.mean.dtype == jnp.float32
    assert float(state.mean) == pytest.approx(0.1, rel=1e-6)
    one = jax.jit(subtract.update)(state, jnp.ones(1), jnp.zeros(1, bool))[0]
    assert int(one.count) == 17 * B + 1


def test_the_mean_still_moves_past_2_24_in_float32():
    """Steps of 1/n, far below what one float32 can add to the mean, are not lost but collected."""
    subtract = payback.center()
    start = subtract.init(jnp.zeros(1))
    start = start._replace(count=jnp.uint32(2**24), weight=jnp.float32(2**24), mean=jnp.float32(1.0))
    body = lambda state, _: (subtract.update(state, jnp.full(1, 2.0), jnp.zeros(1, bool))[0], None)  # noqa: E731
    state = jax.jit(lambda state: jax.lax.scan(body, state, None, length=2**15)[0])(start)
    assert int(state.count) == 2**24 + 2**15
    assert float(state.mean) == pytest.approx((2**24 + 2 * 2**15) / (2**24 + 2**15), abs=2e-7)
    assert float(state.mean) > 1.001


def test_the_count_stands_still_at_its_largest_in_jax():
    subtract = payback.center()
    state = subtract.init(jnp.zeros(4))._replace(count=jnp.uint32(2**32 - 2), mean=jnp.float32(0.5))
    state, _ = subtract.update(state, jnp.ones(4), jnp.zeros(4, bool))
    assert int(state.count) == 2**32 - 1
    assert float(state.mean) == pytest.approx(0.5)


# ------------------------------------------------------------------ workers


def run(transform: payback.RewardTransform, state: Any, rewards: np.ndarray, name: str = "numpy") -> Any:
    stream = Stream(rewards, np.zeros(rewards.shape, bool))
    return rollouts(name, transform, state, stream, pieces=1)[0]


@pytest.mark.parametrize("name", LIBRARIES)
def test_merging_pools_what_all_workers_have_seen(name: str):
    subtract, rng = payback.center(), np.random.default_rng(0)
    before, a, b, c = (rng.normal(size=(n, 2)) for n in (5, 3, 8, 1))
    with wide(name):
        common = run(subtract, LIBRARIES[name].init(subtract, Stream(before, before)), before, name)
        later = [run(subtract, common, rewards, name) for rewards in (a, b, c)]
        merged = payback.merge_centers(common, *later)
        seen = np.concatenate([before, a, b, c])
        assert int(merged.count) == seen.size
        assert float(merged.mean) == pytest.approx(seen.mean(), rel=1e-12)
        assert [type(new) for new in merged] == [type(old) for old in payback.merge_centers(common, later[0])]
        # Merging again, or with those who left before, counts nothing twice.
        again = payback.merge_centers(merged, *later, merged)
        assert (int(again.count), float(again.mean)) == (int(merged.count), float(merged.mean))
        # Those who go on from the merged state count from there.
        onward = payback.merge_centers(merged, run(subtract, merged, a, name))
        assert float(onward.mean) == pytest.approx(np.concatenate([seen, a]).mean(), rel=1e-12)


def test_merging_is_the_mean_of_one_worker_that_saw_everything():
    """Rounds of rollout and merge, as training does it."""
    subtract, rng = payback.center(), np.random.default_rng(1)
    common, everything = subtract.init(np.zeros(3)), []
    for _ in range(4):
        parts = [rng.normal(size=(6, 3)) for _ in range(3)]
        everything += parts
        common = payback.merge_centers(common, *(run(subtract, common, part) for part in parts))
    assert int(common.count) == sum(part.size for part in everything)
    assert float(common.mean) == pytest.approx(np.concatenate(everything).mean(), rel=1e-12)


def test_merging_with_a_horizon_fades_the_common_part_by_all_new_rewards():
    subtract, fade = payback.center(10), 0.9
    common = run(subtract, subtract.init(np.zeros(1)), np.full((4, 1), 7.0))
    kept = float(common.weight) * fade**5
    a, b = run(subtract, common, np.ones((2, 1))), run(subtract, common, np.full((3, 1), 2.0))
    fresh_a, fresh_b = 1 + fade, 1 + fade + fade**2
    merged = payback.merge_centers(common, a, b)
    assert int(merged.count) == 9
    assert float(merged.weight) == pytest.approx(kept + fresh_a + fresh_b)
    assert float(merged.mean) == pytest.approx((7 * kept + fresh_a + 2 * fresh_b) / (kept + fresh_a + fresh_b))


def test_one_worker_with_a_horizon_merges_into_itself():
    subtract = payback.center(10)
    common = run(subtract, subtract.init(np.zeros(2)), random_stream(0, 6, 2).rewards)
    worker = run(subtract, common, random_stream(1, 9, 2).rewards)
    merged = payback.merge_centers(common, worker)
    assert float(merged.mean) == pytest.approx(float(worker.mean), rel=1e-12)
    assert float(merged.weight) == pytest.approx(float(worker.weight), rel=1e-12)


def test_a_worker_that_missed_a_merge_adds_nothing():
    """It has gone on from an older common state: what of it is counted already cannot be told."""
    subtract = payback.center()
    common = subtract.init(np.zeros(1))
    worker = run(subtract, common, np.ones((2, 1)))
    merged = payback.merge_centers(common, worker)
    stale = run(subtract, worker, np.full((50, 1), 9.0))
    assert payback.merge_centers(merged, stale) is merged


def test_merging_nothing_changes_nothing():
    subtract = payback.center()
    common = run(subtract, subtract.init(np.zeros(1)), np.ones((3, 1)))
    assert payback.merge_centers(common) is common
    assert payback.merge_centers(common, common, common) is common


def test_merging_what_does_not_belong_together_is_refused():
    plain, fading = payback.center(), payback.center(10)
    common = plain.init(np.zeros(1))
    worker = run(plain, common, np.ones((2, 1)))
    with pytest.raises(ValueError, match="worker 0 centres with another horizon"):
        payback.merge_centers(common, fading.init(np.zeros(1)))
    with pytest.raises(ValueError, match="worker 1 has been merged since; merge into the newest"):
        payback.merge_centers(common, worker, payback.merge_centers(common, worker))
    with pytest.raises(TypeError, match="merge_centers was given a state of type AtEndState"):
        payback.merge_centers(common, payback.match_at_end(0.99).init(np.zeros(1)))
