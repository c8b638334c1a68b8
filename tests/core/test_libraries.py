"""(c) NumPy ≡ Torch ≡ a jitted JAX scan, and whole rollouts on each ≡ stepping."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback
from payback.core.transform import altered

from .cases import Stream, assert_close, quiet, random_stream, step_through
from .libraries import LIBRARIES, leaves, rollouts, wide

pytestmark = quiet
GAMMA = 0.9


def own_transform() -> payback.RewardTransform:
    """Halve whatever comes right after an end: a user's own causal transform, with a state of its own."""

    def update(fresh: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        shaped = reward * (1 - fresh / 2)
        new = done * (reward * 0 + 1)
        return (new, shaped) if valid is None else (new * valid + fresh * ~valid, shaped * valid)

    return payback.RewardTransform(lambda example: example * 0.0, update)


TRANSFORMS = {
    "at_end": payback.match_at_end(GAMMA),
    "after-0": payback.match_after(GAMMA, 0),
    "after-1": payback.match_after(GAMMA, 1),
    "after-7": payback.match_after(GAMMA, 7),
    "after-40": payback.match_after(GAMMA, 40),  # longer than JAX unrolls, and than each piece of the rollout
    "evenly-4": payback.match_evenly(GAMMA, 4),
    "evenly-40": payback.match_evenly(GAMMA, 40),
    "geometric": payback.match_geometric(GAMMA, 0.6),
    "when": payback.match_when(GAMMA),
    "pbim": payback.pbim(GAMMA),
    "grm-10": payback.grm(GAMMA, 10),
    "long chain": payback.chain(
        payback.clip(-1, 1), payback.center(50), payback.scale(3), payback.match_evenly(GAMMA, 3), payback.scale(-0.1)
    ),
    "own": payback.chain(own_transform(), payback.match_after(GAMMA, 5)),
}
each_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
each_library = pytest.mark.parametrize("name", LIBRARIES)


def assert_same_as_numpy(name: str, transform: payback.RewardTransform) -> None:
    """Hold stepping in one library to stepping in NumPy, both in float64."""
    stream = random_stream(3, 60, 4, valid=True, settle=True)
    state, expected = step_through(transform, stream)
    with wide(name):
        library = LIBRARIES[name]
        other, shaped = library.step(transform, library.init(transform, stream), library.stream(stream))
        assert_close(shaped, expected)
        assert_close(payback.owed(transform, other), payback.owed(transform, state))
        kind = type(library.array(stream.rewards))
        assert isinstance(shaped, kind)
        assert all(isinstance(leaf, (kind, np.generic)) for leaf in leaves(other))


REPRESENTATIVES = ("when", "grm-10", "geometric")
"""One transform of each mechanism, for what each library does alike to all of them."""


@each_library
@each_transform
def test_stepping_is_the_same_on_all_libraries(name: str, transform: payback.RewardTransform):
    assert_same_as_numpy(name, transform)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_the_comparison_between_libraries_can_fail(name: str):
    """A mutant that rounds γ to float32, anywhere but in NumPy."""
    right, rounded = payback.match_after(GAMMA, 7), payback.match_after(float(np.float32(GAMMA)), 7)

    def update(state: Any, reward: Any, *flags: Any) -> tuple[Any, Any]:
        if isinstance(reward, np.ndarray):
            return right.update(state, reward, *flags)
        after, shaped = rounded.update(state._replace(terms=rounded.init(reward).terms), reward, *flags)
        return after._replace(terms=state.terms), shaped

    assert_same_as_numpy(name, right)
    with pytest.raises(AssertionError):
        assert_same_as_numpy(name, altered(right, update=update))


@each_library
@each_transform
@pytest.mark.parametrize("flags", [{"settle": True}, {"valid": True, "settle": True}], ids=["events", "all"])
def test_rollouts_are_stepping_on_all_libraries(name: str, transform: payback.RewardTransform, flags: dict[str, bool]):
    """In three pieces with the state carried, ends and invalid rows anywhere."""
    stream = random_stream(4, 90, 4, **flags)
    state, expected = step_through(transform, stream)
    with wide(name):
        library = LIBRARIES[name]
        other, shaped = rollouts(name, transform, library.init(transform, stream), stream, pieces=3)
        assert_close(shaped, expected)
        assert_close(payback.owed(transform, other), payback.owed(transform, state))


@each_library
@pytest.mark.parametrize("ends", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("transform", [payback.match_after(GAMMA, 3), payback.match_when(GAMMA), payback.pbim(GAMMA)])
def test_no_ends_many_ends_only_ends(name: str, transform: payback.RewardTransform, ends: float):
    stream = random_stream(5, 30, 3, ends=ends, settle=True)
    expected = step_through(transform, stream)[1]
    with wide(name):
        state = LIBRARIES[name].init(transform, stream)
        assert_close(rollouts(name, transform, state, stream, pieces=2)[1], expected)


@pytest.mark.parametrize("transform", [TRANSFORMS[name] for name in ("after-40", "evenly-4", "pbim", "long chain")])
def test_jax_in_its_own_float32(transform: payback.RewardTransform):
    """Without x64, as most people run it; beside NumPy in float64."""
    stream = random_stream(6, 60, 4, valid=True, settle=True)
    expected = step_through(transform, stream)[1]
    stream = stream._replace(rewards=stream.rewards.astype(np.float32))
    library = LIBRARIES["jax"]
    shaped = library.step(transform, library.init(transform, stream), library.stream(stream))[1]
    assert shaped.dtype == jnp.float32
    assert_close(shaped, expected, 1e-5)


@each_library
@pytest.mark.parametrize("which", REPRESENTATIVES)
def test_a_rollout_of_one_environment_may_have_no_second_axis(name: str, which: str):
    """(T,) for a state of shape (): under `vmap`, as in `update`, and without it."""
    transform, stream = TRANSFORMS[which], random_stream(8, 20, 2, ends=0.2, settle=True)
    with wide(name):
        library = LIBRARIES[name]
        rewards, dones, _, settle = library.stream(stream)

        def shape(state: Any, rewards: Any, dones: Any, settle: Any) -> tuple[Any, Any]:
            return payback.shape_rollout(transform, state, rewards, dones, settle=settle)

        for b in range(2):
            state = transform.init(library.array(np.zeros(())))
            one = Stream(*(None if x is None else x[:, b : b + 1] for x in stream))
            expected = step_through(transform, one)[1][:, 0]
            assert_close(shape(state, rewards[:, b], dones[:, b], settle[:, b])[1], expected)
            if name == "jax":
                states = jax.vmap(transform.init)(rewards[0])
                block = jax.jit(jax.vmap(shape, (0, 1, 1, 1), (0, 1)))(states, rewards, dones, settle)[1]
                assert_close(block[:, b], expected)


@pytest.mark.parametrize("name", REPRESENTATIVES)
@pytest.mark.parametrize("shape", [(3,), ()], ids=["several environments", "one environment"])
def test_vmap_in_jax(name: str, shape: tuple[int, ...]):
    """A batch of learners, each with its own state, is the same as one after the other; with shape () each is one
    environment, the idiom of JAX's own environments."""
    transform = TRANSFORMS[name]
    with jax.enable_x64(True):
        rewards = random_stream(7, 12, 5).rewards.reshape(12, 5, *(1 for _ in shape)) * jnp.ones(shape)
        dones = jnp.asarray(random_stream(7, 12, 5, ends=0.3).dones)
        dones = dones.reshape(12, 5, *(1 for _ in shape)) & jnp.ones(shape, bool)
        states = jax.vmap(transform.init)(rewards[0])
        update = jax.jit(jax.vmap(transform.update))
        alone = [transform.init(row) for row in rewards[0]]
        for t in range(12):
            states, shaped = update(states, rewards[t], dones[t])
            for k in range(5):
                alone[k], expected = transform.update(alone[k], rewards[t, k], dones[t, k])
                assert_close(shaped[k], expected)


@pytest.mark.parametrize("name", ["at_end", "after-7", "evenly-4", "geometric", "when"])
def test_vmap_in_torch(name: str):
    transform = TRANSFORMS[name]
    stream = random_stream(8, 10, 4, ends=0.3, settle=True)
    rewards, dones, _, settle = (None if b is None else torch.from_numpy(b).reshape(10, 4, 1) for b in stream)
    states = torch.func.vmap(transform.init)(rewards[0])
    update = torch.func.vmap(lambda *args: transform.update(args[0], args[1], args[2], None, args[3]))
    expected = step_through(transform, stream)[1]
    for t in range(10):
        states, shaped = update(states, rewards[t], dones[t], settle[t])
        assert_close(shaped[:, 0], expected[t])


@each_library
def test_owed_and_drop_are_the_same_on_all_libraries(name: str):
    transform, stream = payback.chain(payback.match_evenly(GAMMA, 4), payback.scale(2)), random_stream(9, 8, 4)
    state, _ = step_through(transform, stream)
    with wide(name):
        library, where = LIBRARIES[name], np.array([True, False, True, False])
        other, _ = library.step(transform, library.init(transform, stream), library.stream(stream))
        left, dropped = payback.drop(transform, other, library.array(where))
        assert_close(dropped, np.where(where, payback.owed(transform, state), 0.0))
        assert_close(payback.owed(transform, left), np.where(where, 0.0, payback.owed(transform, state)))


@pytest.mark.parametrize("name", ["numpy", "torch"])
@each_transform
def test_what_goes_in_is_left_alone(name: str, transform: payback.RewardTransform):
    """Pure: neither the block nor the state is changed in place."""
    stream = random_stream(10, 20, 3, settle=True)
    library = LIBRARIES[name]
    arrays = library.stream(stream)
    state, _ = payback.shape_rollout(transform, library.init(transform, stream), *arrays)
    inputs = [leaf for leaf in (*leaves(state), *arrays) if leaf is not None]
    before = [np.asarray(leaf).copy() for leaf in inputs]
    payback.shape_rollout(transform, state, *arrays)
    library.step(transform, state, arrays)
    for old, new in zip(before, inputs, strict=True):
        np.testing.assert_array_equal(np.asarray(new), old)
