"""Chains: what may stand where, and what a whole chain owes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import payback

from .cases import assert_close, quiet, random_stream, step_through
from .libraries import LIBRARIES, wide
from .refusals import MATCHES, refuses

drift = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, r / (1 + abs(r))))
AFTER = {
    "clip": payback.clip(-1, 1),
    "center": payback.center(),
    "one's own": drift,
    "chain with a clip": payback.chain(payback.scale(2), payback.clip(-1, 1)),
}


@pytest.mark.parametrize("name", MATCHES)
@pytest.mark.parametrize("after", AFTER)
def test_only_a_constant_may_follow_a_match(name: str, after: str):
    sentence = ("stands after the match and is not a constant scale", "breaks the guarantee: put it before the match")
    with refuses(ValueError, "chain: transform 1", *sentence):
        payback.chain(MATCHES[name], AFTER[after])
    with refuses(ValueError, "chain: transform 3", *sentence):
        payback.chain(payback.center(), payback.chain(MATCHES[name], payback.scale(2)), payback.scale(3), AFTER[after])
    payback.chain(AFTER[after], MATCHES[name])
    payback.chain(MATCHES[name], payback.scale(2), payback.chain(payback.scale(3), payback.scale(4)))


def test_one_match_is_enough():
    sentence = "transforms 0 and 2 are both matches; a second one would repay again what is already repaid: keep one"
    with refuses(ValueError, sentence):
        payback.chain(MATCHES["match_at_end"], payback.scale(1), MATCHES["match_after"])
    with refuses(ValueError, "both matches"):
        payback.chain(payback.pbim(0.9), payback.grm(0.9, 1))
    with refuses(ValueError, "both matches"):
        payback.grm(0.9, 3, center=payback.match_at_end(0.9))


def test_what_is_no_chain():
    with refuses(ValueError, "chain needs at least one transform"):
        payback.chain()
    for wrong in (float("nan"), float("inf"), "2", None):
        with refuses(ValueError, "scale needs a finite number, got", repr(wrong)):
            payback.scale(wrong)  # type: ignore[arg-type]
    for low, high in ((1, -1), (float("nan"), 1), ("0", 1)):
        with refuses(ValueError, "clip needs low ≤ high, got"):
            payback.clip(low, high)  # type: ignore[arg-type]
    with refuses(TypeError, "center must be True, False or a transform such as payback.center(1000), got 'yes'"):
        payback.pbim(0.9, center="yes")  # type: ignore[arg-type]


def test_a_chain_knows_what_it_is():
    constant = payback.chain(payback.scale(2), payback.scale(-3))
    assert constant._factor == -6.0
    assert not isinstance(constant, payback.Match)
    assert payback.chain(payback.scale(2), payback.clip(0, 1))._factor is None
    shaping = payback.chain(payback.scale(2), payback.match_evenly(0.9, 2), payback.scale(3))
    assert isinstance(shaping, payback.Match)
    assert (shaping._factor, shaping.gamma, shaping.falls_due_alone) == (None, 0.9, True)
    assert not payback.pbim(0.9).falls_due_alone
    assert not payback.match_when(0.9).falls_due_alone
    assert payback.match_geometric(0.9, 0.5).falls_due_alone


@quiet
def test_a_chain_owes_what_its_learner_was_paid():
    stream = random_stream(2, 6, 3, ends=0.1)
    plain, scaled = payback.match_after(0.9, 3), payback.chain(payback.match_after(0.9, 3), payback.scale(-4))
    nested = payback.chain(payback.chain(payback.scale(1), scaled), payback.scale(0.5))
    owed = payback.owed(plain, step_through(plain, stream)[0])
    assert_close(payback.owed(scaled, step_through(scaled, stream)[0]), -4 * owed)
    assert_close(payback.owed(nested, step_through(nested, stream)[0]), -2 * owed)
    left, dropped = payback.drop(nested, step_through(nested, stream)[0], np.array([True, False, False]))
    assert_close(dropped, [-2 * owed[0], 0, 0])
    assert_close(payback.owed(nested, left), [0, *(-2 * owed[1:])])


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (lambda r: r[..., None], "shape (2, 1)"),
        (lambda r: r[..., :1], "shape (1,)"),
        (lambda r: r.tolist(), "list"),
    ],
    ids=["another axis", "fewer environments", "a list"],
)
def test_a_transform_of_your_own_returns_one_number_per_reward(returned: Callable[[Any], Any], what: str):
    """A column would be paid as one at first, and then make the debt a (2, 2) block."""
    own = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, returned(r)))
    shaping, no = payback.chain(own, payback.match_after(0.9, 2)), np.zeros(2, bool)
    state = shaping.init(np.zeros(2))
    sentence = ("RewardTransform(init=", "returned", what, "for rewards of shape (2,); let it return one number per")
    for valid in (None, ~no):
        with refuses(ValueError, *sentence):
            shaping.update(state, np.ones(2), no, valid)
    with refuses(ValueError, "RewardTransform(init=", "returned"):
        payback.shape_rollout(shaping, state, np.ones((3, 2)), np.zeros((3, 2), bool))


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_transform_of_your_own_cannot_change_the_dtype(name: str):
    """Its float64 would widen a float32 debt, so that the next float32 reward is refused."""
    array = LIBRARIES[name].array
    with wide(name):
        factor = array(np.full(2, 2.0))
        own = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, r * factor))
        shaping = payback.chain(own, payback.match_after(0.5, 1))
        ones, no = array(np.ones(2, np.float32)), array(np.zeros(2, bool))
        state = shaping.init(ones)
        for expected in (2.0, -2.0):
            state, shaped = shaping.update(state, ones, no)
            assert shaped.tolist() == [expected] * 2
            assert shaped.dtype == state[1].loans.dtype == ones.dtype
        _, shaped = payback.shape_rollout(shaping, state, ones[None], no[None])
        assert shaped.dtype == ones.dtype
