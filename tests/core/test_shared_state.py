"""What all environments share is declared by the state's class, and moves between numbers of environments."""

from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback
from payback.core.state import leaves, load_shared, rebuild, roles, running_mean, shared_of, with_shared

from .cases import TRANSFORMS, quiet, random_stream, step_through

pytestmark = quiet


class Standardised(NamedTuple):
    """A user's state: a debt for each environment, a mean for all, a constant."""

    debt: Any
    mean: Any
    rate: Any
    shared = ("mean",)
    constants = ("rate",)


class Undeclared(NamedTuple):
    """A user's state that declares nothing, with fields of the names that are looked for."""

    shared: Any
    constants: Any


class Mistaken(NamedTuple):
    """A user's state with a slip in its declaration."""

    mean: Any
    shared = ("maen",)


def a_state(B: int, mean: float = 0.0) -> Standardised:
    return Standardised(np.zeros(B), np.array(mean), np.array(0.5))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_belongs_to_each_environment_grows_with_their_number(name: str):
    """So a state class of ours that forgets to declare a field is found."""
    two, three = (TRANSFORMS[name].init(np.zeros(n)) for n in (2, 3))
    grows = [np.shape(a) != np.shape(b) for a, b in zip(leaves(two), leaves(three), strict=True)]
    assert [role == "environment" for role in roles(two)] == grows


@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_state_can_be_saved(name: str, tmp_path: Path):
    state = step_through(TRANSFORMS[name], random_stream(1, 20, 3, settle=True))[0]
    payback.save_state(tmp_path / "state", state)
    for like in (None, TRANSFORMS[name].init(np.zeros(3))):
        loaded = payback.load_state(tmp_path / "state", like=like)
        assert [np.array_equal(a, b) for a, b in zip(leaves(loaded), leaves(state), strict=True)] == [True] * len(
            leaves(state)
        )


def test_a_class_of_ones_own_declares_what_is_shared():
    state = (a_state(3, mean=2.0), {"inner": [np.zeros(3)]})
    assert roles(state) == ["environment", "shared", "constant", "environment"]
    assert [float(x) for x in shared_of(state)] == [2.0]
    changed = with_shared(state, [7])
    assert (changed[0].mean, state[0].mean) == (7.0, 2.0)
    assert changed[1]["inner"][0] is state[1]["inner"][0]


def test_nothing_is_shared_unless_declared():
    assert roles(Undeclared(np.zeros(()), np.zeros(2))) == ["environment", "environment"]
    assert shared_of(np.zeros(2)) == []


def test_a_declaration_that_names_no_field_is_refused():
    with pytest.raises(TypeError, match="maen"):
        shared_of(Mistaken(np.zeros(2)))


def test_a_state_is_rebuilt_from_its_arrays():
    state = [a_state(2), {"a": (np.ones(2),)}]
    again = rebuild(state, iter(leaves(state)))
    assert type(again[0]) is Standardised
    assert [a is b for a, b in zip(leaves(again), leaves(state), strict=True)] == [True] * 4


@pytest.mark.parametrize("values", [[1.0], [], [np.zeros(2)] * 5])
def test_arrays_of_another_transform_are_refused(values: list[Any]):
    with pytest.raises(ValueError, match="same transform"):
        with_shared(payback.grm(0.9, 2).init(np.zeros(2)), values)


@pytest.mark.parametrize("xp", [np, torch, jnp])
def test_the_mean_moves_to_another_number_of_environments(xp: Any, tmp_path: Path):
    shaping = payback.grm(0.9, 2)
    state = shaping.init(xp.zeros(2))
    state, _ = shaping.update(state, xp.asarray([1.0, 3.0], dtype=xp.zeros(2).dtype), xp.zeros(2, dtype=bool))
    payback.save_state(tmp_path / "state", state)
    moved = load_shared(tmp_path / "state", shaping.init(xp.zeros(5)))
    assert running_mean(moved) == 2.0
    assert payback.owed(shaping, moved).shape == (5,)
    assert [type(x) for x in shared_of(moved)] == [type(x) for x in shared_of(state)] or xp is np


@pytest.mark.parametrize(
    "other", [payback.grm(0.8, 2), payback.grm(0.9, 3), payback.grm(0.9, 2, center=payback.center(9))]
)
def test_the_mean_of_another_transform_is_refused(other: payback.Match, tmp_path: Path):
    payback.save_state(tmp_path / "state", other.init(np.zeros(2)))
    with pytest.raises(ValueError, match="another transform"):
        load_shared(tmp_path / "state", payback.grm(0.9, 2).init(np.zeros(3)))


class Unhashable:
    """An `init` that cannot be a key, as a dataclass instance with `__eq__` is."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, example: Any) -> Standardised:
        return a_state(len(example))


def test_a_match_with_an_unhashable_init_has_shared_arrays():
    init = Unhashable()
    match = payback.Match(init, lambda *_: (), gamma=0.9, owed=lambda s: s.debt, drop=lambda s, where: s)
    assert len(shared_of(match.init(np.zeros(2)))) == 1
