"""Transforms are values: they compare by their parameters, and pickle, copy and hash."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import payback

from .cases import TRANSFORMS, quiet, random_stream, step_through

pytestmark = quiet


def no_state(example: Any) -> tuple[()]:
    return ()


def twice(state: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
    return state, 2 * reward


EVERY = {**TRANSFORMS, "stateless": payback.stateless(np.tanh)}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_a_copy_is_equal_and_pays_the_same(name: str, again: Any):
    transform, stream = EVERY[name], random_stream(1, 12, 3, settle=True)
    state, shaped = step_through(transform, stream)  # so that everything that is computed on the way is there
    other = again(transform)
    assert (other, repr(other), hash(other)) == (transform, repr(transform), hash(transform))
    assert isinstance(other, payback.Match) == isinstance(transform, payback.Match)
    assert np.array_equal(step_through(other, stream, state)[1], step_through(transform, stream, state)[1])
    assert np.array_equal(step_through(other, stream)[1], shaped)


def test_other_parameters_are_another_transform():
    each = list(EVERY.values())
    assert [a == b for a in each for b in each] == [a is b for a in each for b in each]


def test_equal_parameters_are_equal_transforms():
    assert payback.grm(0.99, 10) == payback.grm(0.99, 10)
    assert payback.chain(payback.scale(1), payback.pbim(1.0)) == payback.chain(payback.scale(1.0), payback.pbim(1))
    assert payback.match_after(0.9, 1) != payback.match_evenly(0.9, 1)


def test_a_transform_of_ones_own_is_a_value_too():
    mine = payback.RewardTransform(no_state, twice)
    assert pickle.loads(pickle.dumps(mine)) == mine == payback.RewardTransform(no_state, twice)
    assert mine != payback.RewardTransform(no_state, update=print)
    assert mine.update is twice
    match = payback.Match(no_state, twice, gamma=0.9, owed=no_state, drop=twice)
    assert pickle.loads(pickle.dumps(match)) == match
    assert match != payback.Match(no_state, twice, gamma=0.8, owed=no_state, drop=twice)


@pytest.mark.parametrize("transform", [payback.grm(0.9, 2), payback.RewardTransform(no_state, twice)])
def test_a_transform_cannot_be_changed(transform: Any):
    with pytest.raises(FrozenInstanceError):
        transform.gamma = 0.5
    with pytest.raises(FrozenInstanceError):
        transform.update = print


class Tripled(payback.RewardTransform):
    """A subclass that writes `init` and `update` as methods."""

    def __init__(self) -> None:
        pass

    @cached_property
    def table(self) -> np.ndarray:
        return np.arange(3)

    def init(self, example: Any, /) -> Any:
        _ = self.table
        return ()

    def update(self, state: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        return state, 3 * reward


def test_a_subclass_with_methods_works_in_a_chain():
    shaping = payback.chain(Tripled(), payback.match_at_end(1.0))
    stream = random_stream(1, 9, 2)
    expected = step_through(payback.chain(payback.scale(3), payback.match_at_end(1.0)), stream)[1]
    assert np.array_equal(step_through(shaping, stream)[1], expected)


def test_what_a_subclass_has_computed_does_not_make_it_another_transform():
    one, other = Tripled(), Tripled()
    one.init(np.zeros(1)), other.init(np.zeros(1))
    assert one == other
    assert hash(one) == hash(Tripled())
