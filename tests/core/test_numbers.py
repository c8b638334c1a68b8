"""Integer rewards and γ = 1 work, and a state can be used again."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest

import payback
from payback import theory

from .cases import Stream, assert_close, quiet, random_stream, step_through
from .libraries import LIBRARIES, rollouts
from .refusals import MATCHES

INTEGER = {**MATCHES, "grm": payback.grm(0.9, 2), "pbim": payback.pbim(0.9)}


@quiet
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", INTEGER)
def test_integer_rewards_are_shaped_as_floats(name: str, library: str):
    transform = INTEGER[name]
    stream = random_stream(3, 12, 2, ends=0.2)
    whole = stream._replace(rewards=np.round(5 * stream.rewards).astype(np.int32))
    expected = step_through(transform, whole._replace(rewards=whole.rewards.astype(np.float64)))[1]
    lib = LIBRARIES[library]
    shaped = lib.step(transform, lib.init(transform, whole), lib.stream(whole))[1]
    assert_close(shaped, expected, 1e-10 if library == "numpy" else 1e-5)
    assert_close(rollouts(library, transform, lib.init(transform, whole), whole, 2)[1], shaped, 1e-5)


@pytest.mark.parametrize("transform", [payback.match_after(0.9, 2), payback.grm(0.9, 2)], ids=["match", "chain"])
def test_integer_rewards_into_a_float32_state(transform: payback.RewardTransform):
    """`match_after.update` takes them; whole rollouts and chains should too."""
    state = transform.init(np.zeros(2, np.float32))
    ones, no = np.ones((3, 2), np.int64), np.zeros((3, 2), bool)
    _, expected = step_through(transform, Stream(ones, no), state)
    assert_close(payback.shape_rollout(transform, state, ones, no)[1], expected)


@quiet
@pytest.mark.parametrize("library", LIBRARIES)
def test_gamma_one_has_no_interest(library: str):
    """Plain sums: each episode's shaped rewards add up to zero."""
    stream = random_stream(4, 20, 2, ends=0.0, dtype=np.float32)
    stream.dones[-1] = True
    lib = LIBRARIES[library]
    after, evenly = payback.match_after(1, 3), payback.match_evenly(1, 4)
    for match in (payback.match_at_end(1), after, evenly, payback.match_when(1)):
        shaped = lib.step(match, lib.init(match, stream), lib.stream(stream))[1]
        assert_close(np.asarray(shaped).sum(axis=0), [0, 0], 1e-5)
    exact = theory.match_episode([1, 2, 3], lambda t, i, N: int(t == N - 1), 1)
    assert exact.tolist() == [1.0, 2.0, -3.0]


def test_a_state_can_be_copied_and_used_twice():
    """Pure functions: the same state gives the same answer every time."""
    shaping = payback.grm(0.9, 2)
    state = shaping.init(jnp.zeros(2))
    again = copy.deepcopy(state)
    first = shaping.update(state, jnp.ones(2), jnp.zeros(2, bool))[1]
    assert_close(shaping.update(state, jnp.ones(2), jnp.zeros(2, bool))[1], first, 0)
    assert_close(shaping.update(again, jnp.ones(2), jnp.zeros(2, bool))[1], first, 0)
