"""Long episodes in float32: the law holds to rounding, late as well as early."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import payback

from .cases import Stream, quiet, random_stream, step_through

pytestmark = quiet


def relative_residual(shaped: np.ndarray, gamma: float) -> float:
    """|Σ γ^t F'_t| / Σ γ^t |F'_t|, over one whole episode per column; the worst column."""
    discount = gamma ** np.arange(len(shaped), dtype=np.float64)
    shaped = np.asarray(shaped, dtype=np.float64)
    return float((np.abs(discount @ shaped) / (discount @ np.abs(shaped))).max())


LONG = {
    "at_end": payback.match_at_end,
    "after-1": lambda gamma: payback.match_after(gamma, 1),
    "after-3": lambda gamma: payback.match_after(gamma, 3),
    "after-100": lambda gamma: payback.match_after(gamma, 100),
    "evenly-10": lambda gamma: payback.match_evenly(gamma, 10),
    "geometric": lambda gamma: payback.match_geometric(gamma, 0.9),
    "when": payback.match_when,
    "pbim": payback.pbim,
    "grm-10": lambda gamma: payback.grm(gamma, 10),
}


def long_episode(B: int = 2) -> Stream:
    """Draw one episode of 3000 steps per column, with the positive rewards of most bonuses."""
    stream = random_stream(5, 3000, B, ends=0.0, dtype=np.float32, settle=True)
    stream.dones[-1] = True
    return stream._replace(rewards=np.abs(stream.rewards), settle=stream.settle & (np.arange(3000) % 50 == 0)[:, None])


def assert_kept_in_float32(shaped: np.ndarray, exact: np.ndarray, gamma: float) -> None:
    """Hold an episode shaped in float32 to the law, and step by step to the same in float64.

    The residual alone is blind to what happens late: γ^t hides it.
    """
    assert shaped.dtype == np.float32
    assert relative_residual(shaped, gamma) <= 1e-5
    np.testing.assert_allclose(shaped, exact, rtol=5e-5, atol=2e-5)


def exactly(name: str, gamma: float) -> np.ndarray:
    stream = long_episode()
    stream = stream._replace(rewards=stream.rewards.astype(np.float64))
    transform = LONG[name](gamma)
    return payback.shape_rollout(transform, transform.init(stream.rewards[0]), *stream)[1]


@pytest.mark.parametrize("gamma", [0.99, 0.999])
@pytest.mark.parametrize("name", LONG)
def test_long_episodes_in_float32(name: str, gamma: float):
    transform, stream, exact = LONG[name](gamma), long_episode(), exactly(name, gamma)
    assert_kept_in_float32(step_through(transform, stream)[1], exact, gamma)
    state, blocks = transform.init(stream.rewards[0]), []
    for first in range(0, 3000, 1000):
        state, block = payback.shape_rollout(transform, state, *stream.rows(first, first + 1000))
        blocks.append(block)
    assert_kept_in_float32(np.concatenate(blocks), exact, gamma)


@pytest.mark.parametrize("gamma", [0.99, 0.999])
@pytest.mark.parametrize("name", LONG)
def test_long_episodes_in_jax_float32(name: str, gamma: float):
    transform, exact = LONG[name](gamma), exactly(name, gamma)
    stream = Stream(*(None if block is None else jnp.asarray(block) for block in long_episode()))
    scan = jax.jit(lambda state, *rows: jax.lax.scan(lambda s, x: transform.update(s, *x), state, rows))
    rollout = jax.jit(lambda state, *blocks: payback.shape_rollout(transform, state, *blocks))
    for run in (scan, rollout):
        shaped = run(transform.init(stream.rewards[0]), *stream)[1]
        assert_kept_in_float32(np.asarray(shaped), exact, gamma)


def test_the_recursion_that_theory_warns_of_is_caught():
    """debt ← debt/γ + F − due has the same value on paper; in float32 its error grows as γ⁻ᵗ."""
    gamma, D, F = np.float32(0.99), 3, long_episode().rewards
    debt, shaped = np.zeros(2, np.float32), np.empty_like(F)
    for t in range(len(F) - 1):
        due = F[t - D] * gamma**-D if t >= D else np.float32(0)
        shaped[t] = F[t] - due
        debt = (debt - due + F[t]) / gamma
    shaped[-1] = -debt
    exact = exactly("after-3", 0.99)
    np.testing.assert_allclose(shaped[:-1], exact[:-1], rtol=5e-5, atol=2e-5)
    assert np.abs(shaped[-1]).min() > 1e5 * np.abs(exact[-1]).max()
    with pytest.raises(AssertionError):
        assert_kept_in_float32(shaped, exact, 0.99)


# ------------------------------------------------------------------ long quiet stretches


@pytest.mark.parametrize("make", [payback.match_at_end, payback.match_when])
@pytest.mark.parametrize("whole", [False, True], ids=["stepping", "rollout"])
def test_a_loan_after_a_long_quiet_stretch_is_repaid(make: Any, whole: bool):
    """γ⁻²⁰⁰ does not fit a float32 at γ = ½, but nothing that old is owed."""
    rewards, dones = np.zeros((202, 1), np.float32), np.zeros((202, 1), bool)
    rewards[200], dones[201] = 1, True
    transform = make(0.5)
    state, shaped = transform.init(rewards[0]), []
    for first, last in ((0, 201), (201, 202)):
        stream = Stream(rewards[first:last], dones[first:last])
        run = payback.shape_rollout(transform, state, *stream) if whole else step_through(transform, stream, state)
        state = run[0]
        shaped.extend(run[1][:, 0].tolist())
    assert shaped[200:] == [1.0, -2.0]


@pytest.mark.parametrize("make", [payback.match_at_end, payback.match_when])
@pytest.mark.parametrize("whole", [False, True], ids=["stepping", "rollout"])
def test_the_clock_starts_anew_with_each_episode(make: Any, whole: bool):
    """A thousand steps in episodes of ten: γ⁻¹⁰⁰⁰ would not fit, γ⁻¹⁰ does."""
    rewards, dones = np.ones((1000, 1), np.float32), (np.arange(1000) % 10 == 9)[:, None]
    transform = make(0.5)
    state, shaped = transform.init(rewards[0]), []
    for first in range(0, 1000, 25):
        stream = Stream(rewards[first : first + 25], dones[first : first + 25])
        run = payback.shape_rollout(transform, state, *stream) if whole else step_through(transform, stream, state)
        state = run[0]
        shaped.append(run[1])
    settlements = np.concatenate(shaped)[9::10]
    np.testing.assert_allclose(settlements, -(2.0**10 - 2), rtol=1e-6)
