"""Rewards and flags that are not finite or do not fit the state: what, where, what to do, and nothing is lost."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback

from .cases import quiet, random_stream, step_through
from .libraries import LIBRARIES
from .refusals import MATCHES, NO, Unchanged, each_match, midway, refuses

pytestmark = quiet

# ------------------------------------------------------------------ rewards that are not finite


@each_match
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_reward_that_is_not_finite(name: str, value: float, library: str):
    match, make = MATCHES[name], LIBRARIES[library].array
    rewards = np.ones((4, 3))
    rewards[2, 1] = value
    begin = match.init(make(np.zeros(3)))
    begin, _ = match.update(begin, make(np.ones(3)), make(NO))
    with Unchanged(begin) as state:
        with refuses(ValueError, f"{name}: the reward of environment 1 is {value}", "fix", "no state was changed"):
            match.update(state, make(rewards[2]), make(NO))
        with refuses(ValueError, f"the reward of step 2, environment 1 is {value}", "fix the intrinsic reward"):
            payback.shape_rollout(match, state, make(rewards), make(np.zeros((4, 3), bool)))


def test_a_bfloat16_reward_that_is_not_finite():
    """NumPy has no bfloat16, so that the place is sought in Torch."""
    match, rewards = MATCHES["match_after"], torch.tensor([1, float("inf"), 1], dtype=torch.bfloat16)
    with refuses(ValueError, "the reward of environment 1 is inf; fix the intrinsic reward"):
        match.update(match.init(rewards), rewards, torch.zeros(3, dtype=torch.bool))


def test_in_a_chain_the_mean_does_not_see_it_either():
    shaping = payback.pbim(0.9)
    with Unchanged(midway(shaping)) as state, refuses(ValueError, "chain: the reward of environment 2 is nan"):
        shaping.update(state, np.array([0, 0, np.nan]), NO)


def test_large_but_finite_rewards_are_taken():
    match = payback.match_after(0.9, 1)
    shaped = match.update(match.init(np.zeros(2)), np.array([1e300, -1e200]), NO[:2])[1]
    assert shaped.tolist() == [1e300, -1e200]


@pytest.mark.parametrize("whole", [False, True], ids=["stepping", "rollout"])
def test_large_but_finite_settlements_are_paid(whole: bool):
    """γ = .9 over 500 steps owes 7.6e23: a float32 holds it, though not its square."""
    match, stream = payback.match_at_end(0.9), random_stream(0, 500, 2, ends=0.0, dtype=np.float32)
    stream.dones[-1] = True
    begin = match.init(stream.rewards[0])
    shaped = (payback.shape_rollout(match, begin, *stream) if whole else step_through(match, stream))[1]
    assert (np.abs(shaped[-1]) > 1e20).all()
    assert np.isfinite(shaped).all()


@each_match
def test_under_jit_nan_is_passed_on(name: str):
    match = MATCHES[name]
    shaped = jax.jit(match.update)(match.init(jnp.zeros(2)), jnp.array([jnp.nan, 1.0]), jnp.zeros(2, bool))[1]
    assert np.isnan(shaped).tolist() == [True, False]


# ------------------------------------------------------------------ shapes, dtypes, libraries


@each_match
def test_shapes_that_do_not_fit_the_state(name: str):
    match = MATCHES[name]
    with Unchanged(midway(match)) as state:
        with refuses(ValueError, f"{name}: there are rewards for 4 environments, the state is for 3", "init(example)"):
            match.update(state, np.ones(4), np.zeros(4, bool))
        with refuses(ValueError, f"{name}: done has shape (2,), not (3,)", "(B,)"):
            match.update(state, np.ones(3), np.zeros(2, bool))
        with refuses(ValueError, f"{name}: valid has shape (1,), not (3,)"):
            match.update(state, np.ones(3), NO, np.ones(1, bool))
        with refuses(ValueError, "shape_rollout: there are rewards for 4 environments, the state is for 3"):
            payback.shape_rollout(match, state, np.ones((5, 4)), np.zeros((5, 4), bool))
        with refuses(ValueError, "needs rewards of shape (T, B), got (3,); one environment is (T, 1)"):
            payback.shape_rollout(match, state, np.ones(3), NO)
        for flags in ("dones", "valid", "settle"):
            given = {"dones": np.zeros((5, 3), bool), flags: np.zeros((5, 2), bool)}
            with refuses(ValueError, f"shape_rollout: {flags} has shape (5, 2), not (5, 3)"):
                payback.shape_rollout(match, state, np.ones((5, 3)), **given)


@pytest.mark.parametrize("B", [1, 2])
def test_events_that_do_not_fit_the_state(B: int):
    match = MATCHES["match_when"]
    with Unchanged(midway(match)) as state, refuses(ValueError, f"match_when: settle has shape ({B},), not (3,)"):
        match.update(state, np.ones(3), NO, settle=np.ones(B, bool))


@each_match
@pytest.mark.parametrize("B", [1, 2])
def test_dropping_somewhere_that_does_not_fit_the_state(name: str, B: int):
    with refuses(ValueError, f"where has shape ({B},), not (3,)"):
        payback.drop(MATCHES[name], midway(MATCHES[name]), np.ones(B, bool))


@each_match
def test_dtypes_that_do_not_fit_the_state(name: str):
    match = MATCHES[name]
    with Unchanged(midway(match)) as state:
        for use in (
            lambda: match.update(state, np.ones(3, np.float32), NO),
            lambda: payback.shape_rollout(match, state, np.ones((2, 3), np.float32), np.zeros((2, 3), bool)),
        ):
            with refuses(TypeError, ": the reward is float32, the state was made for float64; cast the reward"):
                use()


@each_match
def test_arrays_of_another_library(name: str):
    match = MATCHES[name]
    sentence = ("must be arrays of one library (NumPy, Torch or JAX), got", "convert them first")
    with Unchanged(midway(match)) as state:
        with refuses(TypeError, *sentence):
            match.update(state, torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.bool))
        with refuses(TypeError, *sentence):
            match.update(state, [1.0, 2.0, 3.0], NO)
    with refuses(TypeError, *sentence):
        match.init([0.0, 0.0])


@pytest.mark.parametrize("done", [[False, True, False], torch.zeros(3, dtype=torch.bool)], ids=["list", "torch"])
def test_flags_of_another_library(done: Any):
    match = MATCHES["match_after"]
    with refuses(TypeError, "must be arrays of one library (NumPy, Torch or JAX), got"):
        match.update(midway(match), np.ones(3), done)
    with refuses(TypeError, "must be arrays of one library (NumPy, Torch or JAX), got"):
        match.update(match.init(torch.zeros(3)), torch.ones(3), NO)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["match_after", "match_when"])
def test_python_numbers_are_no_arrays(library: str, name: str):
    match, make = MATCHES[name], LIBRARIES[library].array
    ones, no = make(np.ones(3)), make(NO)
    state, sentence = match.init(ones), "must be arrays of one library (NumPy, Torch or JAX), got"
    for what, given in (("float", (1.0, no)), ("bool", (ones, True)), ("NoneType", (ones, None))):
        with refuses(TypeError, sentence, what):
            match.update(state, *given)  # type: ignore[arg-type]
        with refuses(TypeError, sentence, what):
            payback.shape_rollout(match, state, *(x if np.ndim(x) == 0 else x[None] for x in given))
    for flag in ("valid", "settle"):
        with refuses(TypeError, sentence, "bool"):
            match.update(state, ones, no, **{flag: True})
        with refuses(TypeError, sentence, "bool"):
            payback.shape_rollout(match, state, ones[None], no[None], **{flag: True})
    with refuses(TypeError, sentence, "bool"):
        payback.drop(match, state, True)
    with refuses(TypeError, sentence, "bool"):
        payback.scale(2).update((), ones, True)  # type: ignore[arg-type]
